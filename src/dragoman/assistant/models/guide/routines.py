"""The guide's work for a request: generators that yield tool calls and text, and receive the results of the calls.

Each reply starts the routine again and sends it the results that the turn has so far. The guide therefore has no state,
and a loaded session continues at the same step.
"""

import re
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from dragoman.assistant.models.guide.prompt import AttachedFile
from dragoman.assistant.models.guide.results import describe, describe_text, output_lines
from dragoman.assistant.models.message import ToolResult


class GuideCall(msgspec.Struct, frozen=True):
    """A tool call that a routine asks for."""

    tool: str
    arguments: dict[str, Any]


class Refusal(msgspec.Struct, frozen=True):
    """Text that says why nothing was done. The turn ends with the stop reason `refusal`."""

    text: str


GuideRoutine = Generator[GuideCall | Refusal | str, ToolResult, None]

TEST_COMMANDS = (
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
)
"""The usual command that runs the tests of a project, by a file of the project. The first file that exists decides."""
TEST_TARGET = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
"""The target of a Makefile that runs the tests."""
_MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod")


def say(text: str) -> GuideRoutine:
    """Answer without a tool."""
    yield text


def refuse(text: str) -> GuideRoutine:
    """Explain why nothing is done."""
    yield Refusal(text)


def call_tool(tool: str, title: str = "", /, **arguments: Any) -> GuideRoutine:
    """Call one tool and describe its result. `title` is the tool's name for the user."""
    result = yield GuideCall(tool, arguments)
    yield describe(tool, arguments, result, title or tool)


def run(command: str) -> GuideRoutine:
    """Run a command."""
    return call_tool("run_command", command=command)


def show_files(files: Sequence[AttachedFile]) -> GuideRoutine:
    """Show the text of attached files, and read the files that are only linked."""
    for file in files:
        if file.text is None:
            yield from call_tool("read_file", path=file.path)
        else:
            yield describe_text(file.path, file.text)


def show_entry(name: str) -> GuideRoutine:
    """List or read the entry of the working directory that has this name, with or without its ending."""
    names = _names((yield GuideCall("list_directory", {"path": "."})))
    if f"{name}/" in names:
        yield from call_tool("list_directory", path=name)
        return
    stem = name.lower().split(".")[0]
    near = [one for one in names if one.lower().split(".")[0] == stem and not one.endswith("/")]
    if near:
        yield from call_tool("read_file", path=near[0])
    else:
        yield Refusal(f"There is no `{name}` in the working directory. `list` shows what is there.")


def replace_text(path: str, old: str, new: str) -> GuideRoutine:
    """Replace text that is in a file exactly once."""
    return call_tool("edit_file", path=path, edits=[{"old": old, "new": new}])


def explain_project() -> GuideRoutine:
    """List the project and read its README or its manifest."""
    listing = yield GuideCall("list_directory", {"path": "."})
    yield describe("list_directory", {"path": "."}, listing, "list_directory")
    names = _names(listing)
    known = [name for name in names if name.lower().startswith("readme")] + [one for one in _MANIFESTS if one in names]
    if known:
        yield from call_tool("read_file", path=known[0])


def run_tests() -> GuideRoutine:
    """Run the project's tests with the usual command for its files."""
    names = _names((yield GuideCall("list_directory", {"path": "."})))
    python = ".venv/bin/python" if ".venv/" in names else "python3"
    makefile = ""
    if "Makefile" in names:
        makefile = (yield GuideCall("read_file", {"path": "Makefile"})).text
    for file, command in TEST_COMMANDS:
        if file in names and (file != "Makefile" or TEST_TARGET.search(makefile)):
            yield from run(command.format(python=python))
            return
    yield Refusal("I don't see how this project runs its tests. Name the command, such as `run make check`.")


def _names(listing: ToolResult) -> list[str]:
    return [] if listing.failed else [re.sub(r"  [\d,]+ bytes\Z", "", line) for line in output_lines(listing.text)]
