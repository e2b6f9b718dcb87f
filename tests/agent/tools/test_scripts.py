import pytest

from dragoman.agent.tools.scripts import MAX_SCRIPTS, find_scripts, fingerprint
from tests.agent.tools.working import working


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("./run.sh", ["/w/./run.sh"]),
        ("bin/tool --flag x", ["/w/bin/tool"]),
        ("/abs/tool", ["/abs/tool"]),
        ("python x.py y.py", ["/w/x.py"]),
        ("python3.12 -u x.py", ["/w/x.py"]),
        ("/usr/bin/env python x.py", ["/usr/bin/env"]),
        ("env -i A=1 B=2 bash -e 'my run.sh'", ["/w/my run.sh"]),
        ("A=1 sh x.sh", ["/w/x.sh"]),
        (". env.sh; source other.sh", ["/w/env.sh", "/w/other.sh"]),
        ("make && ./a | ./b || ./c; ./d\n./e & ./f", ["/w/./a", "/w/./b", "/w/./c", "/w/./d", "/w/./e", "/w/./f"]),
        ("(cd sub; ./run.sh)", ["/w/sub/./run.sh"]),
        ("cd a && cd .. && sh x", ["/w/a/../x"]),
        ("nohup ./run.sh", ["/w/./run.sh"]),
        ("make test", []),
        ("cat x.py", []),
        ("echo './run.sh; ./other'", []),
        ("python", []),
        ("echo 'unbalanced", []),
        ("", []),
        ("cd", []),
    ],
)
def test_the_programs_of_a_command_are_found(command, scripts):
    assert list(find_scripts(command, "/w")) == scripts


async def test_only_files_inside_count(tmp_path):
    (tmp_path / "cwd").mkdir()
    (tmp_path / "out.sh").write_text("echo")
    (tmp_path / "cwd" / "link.sh").symlink_to(tmp_path / "out.sh")
    async with working(tmp_path / "cwd") as here:
        for command in ("sh ../out.sh", "sh link.sh", "sh none.sh", "/bin/true", "sh ~/x", "cd sub && ./.", "make"):
            assert await fingerprint(here.workspace, command) == ""


async def test_the_path_counts_beside_the_content(tmp_path):
    for name in ("a.sh", "b.sh"):
        (tmp_path / name).write_text("same")
    async with working(tmp_path) as here:
        found = {await fingerprint(here.workspace, command) for command in ("sh a.sh", "sh b.sh", "sh a.sh; sh b.sh")}
        assert len(found) == 3
        assert await fingerprint(here.workspace, "sh b.sh; sh ./a.sh") in found


async def test_no_more_than_some_are_looked_at(tmp_path):
    for number in range(MAX_SCRIPTS + 1):
        (tmp_path / f"{number}.sh").write_text("x")
    async with working(tmp_path) as here:
        command = "; ".join(f"sh {number}.sh" for number in range(MAX_SCRIPTS + 1))
        assert (await fingerprint(here.workspace, command)).startswith("sha256:")
