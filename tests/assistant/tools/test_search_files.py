import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from dragoman.agent.turns.prepared_call import Action, ToolError
from dragoman.assistant.tools.search_files import MAX_HITS, MAX_NAMES
from tests.assistant.tools.working import text_of, working
from tests.table import each_row

TOOLS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""The directories of commands, including commands installed for the tests."""

RIPGREP = shutil.which("rg", path=TOOLS)


@pytest.fixture(params=["python", "ripgrep"], autouse=True)
def engine(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr("dragoman.assistant.tools.search_files.shutil.which", lambda _: None)
    elif RIPGREP is None:
        pytest.skip("ripgrep (rg) is not here: searching with it is not tested")
    else:
        monkeypatch.setenv("PATH", TOOLS)
    return request.param


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


async def found(here, **arguments):
    return (await here.call("search_files", **arguments)).text.split("\n")


async def test_lines_and_names_are_found(tmp_path):
    write(tmp_path, {"src/todo.py": "a\n# TODO: x\r\n", "notes.txt": "TODO ü", "todo/plain.txt": "none"})
    async with working(tmp_path) as here:
        call = await here.prepare("search_files", pattern="(?i)todo")
        assert (call.title, call.kind, call.reads_only) == ("Search for (?i)todo", "search", True)
        outcome = await here.run(call)
        lines = outcome.text.split("\n")
        assert lines == [
            "Names that match:",
            "src/todo.py",
            "todo/plain.txt",
            "notes.txt:1: TODO ü",
            "src/todo.py:2: # TODO: x",
        ]
        assert text_of(outcome.content) == f"```\n{outcome.text}\n```"


async def test_path_and_glob_narrow_the_search(tmp_path):
    write(tmp_path, {"src/a.py": "hit", "src/deep/b.py": "hit", "src/c.txt": "hit", "d.py": "hit"})
    async with working(tmp_path) as here:
        call = await here.prepare("search_files", pattern="hit", path="src", glob="*.py")
        assert call.title == "Search for hit in src (*.py)"
        assert await found(here, pattern="hit", path="src", glob="*.py") == ["src/a.py:1: hit", "src/deep/b.py:1: hit"]
        assert await found(here, pattern="hit", glob="src/*.py") == ["src/a.py:1: hit"]
        assert await found(here, pattern="hit", glob="src/**/*.py") == ["src/a.py:1: hit", "src/deep/b.py:1: hit"]
        assert await found(here, pattern="hit", path="src/c.txt") == ["src/c.txt:1: hit"]
        assert await found(here, pattern="c.txt", path="src/c.txt") == ["[nothing matches]"]


async def test_gitignored_files_are_skipped_unless_included_again(tmp_path):
    write(
        tmp_path,
        {
            ".gitignore": "*.log\n!keep.log\n/build/\nnode_modules\n",
            "a.log": "hit",
            "keep.log": "hit",
            "build/a.txt": "hit",
            "src/build/a.txt": "hit",
            "src/node_modules/x.js": "hit",
            "src/.gitignore": "!a.log\nsecret.*\n",
            "src/a.log": "hit",
            "src/secret.txt": "hit",
            "src/deep/secret.txt": "hit",
            ".git/config": "hit",
            ".github/ci.yml": "hit",
        },
    )
    expected = [".github/ci.yml:1: hit", "keep.log:1: hit", "src/a.log:1: hit", "src/build/a.txt:1: hit"]
    async with working(tmp_path) as here:
        assert sorted(await found(here, pattern="^hit$")) == expected
        assert sorted(await found(here, pattern="^hit$", path="src")) == expected[2:]
        assert await found(here, pattern="^hit$", glob="*.log") == expected[1:3]
        assert await found(here, pattern="node_modules|secret", glob="*.js") == ["[nothing matches]"]


async def test_ignored_directory_is_searched_if_named(tmp_path):
    write(tmp_path, {".gitignore": "build/\n", "build/a.txt": "hit"})
    async with working(tmp_path) as here:
        assert await found(here, pattern="hit", path="build") == ["build/a.txt:1: hit"]


async def test_binary_files_are_skipped(tmp_path):
    write(tmp_path, {"a.bin": b"hit\n" * 5 + b"\0\xff", "b.txt": "hit", "latin.txt": b"caf\xe9 hit"})
    async with working(tmp_path) as here:
        lines = await found(here, pattern="hit")
        assert lines == ["b.txt:1: hit", "latin.txt:1: caf\N{REPLACEMENT CHARACTER} hit"]


async def test_no_match_is_reported(tmp_path):
    write(tmp_path, {"empty.txt": "", "a.txt": "x"})
    async with working(tmp_path) as here:
        assert await found(here, pattern="missing") == ["[nothing matches]"]


async def test_too_many_lines_are_cut_with_a_note(tmp_path):
    write(tmp_path, {"a.txt": "hit\n" * 100_000, "b.txt": "hit\n"})
    async with working(tmp_path) as here:
        lines = await found(here, pattern="hit")
        assert len(lines) == MAX_HITS + 1
        assert lines[-1] == f"[more than {MAX_HITS} lines match; narrow the pattern, the path or the glob]"


async def test_too_many_names_are_cut_with_a_note(tmp_path):
    write(tmp_path, {f"name{number:03}.txt": "x" for number in range(MAX_NAMES + 5)})
    async with working(tmp_path) as here:
        lines = await found(here, pattern="name")
        assert len(lines) == MAX_NAMES + 2
        assert lines[-1].startswith(f"[more than {MAX_NAMES} names match")


async def test_long_lines_are_cut(tmp_path):
    write(tmp_path, {"min.js": "hit" + "x" * 1_000_000})
    async with working(tmp_path) as here:
        (line,) = await found(here, pattern="hit")
        assert len(line) < 400


@each_row("pattern", ["(", "[a-", "*x", "a{2,1}"])
async def test_invalid_pattern_is_reported(pattern, tmp_path):
    write(tmp_path, {"a.txt": "x"})
    async with working(tmp_path) as here:
        with pytest.raises(
            ToolError, match=r"(?s)the search failed: .+; check that the pattern is a valid regular expression"
        ):
            await here.call("search_files", pattern=pattern)


@pytest.mark.parametrize("pattern", ["a\nb", "a\0b"])
async def test_multi_line_pattern_is_refused(pattern, tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="single line"):
            await here.prepare("search_files", pattern=pattern)


@each_row("pattern", ["-rf", "--files", "$(touch owned)", "'; touch owned; '", '"', "\\$"])
async def test_pattern_is_never_read_as_an_option_or_shell_code(pattern, tmp_path):
    write(tmp_path, {"a.txt": "-rf --files '; touch owned; ' \" $"})
    async with working(tmp_path) as here:
        await here.call("search_files", pattern=pattern)
        assert os.listdir(tmp_path) == ["a.txt"]


async def test_invalid_glob_is_reported(tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="the glob '!' is wrong"):
            await here.prepare("search_files", pattern="x", glob="!")


async def test_missing_path_is_reported(tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="does not exist"):
            await here.call("search_files", pattern="x", path="none")


async def test_links_are_not_followed(tmp_path):
    write(tmp_path, {"cwd/a.txt": "none", "out/secret.txt": "hit"})
    (tmp_path / "cwd" / "file").symlink_to(tmp_path / "out" / "secret.txt")
    (tmp_path / "cwd" / "dir").symlink_to(tmp_path / "out")
    async with working(tmp_path / "cwd") as here:
        assert await found(here, pattern="hit|secret") == ["[nothing matches]"]


async def test_search_outside_needs_the_users_approval(tmp_path):
    write(tmp_path, {"cwd/a.txt": "", "out/b.txt": "hit"})
    async with working(tmp_path / "cwd", ask_outside_reads=True) as here:
        call = await here.prepare("search_files", pattern="hit", path="../out")
        assert call.action == Action("read", str(tmp_path / "out"), "search_files")
        assert (await here.run(call)).text == f"{tmp_path}/out/b.txt:1: hit"
        assert await found(here, pattern="hit", path="../out/b.txt") == [f"{tmp_path}/out/b.txt:1: hit"]


async def test_additional_directory_is_searched_by_its_path(tmp_path):
    write(tmp_path, {"cwd/a.txt": "", "more/sub/b.txt": "hit"})
    async with working(tmp_path / "cwd", tmp_path / "more") as here:
        expected = [f"{tmp_path}/more/sub/b.txt:1: hit"]
        assert await found(here, pattern="hit", path=str(tmp_path / "more")) == expected
        assert await found(here, pattern="hit", path=str(tmp_path / "more" / "sub")) == expected


async def test_our_environment_does_not_affect_the_search(tmp_path, monkeypatch):
    write(tmp_path, {"a.txt": "hit", "rc": "--invert-match\n"})
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    async with working(tmp_path) as here:
        assert await found(here, pattern="hit") == ["a.txt:1: hit"]


async def test_module_in_the_workspace_is_not_executed(tmp_path):
    write(tmp_path, {"re.py": "open('owned', 'w')", "pathspec.py": "open('owned', 'w')", ".gitignore": "x\n"})
    async with working(tmp_path) as here:
        await here.call("search_files", pattern="hit")
        assert not (tmp_path / "owned").exists()


async def test_endless_pattern_is_stopped_without_blocking(tmp_path, engine, monkeypatch):
    if engine == "ripgrep":
        pytest.skip("ripgrep has no pattern that takes for ever")
    monkeypatch.setattr("dragoman.assistant.tools.search_files.TIMEOUT_S", 2.0)
    write(tmp_path, {"a.txt": "a" * 60 + "b"})
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="took more than 2 s"):
            await here.call("search_files", pattern="(a+)+$")


@each_row("steps", [*range(8), 20, 60, 200])
async def test_search_cancelled_at_any_step_leaves_no_process(steps, tmp_path):
    write(tmp_path, {"a.txt": "a" * 60 + "b"})
    async with working(tmp_path) as here:
        call = await here.prepare("search_files", pattern="(a+)+$")
        running = asyncio.create_task(here.run(call))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert not here.children


async def test_searches_run_in_parallel(tmp_path):
    write(tmp_path, {"a.txt": "hit"})
    async with working(tmp_path) as here:
        call = await here.prepare("search_files", pattern="hit")
        outcomes = await asyncio.gather(*(here.run(call) for _ in range(4)))
        assert {outcome.text for outcome in outcomes} == {"a.txt:1: hit"}
