"""The tool that searches files in a child process: ripgrep if it is installed, otherwise our own searcher."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall, ToolError, ToolOutcome, code
from dragoman.agent.workspace.shell import TERM_GRACE_S, Supervise
from dragoman.agent.workspace.workspace import ResolvedPath
from dragoman.assistant.tools.arguments import Arguments, decode
from dragoman.assistant.tools.file_calls import ReadingTool
from dragoman.assistant.tools.searcher import MAX_LINE_CHARS, MAX_SEARCHED_BYTES
from dragoman.cancellation import finish
from dragoman.errors import StartError
from dragoman.proc import Child, ProcessExit
from dragoman.proc.pipes import PipeReader
from dragoman.protocol import v1
from dragoman.text.excerpt import shorten

MAX_NAMES = 100
MAX_HITS = 200
"""Lines of a result, usually about 8,000 tokens. If there are more, the model should narrow the search."""

TIMEOUT_S = 60.0
"""ripgrep needs seconds for millions of files. A longer search has a bad pattern or a remote disk."""

_FLAGS = (
    "--no-config --color never --hidden --glob '!.git' --no-require-git --no-ignore-global --no-ignore-dot --sort path"
)
_LINES = (
    f"rg {_FLAGS} --crlf --line-number --no-heading --with-filename --null --max-columns {MAX_LINE_CHARS} "
    f'--max-columns-preview --max-filesize {MAX_SEARCHED_BYTES} -e "$1" -- "$2"'
)
_NAMES = f'rg {_FLAGS} --files 2>/dev/null | rg --no-config --color never -e "$1" 2>/dev/null'
_NUL_LINE = r"printf '\0\n'"

_BINARY = re.compile(rb": (?:WARNING: stopped searching binary file|binary file matches)")
"""ripgrep's lines about a binary file: one that it found, and one that was named."""


class MatchingLine(msgspec.Struct, frozen=True):
    """A line that matches."""

    path: str
    line: int
    text: str


class SearchMatches(msgspec.Struct):
    """The matching names and lines, and whether there are more."""

    names: list[str]
    hits: list[MatchingLine]
    more_names: bool = False
    more_hits: bool = False
    problem: str = ""
    """A problem besides the matches, such as an unreadable directory."""


class SearchLocation(msgspec.Struct, frozen=True):
    """A directory or file to search, with its path relative to a root that contains it."""

    root: str
    path: str
    is_directory: bool


async def search(
    supervise: Supervise, place: SearchLocation, pattern: str, wants: Callable[[str], bool]
) -> SearchMatches:
    """Search files. Raises ToolError for an invalid pattern or after a timeout."""
    output = _SearchOutput(wants)
    child = await _start(supervise, place, pattern, shutil.which("rg"))
    pipe = child.read_stdout(output.feed)
    try:
        try:
            ended = await _wait(child, pipe, output)
        finally:
            await finish(child.stop(grace_s=0, term_s=TERM_GRACE_S))
    finally:
        pipe.close()
    output.findings.problem = _judge(ended, child.stderr_tail.strip(), output)
    return output.findings


async def _start(supervise: Supervise, place: SearchLocation, pattern: str, ripgrep: str | None) -> Child:
    supervisor = await supervise()
    command, cwd, env = _command_line(place, pattern, ripgrep)
    try:
        return await supervisor.start(command, cwd=cwd, env=env)
    except StartError as error:
        raise ToolError(f"the search could not be started: {error.reason}") from None


def _command_line(place: SearchLocation, pattern: str, ripgrep: str | None) -> tuple[list[str], str, dict[str, str]]:
    if ripgrep is None:
        command = [sys.executable, "-P", "-m", "dragoman.assistant.tools.searcher", place.root, place.path, pattern]
        return command, place.root, {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # ripgrep follows no links that it finds, but would follow one in its arguments. So it starts in the searched
    # directory.
    whole = os.path.normpath(os.path.join(place.root, place.path))  # noqa: PTH118 -- strings go to the command
    path = {"PATH": os.pathsep.join([os.path.dirname(ripgrep), os.environ.get("PATH", os.defpath)])}  # noqa: PTH120 -- faster on text
    if place.is_directory:
        return ["/bin/sh", "-c", f"{_NAMES}; {_NUL_LINE}; {_LINES}", "sh", pattern, "./"], whole, path
    directory, name = os.path.split(whole)
    return ["/bin/sh", "-c", f"{_NUL_LINE}; {_LINES}", "sh", pattern, f"./{name}"], directory, path


async def _wait(child: Child, pipe: PipeReader, output: "_SearchOutput") -> ProcessExit | None:
    """Wait for the exit. Return None if enough was found before."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await pipe.wait_ended()
            return None if output.findings.more_hits else await child.wait()
    except TimeoutError:
        raise ToolError(
            f"the search took more than {TIMEOUT_S:.0f} s and was stopped; use a simpler pattern or a smaller path"
        ) from None


def _judge(ended: ProcessExit | None, problem: str, output: "_SearchOutput") -> str:
    """Return the problem besides the matches. Raises ToolError if nothing matched."""
    findings = output.findings
    if ended is None or ended.code in (0, 1):
        return problem
    if not output.in_lines or not (findings.hits or findings.names):
        raise ToolError(
            f"the search failed: {problem or 'it was killed'}; check that the pattern is a valid regular expression"
        )
    return problem


class _SearchOutput:
    """Parses the output of a search and keeps the wanted matches, up to the limits."""

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self.findings = SearchMatches([], [])
        self.in_lines = False
        self._wants = wants
        self._rest = b""

    def feed(self, data: bytes) -> bool:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == b"\0":
                self.in_lines = True
            elif self.in_lines:
                self._add_line(line)
            else:
                self._add_name(_decode(line))
        return not self.findings.more_hits

    def _add_name(self, name: str) -> None:
        findings = self.findings
        if len(findings.names) == MAX_NAMES:
            findings.more_names = True
        elif self._wants(name):
            findings.names.append(name)

    def _add_line(self, line: bytes) -> None:
        findings = self.findings
        path, nul, rest = line.partition(b"\0")
        if not nul:
            self._drop_binary(line)
            return
        name = _decode(path)
        if not self._wants(name):
            return
        if len(findings.hits) >= MAX_HITS:
            findings.more_hits = True
            return
        number, _, text = rest.partition(b":")
        findings.hits.append(MatchingLine(name, int(number), _decode(text).rstrip("\r")))

    def _drop_binary(self, line: bytes) -> None:
        """Drop the matches of a file that turned out to be binary."""
        found = _BINARY.search(line)
        if found is not None:
            name = _decode(line[: found.start()])
            self.findings.hits = [hit for hit in self.findings.hits if hit.path != name]


def _decode(data: bytes) -> str:
    return data.decode(errors="replace").removeprefix("./")


MAX_TITLE_CHARS = 60

Pattern = Annotated[
    str,
    Meta(
        min_length=1,
        description="A regular expression, for lines and for file names. It is "
        "case-sensitive unless it begins with (?i).",
    ),
]
Path = Annotated[str, Meta(description="A directory or file to search. Default: the working directory.")]
Glob = Annotated[
    str, Meta(min_length=1, description="Only files that match, as in .gitignore: *.py, src/**/*.ts. Default: all.")
]


class SearchFilesArguments(Arguments, frozen=True):
    """The arguments of `search_files`."""

    pattern: Pattern
    path: Path | None = None
    glob: Glob | None = None


class SearchFiles(ReadingTool):
    """Finds lines and names. Skips ignored files (`.gitignore`), links and binary files."""

    title: str = "Search files"
    kind: v1.ToolKind = "search"
    name: str = "search_files"
    description: str = (
        "Search the contents and the names of files with a regular expression. Returns path:line: text for each "
        "line that matches. Binary files and files that .gitignore names are not searched."
    )
    arguments: type[Arguments] = SearchFilesArguments

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the search. Raises ToolError."""
        asked = decode(SearchFilesArguments, arguments, self.name)
        if "\0" in asked.pattern or "\n" in asked.pattern:
            raise ToolError("a pattern matches a single line, so it cannot contain a newline or a NUL")
        wants = _make_filter(asked.glob)
        target = await self._workspace.find(asked.path or ".")

        async def read() -> ToolOutcome:
            return await self._search(asked.pattern, target, wants)

        where = "" if target.path == self._workspace.cwd else f" in {self._workspace.show(target.path)}"
        title = f"Search for {shorten(asked.pattern, MAX_TITLE_CHARS)}{where}{f' ({asked.glob})' if asked.glob else ''}"
        return self._reading(title, target, read, by=self.name)

    async def _search(self, pattern: str, target: ResolvedPath, wants: Callable[[str], bool]) -> ToolOutcome:
        is_directory = await self._workspace.is_directory(target)
        root, relative = self._workspace.place(target)
        findings = await search(self._workspace.supervise, SearchLocation(root, relative, is_directory), pattern, wants)
        base = self._workspace.show(target.path if is_directory else os.path.dirname(target.path))  # noqa: PTH120 -- faster on text
        text = _describe(findings, "" if base == "." else f"{base.rstrip('/')}/")
        return ToolOutcome(text, [code(text)])


def _make_filter(glob: str | None) -> Callable[[str], bool]:
    if glob is None:
        return lambda _: True
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines([glob]).match_file
    except ValueError as error:
        raise ToolError(f"the glob {glob!r} is wrong: {error}; write it as in .gitignore, such as *.py") from None


def _describe(findings: SearchMatches, base: str) -> str:
    parts: list[str] = []
    if findings.names:
        parts.append("Names that match:\n" + "\n".join(base + name for name in findings.names))
        if findings.more_names:
            parts.append(f"[more than {len(findings.names)} names match; narrow the pattern, the path or the glob]")
    if findings.hits:
        parts.append("\n".join(f"{base}{hit.path}:{hit.line}: {hit.text}" for hit in findings.hits))
        if findings.more_hits:
            parts.append(f"[more than {len(findings.hits)} lines match; narrow the pattern, the path or the glob]")
    if findings.problem:
        parts.append(f"[not all could be searched: {findings.problem}]")
    return "\n".join(parts) or "[nothing matches]"
