"""What works in the sandbox, and which files it leaves behind."""

import os
import subprocess
import sys

import pytest

from dragoman.proc import Supervisor
from dragoman.sandbox import seatbelt
from dragoman.sandbox.layout import make_layout
from dragoman.sandbox.sandbox import MAX_ACTIVE_FILES, Sandbox, SandboxUnavailableError, find_problem
from dragoman.sandbox.seccomp import make_filter
from tests.sandbox.machine import WITHOUT_BWRAP


async def run(sandbox, command, cwd, **variables):
    """Run a shell command in the sandbox. Return its exit code and output."""
    output = bytearray()
    async with Supervisor() as supervisor:
        words = sandbox.wrap(["/bin/sh", "-c", f"exec 2>&1; {command}"], str(cwd))
        child = await supervisor.start(words, cwd=str(cwd), env={**os.environ, **variables}, inherit=())
        reader = child.read_stdout(lambda data: bool(output.extend(data)) or True)
        ended = await child.stop(grace_s=30)
        reader.close()
    return ended.code, output.decode()


async def test_ordinary_work_runs(sandboxed, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work / "test_it.py").write_text(
        "import socket, subprocess, tempfile, threading\n"
        "threading.Thread(target=print).start()\n"
        "subprocess.run(['true'], check=True)\n"
        "one, other = socket.socketpair()\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname())\n"
        "print(tempfile.gettempdir(), tempfile.TemporaryFile().write(b'abc'))\n"
    )
    for command, expected in {
        "pwd": str(work),
        "mkdir -p a/b && echo x > a/b/c && mv a z && cat z/b/c && rm -r z": "x",
        "git status --short": "?? test_it.py",
        f"{sys.executable} -I test_it.py": "/tmp 3",
        "echo $TMPDIR $DBUS_SESSION_BUS_ADDRESS $SSH_AUTH_SOCK .": "/tmp .",
        "cat /dev/null; head -c 1 /dev/urandom >/dev/full || true; id -u": str(os.getuid()),
        "kill -9 $$": "",
    }.items():
        variables = {"TMPDIR": "/nowhere", "DBUS_SESSION_BUS_ADDRESS": "unix:x", "SSH_AUTH_SOCK": "/x"}
        code, output = await run(Sandbox("workspace", [str(work)]), command, work, **variables)
        assert output.strip().endswith(expected), command
        assert code == (137 if command.startswith("kill") else 0), output


async def test_listed_path_is_writable_and_shown_although_it_has_credentials(sandboxed, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude/.credentials.json").write_text("a login")
    monkeypatch.setenv("HOME", str(home))
    sandbox = Sandbox("workspace", [str(tmp_path / "home/work")], writable=["~/.claude", "~/.cache/new"])
    (home / "work").mkdir()
    command = "cat ~/.claude/.credentials.json; echo x > ~/.cache/new/file; echo x > ~/other"
    _, output = await run(sandbox, command, home / "work")
    assert (output.startswith("a login"), (home / "other").exists()) == (True, False)
    assert (home / ".cache/new/file").read_text() == "x\n"


async def test_new_active_files_are_renamed_and_those_of_the_user_stay(sandboxed, tmp_path):
    (tmp_path / "AGENTS.md").write_text("mine")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/AGENTS.md").write_text("of the package")
    sandbox = Sandbox("workspace", [str(tmp_path)])
    await run(
        sandbox,
        "mkdir -p a .venv/bin; echo x | tee .envrc a/lefthook.yml blocked-.envrc.new .venv/bin/python; ln -s / .vscode;"
        "mv package moved",
        tmp_path,
    )
    (tmp_path / "edited").write_text("saved by an editor")
    (tmp_path / "edited").replace(tmp_path / "AGENTS.md")
    renamed = {
        os.path.relpath(old, tmp_path): os.path.relpath(new, tmp_path) for old, new in sandbox.rename_new_files()
    }
    assert renamed == {
        ".envrc": "blocked-.envrc1.new",
        ".vscode": "blocked-.vscode.new",
        ".venv/bin": ".venv/blocked-bin.new",
        "a/lefthook.yml": "a/blocked-lefthook.yml.new",
    }
    assert (tmp_path / "AGENTS.md").read_text() == "saved by an editor"
    assert (tmp_path / "moved/AGENTS.md").read_text() == "of the package"
    assert sandbox.rename_new_files() == []


def test_session_that_cannot_be_protected_is_refused(tmp_path):
    for roots, writable in ((["/"], []), ([str(tmp_path)], ["/"])):
        with pytest.raises(SandboxUnavailableError, match="/ is writable"):
            Sandbox("workspace", roots, writable=writable).wrap(["true"], "/")
    for number in range(MAX_ACTIVE_FILES + 1):
        (tmp_path / f"{number}.pth").touch()
    with pytest.raises(SandboxUnavailableError, match=f"contain {MAX_ACTIVE_FILES + 1} protected files"):
        Sandbox("workspace", [str(tmp_path)]).wrap(["true"], str(tmp_path))


FIND_PROBLEM = """\
import asyncio
from dragoman.proc import Supervisor
from dragoman.sandbox.sandbox import find_problem

async def main():
    async with Supervisor() as supervisor:
        print(await find_problem(supervisor))

asyncio.run(main())
"""


async def test_missing_sandbox_is_explained_with_the_fix(sandboxed, tmp_path):
    program = [sys.executable, "-c", FIND_PROBLEM]
    done = subprocess.run([*WITHOUT_BWRAP, *program], capture_output=True, text=True, check=True)
    assert done.stdout == "bwrap is not installed. Install bubblewrap, for example: sudo apt-get install bubblewrap\n"
    # In a sandbox, no other one can be made.
    words = Sandbox("workspace", [str(tmp_path)]).wrap(program, "/")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("bwrap cannot create a sandbox here (bwrap: "), done.stderr
    assert "Allow user namespaces" in done.stdout


async def test_sandbox_works_here(sandboxed):
    async with Supervisor() as supervisor:
        assert await find_problem(supervisor) is None


def test_deeper_places_come_later_and_nothing_shows_a_hidden_one(tmp_path):
    for path in ("work/secret/inner", "work/.git", "work/secret/.git", "work/secret/inner/.git"):
        (tmp_path / path).mkdir(parents=True)
    layout = make_layout(
        [f"{tmp_path}/work/secret/inner", f"{tmp_path}/work"],
        read_only=[f"{tmp_path}/work/{name}" for name in (".git", "secret/.git", "secret/inner/.git")],
        hidden=[f"{tmp_path}/work/secret", f"{tmp_path}/missing"],
        has_network=False,
    )
    assert [(os.path.relpath(path, tmp_path), kind) for path, kind in layout.places] == [
        ("work", "writable"),
        ("work/.git", "read-only"),
        ("work/secret", "hidden"),
        ("work/secret/inner", "writable"),
        ("work/secret/inner/.git", "read-only"),
    ]


async def test_commands_cannot_prepare_an_escape_of_the_next_one(sandboxed, tmp_path, monkeypatch):
    (tmp_path / "secret/keys").mkdir(parents=True)
    (tmp_path / "secret/keys/key").write_text("TOP-SECRET")
    (tmp_path / "inner").mkdir()
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "secret/keys"))
    roots = [str(tmp_path), str(tmp_path / "inner")]
    # The home is below a directory that can be renamed.
    await run(Sandbox("workspace", roots), "mv secret moved", tmp_path)
    _, output = await run(Sandbox("workspace", roots), "cat */keys/key", tmp_path)
    assert "TOP-SECRET" not in output
    # A path that the user listed, or a directory of the session, is replaced by a link.
    listed = Sandbox("workspace", roots[:1], writable=[str(tmp_path / "cache")])
    await run(Sandbox("workspace", roots), f"ln -s {outside} cache; mv inner x; ln -s {outside} inner", tmp_path)
    await run(listed, f"touch {outside}/listed cache/listed", tmp_path)
    with pytest.raises(SandboxUnavailableError, match="now leads to another directory; open the session again"):
        Sandbox("workspace", roots).wrap(["true"], str(tmp_path))
    assert list(outside.iterdir()) == []


async def test_new_target_of_an_active_link_is_renamed(sandboxed, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/AGENTS.md").symlink_to("missing.md")
    sandbox = Sandbox("workspace", [str(tmp_path)])
    await run(sandbox, "echo obey > sub/missing.md", tmp_path)
    assert [new for _, new in sandbox.rename_new_files()] == [f"{tmp_path}/sub/blocked-missing.md.new"]


def test_profile_of_macos_has_the_rules_in_order(tmp_path):
    (tmp_path / 'a "b"').mkdir()
    layout = make_layout([f'{tmp_path}/a "b"'], hidden=[str(tmp_path)], has_network=True)
    lines = seatbelt.make_profile(layout).splitlines()
    assert "(deny file-write*)" in lines
    assert "(deny network-outbound (remote unix-socket))" in lines
    assert lines[-2:] == [
        f'(deny file-read* file-write* (subpath "{tmp_path}"))',
        f'(allow file-read* file-write* (subpath "{tmp_path}/a \\"b\\""))',
    ]
    assert "(deny network*)" in seatbelt.make_profile(make_layout([], has_network=False))


def test_filter_exists_for_common_machines_only():
    assert [make_filter(machine) is not None for machine in ("x86_64", "aarch64", "riscv64")] == [True, True, False]
