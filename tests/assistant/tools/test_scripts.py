"""What the approval of a command is bound to, and which commands cannot be bound."""

import os

import pytest

from dragoman.assistant.tools.named_files import MAX_BYTES, MAX_FILES, MAX_LOOKUPS, MAX_WORD_CHARS
from dragoman.assistant.tools.scripts import Binding, bind
from tests.table import each_row

NOTHING = Binding()


@pytest.fixture
def cwd(tmp_path):
    (tmp_path / "cwd" / "sub").mkdir(parents=True)
    return tmp_path / "cwd"


def bound(command, cwd, *more):
    return bind(command, str(cwd), [str(cwd), *map(str, more)])


@each_row(
    "command",
    [
        *(
            "make test",
            "make -j 8 V=1",
            "npm test",
            "npm run build",
            "cargo test --release",
            "go test ./...",
            "go vet ./...",
        ),
        *(
            "git status",
            "git diff HEAD~1",
            "git log --oneline -n 5",
            "git log --format='%h %s'",
            "git commit -m 'Fix it'",
        ),
        *("ls -la", "ls -la sub", "pwd", "cat missing.txt", "grep -rn 'def .*(' sub | head -n 20", "echo 'a; $b'"),
        *("pytest -q", "pytest -q sub", "python3 -m pytest -q sub -k 'not slow'", "uv run pytest", "npx tsc --noEmit"),
        *("python3 --version", "node -v", "which python3 node", "command -v make"),
        *("cd sub && make", "cd sub; make", "ruff check . && pytest -q sub", "cargo fmt && cargo test"),
        *(
            "make 2>&1 | tail -n 20",
            "make > out.log 2>&1",
            "CI=1 npm test",
            "timeout 60 make test",
            "sh -c 'make test'",
        ),
        *("docker compose up -d", "curl -s https://example.org/x", "test -d sub && make", "printf '%s' x | base64"),
    ],
)
def test_ordinary_commands_can_be_approved_permanently(command, cwd):
    assert bound(command, cwd).certain


@each_row(
    "command",
    [
        *("sh -c 'make $X'", "make $TARGET", "ls *.py", "bash", "python3", "python3 -c 'print(1)'", "sed -n 1p x"),
        *("awk -f x", "xargs make", "find . -exec make ';'", "git -c x=y status", "make | sh", "curl x | python3"),
        *("PATH=/x make", "LD_PRELOAD=x make", "A=1 make", "env A=1 make", "make CC=gcc", "env -u PATH make"),
        *("cd && make", "cd - && make", "cd .. && make", "cd -P sub && make", "cd a b && make", "true | cd sub"),
        *("python3 missing.py", "sh missing.sh", "python3 sub", "node sub", "sh -i x", "sh -s", "fish -c make"),
        *("make && ./prog", "make; sh made.sh", "make && make -f x.mk", "npm ci && node x.js"),
        *("rsync -e sh a b", "make --shell=bash", "rsync -esh a b", "cat /dev/stdin | head", "sh /dev/stdin"),
        *("npm explore x -- sh run.sh", "pnpm --filter a exec ./run.sh", "yarn workspace a exec sh run.sh"),
        *(
            "perl5.36-x86_64-linux-gnu -e do+q-x-",
            "python3.11-dbg -c x",
            "bash-static -s",
            "git submodule foreach make",
        ),
        *("run file:///x/run%2esh", "run 'a;b'", "run 'a\tb'", "run 'a{b}'", "x" * (MAX_WORD_CHARS + 1)),
    ],
)
def test_unclear_commands_cannot_be_approved_permanently(command, cwd):
    assert not bound(command, cwd).certain


@each_row(
    "command",
    [
        *("./x", "cat x", "make -f x", "make -fx", "make --file=x", "a b:x,c", "@x", "a -o x@1", "a < x", "a 'b x'"),
        *("a sub/../x", "cd sub && a ../x", "cd sub && make -C .. -f x", "a -C sub ../x", "a /w/x", "a x:1:2", "a +x"),
        *("{cwd}/x", "a file://{cwd}/x", "a --y={cwd}/x", "docker run -v {cwd}:/w img /w/x", "sh -c 'a x'", "echo x"),
    ],
)
def test_file_is_found_in_every_form_of_a_word(command, cwd):
    command = command.replace("{cwd}", str(cwd))
    before = bound(command, cwd)
    assert before.certain
    (cwd / "x").write_text("one")
    first = bound(command, cwd)
    assert first not in (before, NOTHING)
    assert bound(command, cwd) == first
    (cwd / "x").write_text("two")
    assert bound(command, cwd) not in (first, before)
    (cwd / "x").unlink()
    assert bound(command, cwd) == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uvicorn main:app", "main.py"),
        ("uvicorn sub.main:app", "sub/main.py"),
        ("pytest -p plugin", "plugin.py"),
        ("pytest -pplugin", "plugin.py"),
        ("mocha -r ./setup", "setup.js"),
        ("mocha --require=./setup", "setup.cjs"),
        ("uv run -m tool", "tool/__main__.py"),
        ("npx tool", "node_modules/.bin/tool"),
        ("uv run tool", ".venv/bin/tool"),
    ],
)
def test_module_and_program_of_the_project_are_found_by_name(command, name, cwd):
    assert bound(command, cwd) == NOTHING
    (cwd / name).parent.mkdir(parents=True, exist_ok=True)
    (cwd / name).write_text("x")
    assert bound(command, cwd).digest
    assert bound(command, cwd).certain


@pytest.mark.parametrize("place", ["pytest.py", "pytest", "src/pytest.py", "pytest.cpython-311.so"])
def test_module_that_python_finds_in_the_project_is_unclear(place, cwd):
    assert bound("python3 -m pytest", cwd) == NOTHING
    (cwd / place).parent.mkdir(exist_ok=True)
    (cwd / place).write_text("")
    assert not bound("python3 -m pytest", cwd).certain


def test_files_outside_are_not_hashed(cwd, tmp_path):
    (tmp_path / "out.sh").write_text("echo")
    assert bound("sh /bin/true", cwd) == NOTHING
    before = bound("sh ../out.sh", cwd)
    (tmp_path / "out.sh").write_text("other")
    assert bound("sh ../out.sh", cwd) == before
    assert bound("sh ../out.sh", cwd, tmp_path).digest not in ("", before.digest)


def test_target_of_a_link_outside_counts(cwd, tmp_path):
    for name in ("a.sh", "b.sh"):
        (tmp_path / name).write_text("same")
        (cwd / name).write_text("same")
    seen = []
    for target in (tmp_path / "a.sh", tmp_path / "b.sh", cwd / "a.sh", cwd / "b.sh"):
        (cwd / "link.sh").unlink(missing_ok=True)
        (cwd / "link.sh").symlink_to(target)
        seen.append(bound("sh link.sh", cwd))
    assert all(each.certain and each.digest for each in seen)
    assert len(set(seen)) == 4


def test_link_from_outside_to_a_file_inside_counts(cwd, tmp_path):
    (cwd / "run.sh").write_text("one")
    (tmp_path / "door").symlink_to(cwd)
    before = bound(f"sh {tmp_path}/door/run.sh", cwd)
    (cwd / "run.sh").write_text("two")
    assert bound(f"sh {tmp_path}/door/run.sh", cwd) != before


def test_path_counts_besides_the_content(cwd):
    for name in ("a.sh", "b.sh"):
        (cwd / name).write_text("same")
    assert len({bound(command, cwd) for command in ("cat a.sh", "cat b.sh", "cat a.sh b.sh", "cat")}) == 4
    assert bound("cat b.sh ./a.sh", cwd) == bound("cat a.sh; cat b.sh", cwd)


def test_output_file_may_have_any_content(cwd, tmp_path):
    before = bound("echo hi > made.txt", cwd)
    (cwd / "made.txt").write_text("x")
    assert bound("echo hi > made.txt", cwd) == before
    (cwd / "made.txt").unlink()
    (cwd / "made.txt").symlink_to(tmp_path / "elsewhere")
    assert bound("echo hi > made.txt", cwd) != before


def test_no_script_of_many_is_missed(cwd):
    names = [f"{number}.sh" for number in range(40)]
    for name in names:
        (cwd / name).write_text("x")
    command = "; ".join(f"cat {name}" for name in names)
    before = bound(command, cwd)
    assert before.certain
    for name in names:
        (cwd / name).write_text("y")
        assert bound(command, cwd) != before
        (cwd / name).write_text("x")


def test_too_many_files_cannot_be_approved_permanently(cwd):
    for number in range(MAX_FILES + 1):
        (cwd / f"f{number}").write_text("x")
    assert bound("cat " + " ".join(f"f{number}" for number in range(MAX_FILES)), cwd).certain
    assert not bound("cat " + " ".join(f"f{number}" for number in range(MAX_FILES + 1)), cwd).certain


def test_too_large_file_cannot_be_approved_permanently(cwd):
    with (cwd / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert not bound("cat large", cwd).certain


def test_too_many_names_are_abandoned_in_time(cwd):
    assert not bound("run " + " ".join(f"-{number}" * 20 for number in range(600)), cwd).certain
    assert not bound("ls " + " ".join(map(str, range(MAX_LOOKUPS + 1))), cwd).certain


@pytest.mark.parametrize("command", ["sh gate", "sh < gate", "make -f gate"])
def test_special_file_cannot_be_bound(command, cwd):
    os.mkfifo(cwd / "gate")
    assert not bound(command, cwd).certain


def test_change_is_noticed_even_in_unclear_commands(cwd):
    for command in ("(./run.sh)", "if true; then sh run.sh; fi", "sh run.sh $X", "sh 'run.sh", "make && ./run.sh"):
        (cwd / "run.sh").write_text("one")
        before = bound(command, cwd)
        (cwd / "run.sh").write_text("two")
        assert bound(command, cwd) != before


# ── PATH ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("entry", [".", "", "bin", "sub/bin"])
def test_relative_path_entry_makes_commands_unclear(entry, cwd, monkeypatch):
    monkeypatch.setenv("PATH", f"/usr/bin:{entry}:/bin")
    assert not bound("make test", cwd).certain


def test_program_found_inside_by_path_is_bound(cwd, monkeypatch):
    (cwd / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{cwd}/bin:/usr/bin:/bin")
    for command in ("tool", "timeout 5 tool", "cat x", "sh -c tool"):
        program = cwd / "bin" / command.split()[-1].replace("x", "cat")
        before = bound(command, cwd)
        assert before == NOTHING
        program.write_text("one")
        first = bound(command, cwd)
        program.write_text("two")
        assert first.certain
        assert len({before, first, bound(command, cwd)}) == 3
        program.unlink()


def test_path_entry_that_links_inside_counts(cwd, tmp_path, monkeypatch):
    (tmp_path / "programs").symlink_to(cwd / "sub")
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:/bin")
    (cwd / "sub" / "tool").write_text("one")
    assert bound("tool", cwd).digest


def test_cdpath_makes_cd_unclear(cwd, monkeypatch):
    monkeypatch.setenv("CDPATH", "/srv")
    assert not bound("cd sub && make", cwd).certain
