"""Routines: what the guide does for a request, as generators that yield calls and words and are sent results.

A routine is started anew for each reply and sent the results that the turn has so far: the guide keeps no state of its
own, so a session that comes back goes on where it was. Its return value tells whether it did what was asked.
"""

import re
from collections.abc import Generator
from shlex import quote
from typing import Any

import msgspec

from dragoman.assistant.models.guide.results import describe, has_failed, output_lines
from dragoman.assistant.models.message import ToolResult


class GuideCall(msgspec.Struct, frozen=True):
    """A tool that a routine wants to be called."""

    tool: str
    arguments: dict[str, Any]


GuideRoutine = Generator[GuideCall | str, ToolResult, bool]

MAX_NAMED_FILES = 3
"""Files that the message of a commit names; the others are counted."""


def call_tool(tool: str, title: str = "", /, **arguments: Any) -> GuideRoutine:
    """Call one tool and tell its result; `title` is the tool's name for people."""
    result = yield GuideCall(tool, arguments)
    yield describe(tool, arguments, result, title or tool)
    return not has_failed(tool, result)


def say(text: str, *, is_done: bool = True) -> GuideRoutine:
    """Say something and call nothing."""
    yield text
    return is_done


def run(command: str) -> GuideRoutine:
    """Run a command."""
    return call_tool("run_command", command=command)


def read(path: str, **lines: int) -> GuideRoutine:
    """Read a file; one that is named without its ending or in another case is looked for."""
    result = yield GuideCall("read_file", {"path": path, **lines})
    if result.failed and "/" not in path and re.search(r"no such file|not exist|not found", result.text, re.IGNORECASE):
        names = yield from _list_names()
        near = [name for name in names if name.lower().split(".")[0] == path.lower().split(".")[0]]
        if near:
            return (yield from call_tool("read_file", path=near[0], **lines))
    yield describe("read_file", {"path": path}, result, "read_file")
    return not result.failed


def show_entry(name: str) -> GuideRoutine:
    """List or read what has a name in the project's directory."""
    names = yield from _list_names()
    if f"{name}/" in names:
        return (yield from call_tool("list_directory", path=name))
    near = [one for one in names if one.lower().split(".")[0] == name.lower() and not one.endswith("/")]
    if near:
        return (yield from call_tool("read_file", path=near[0]))
    yield f"There is no `{name}` in the project's directory: `list .` shows what is there."
    return False


def count_lines(path: str) -> GuideRoutine:
    """Say how many lines a file has."""
    result = yield GuideCall("read_file", {"path": path})
    cut = re.search(r"\[cut after line \d+ of (\d+);[^\n]*\Z", result.text)
    if result.failed:
        yield describe("read_file", {"path": path}, result, "read_file")
    else:
        number = int(cut[1]) if cut else len(output_lines(result.text))
        yield f"`{path}` has {number:,} line{'' if number == 1 else 's'}."
    return not result.failed


def replace_text(path: str, old: str, new: str) -> GuideRoutine:
    """Replace a text in a file, everywhere when it is there more than once."""
    arguments: dict[str, Any] = {"path": path, "edits": [{"old": old, "new": new}]}
    result = yield GuideCall("edit_file", arguments)
    if result.failed and re.search(r"matches \d+ times", result.text):
        text = yield GuideCall("read_file", {"path": path})
        if not text.failed and not re.search(r"\[(?:cut after )?lines? [^\n]*\]\Z", text.text) and old in text.text:
            yield f"`{old}` is there {text.text.count(old)} times: I replace all of them."
            return (yield from call_tool("write_file", path=path, content=text.text.replace(old, new)))
    yield describe("edit_file", arguments, result, "edit_file")
    return not result.failed


def explain_project() -> GuideRoutine:
    """List the project and read its README, or else its manifest."""
    listing = yield GuideCall("list_directory", {"path": "."})
    yield describe("list_directory", {"path": "."}, listing, "list_directory")
    names = _names(listing)
    readme = [name for name in names if name.lower().startswith("readme")]
    known = [name for name in ("pyproject.toml", "package.json", "Cargo.toml", "go.mod") if name in names]
    if listing.failed or not (readme or known):
        return not listing.failed
    return (yield from call_tool("read_file", path=(readme or known)[0]))


TASKS: dict[str, tuple[tuple[str, str], ...]] = {
    "test": (
        ("Makefile", "make test"),
        ("package.json", "npm test"),
        ("Cargo.toml", "cargo test"),
        ("go.mod", "go test ./..."),
        ("pom.xml", "mvn test"),
        ("gradlew", "./gradlew test"),
        ("pyproject.toml", "{python} -m pytest"),
        ("pytest.ini", "{python} -m pytest"),
        ("setup.py", "{python} -m pytest"),
        ("tests/", "{python} -m pytest"),
        ("test/", "{python} -m pytest"),
    ),
    "build": (
        ("Makefile", "make build"),
        ("Makefile", "make all"),
        ("package.json", "npm run build"),
        ("Cargo.toml", "cargo build"),
        ("go.mod", "go build ./..."),
        ("pom.xml", "mvn package"),
        ("gradlew", "./gradlew build"),
        ("pyproject.toml", "{python} -m build"),
    ),
    "install": (
        ("Makefile", "make install"),
        ("package.json", "npm install"),
        ("requirements.txt", "{python} -m pip install -r requirements.txt"),
        ("pyproject.toml", "{python} -m pip install -e ."),
        ("Cargo.toml", "cargo fetch"),
        ("go.mod", "go mod download"),
    ),
}
"""The usual command of a task, by a file that is there."""


def run_task(task: str) -> GuideRoutine:
    """Run the command that a project has for a task, found by the files that are there."""
    names = yield from _list_names()
    python = ".venv/bin/python" if ".venv/" in names else "python3"
    makefile = ""
    if "Makefile" in names:
        makefile = (yield GuideCall("read_file", {"path": "Makefile"})).text
    for file, command in TASKS[task]:
        target = command.removeprefix("make ")
        if file in names and (file != "Makefile" or re.search(rf"^{target}\s*:(?!=)", makefile, re.MULTILINE)):
            return (yield from run(command.format(python=python)))
    yield f"I see no usual way to {task} this project. Say the command: `run …`."
    return False


def commit(message: str | None) -> GuideRoutine:
    """Commit all changes; without a message, one that names the files."""
    if message is None:
        status = yield GuideCall("run_command", {"command": "git status --short"})
        if has_failed("run_command", status):
            yield describe("run_command", {"command": "git status --short"}, status, "run_command")
            return False
        changes = [line for line in output_lines(status.text) if re.match(r"[ MTADRCU?!]{2} \S", line)]
        if not changes:
            yield "There is nothing to commit: no file has changed."
            return True
        message = _message(changes)
    return (yield from run(f"git add --all && git commit -m {quote(message)}"))


def _message(changes: list[str]) -> str:
    """Return a commit message from the lines of `git status --short`."""
    verb = "Add" if all(line.startswith(("??", "A")) for line in changes) else "Update"
    names = [line[3:].split(" -> ")[-1].strip('"') for line in changes]
    more = len(names) - MAX_NAMED_FILES
    return f"{verb} {', '.join(names[:MAX_NAMED_FILES])}{f' and {more} more' if more > 0 else ''}"


def _list_names() -> Generator[GuideCall | str, ToolResult, list[str]]:
    return _names((yield GuideCall("list_directory", {"path": "."})))


def _names(listing: ToolResult) -> list[str]:
    return [] if listing.failed else [re.sub(r"  [\d,]+ bytes\Z", "", line) for line in output_lines(listing.text)]
