"""The tool that searches files, by a child process: ripgrep where there is one, our own searcher elsewhere."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.agent.prepared_call import PreparedCall, ToolFailure, ToolOutcome, code
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
"""Lines of a result: at usual lengths some 8,000 tokens. With more, the model should ask more precisely."""

TIMEOUT_S = 60.0
"""ripgrep takes seconds for millions of files; a longer search has a pattern gone wrong, or a disk far away."""

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
"""ripgrep's lines about a file with a NUL in it: a file that it met, and a file that was asked for."""


class MatchingLine(msgspec.Struct, frozen=True):
    """A line that matches."""

    path: str
    line: int
    text: str


class SearchMatches(msgspec.Struct):
    """The result of a search: names that match, lines that match, and whether there is more."""

    names: list[str]
    hits: list[MatchingLine]
    more_names: bool = False
    more_hits: bool = False
    problem: str = ""
    """A problem beside it, such as a directory that may not be read."""


class SearchLocation(msgspec.Struct, frozen=True):
    """Where to search: a directory or a file, its path relative to a root that holds it."""

    root: str
    path: str
    is_directory: bool


async def search(
    supervise: Supervise, place: SearchLocation, pattern: str, wants: Callable[[str], bool]
) -> SearchMatches:
    """Search; raises ToolFailure for a pattern that is wrong, and when it takes too long."""
    sieve = _Sieve(wants)
    child = await _start(supervise, place, pattern, shutil.which("rg"))
    pipe = child.read_stdout(sieve.take)
    try:
        try:
            ended = await _wait(child, pipe, sieve)
        finally:
            await finish(child.stop(grace_s=0, term_s=TERM_GRACE_S))
    finally:
        pipe.close()
    sieve.findings.problem = _judge(ended, child.stderr_tail.strip(), sieve)
    return sieve.findings


async def _start(supervise: Supervise, place: SearchLocation, pattern: str, ripgrep: str | None) -> Child:
    supervisor = await supervise()
    command, cwd, env = _order(place, pattern, ripgrep)
    try:
        return await supervisor.start(command, cwd=cwd, env=env)
    except StartError as error:
        raise ToolFailure(f"the search could not be started: {error.reason}") from None


def _order(place: SearchLocation, pattern: str, ripgrep: str | None) -> tuple[list[str], str, dict[str, str]]:
    if ripgrep is None:
        command = [sys.executable, "-P", "-m", "dragoman.assistant.tools.searcher", place.root, place.path, pattern]
        return command, place.root, {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # ripgrep follows no link that it meets, and it is started where it searches: a path given to it would be followed.
    whole = os.path.normpath(os.path.join(place.root, place.path))  # noqa: PTH118 -- strings go to the command
    path = {"PATH": os.pathsep.join([os.path.dirname(ripgrep), os.environ.get("PATH", os.defpath)])}  # noqa: PTH120 -- a text
    if place.is_directory:
        return ["/bin/sh", "-c", f"{_NAMES}; {_NUL_LINE}; {_LINES}", "sh", pattern, "./"], whole, path
    directory, name = os.path.split(whole)
    return ["/bin/sh", "-c", f"{_NUL_LINE}; {_LINES}", "sh", pattern, f"./{name}"], directory, path


async def _wait(child: Child, pipe: PipeReader, sieve: "_Sieve") -> ProcessExit | None:
    """Wait for the end; None when enough was found before it."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await pipe.wait_ended()
            return None if sieve.findings.more_hits else await child.wait()
    except TimeoutError:
        raise ToolFailure(
            f"the search took more than {TIMEOUT_S:.0f} s and was stopped; use a simpler pattern or a smaller path"
        ) from None


def _judge(ended: ProcessExit | None, problem: str, sieve: "_Sieve") -> str:
    """Return the problem beside the matches; raises ToolFailure when there are none."""
    findings = sieve.findings
    if ended is None or ended.code in (0, 1):
        return problem
    if not sieve.in_lines or not (findings.hits or findings.names):
        raise ToolFailure(f"the search failed: {problem or 'it was killed'}; the pattern is a regular expression")
    return problem


class _Sieve:
    """Reads the output of a search and keeps the wanted part, up to the bounds."""

    def __init__(self, wants: Callable[[str], bool]) -> None:
        self.findings = SearchMatches([], [])
        self.in_lines = False
        self._wants = wants
        self._rest = b""

    def take(self, data: bytes) -> bool:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == b"\0":
                self.in_lines = True
            elif self.in_lines:
                self._take_line(line)
            else:
                self._take_name(_decode(line))
        return not self.findings.more_hits

    def _take_name(self, name: str) -> None:
        findings = self.findings
        if len(findings.names) == MAX_NAMES:
            findings.more_names = True
        elif self._wants(name):
            findings.names.append(name)

    def _take_line(self, line: bytes) -> None:
        findings = self.findings
        path, nul, rest = line.partition(b"\0")
        if not nul:
            self._forget_binary(line)
            return
        name = _decode(path)
        if not self._wants(name):
            return
        if len(findings.hits) >= MAX_HITS:
            findings.more_hits = True
            return
        number, _, text = rest.partition(b":")
        findings.hits.append(MatchingLine(name, int(number), _decode(text).rstrip("\r")))

    def _forget_binary(self, line: bytes) -> None:
        """Drop the matches in a file that ripgrep then found to be binary."""
        found = _BINARY.search(line)
        if found is not None:
            name = _decode(line[: found.start()])
            self.findings.hits = [hit for hit in self.findings.hits if hit.path != name]


def _decode(data: bytes) -> str:
    return data.decode(errors="replace").removeprefix("./")


MAX_TITLE_CHARS = 60

Pattern = Annotated[
    str,
    Meta(min_length=1, description="A regular expression, for lines and for file names. Case matters; (?i) ends that."),
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
    """Finds lines and names, without ignored files (`.gitignore`), links and binary files."""

    title: str = "Search files"
    kind: v1.ToolKind = "search"
    name: str = "search_files"
    description: str = (
        "Search the contents and the names of files with a regular expression. Gives path:line: text for each "
        "line that matches. What .gitignore leaves out and binary files are not searched."
    )
    arguments: type[Arguments] = SearchFilesArguments

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare a search; raises ToolFailure."""
        asked = decode(SearchFilesArguments, arguments, self.name)
        if "\0" in asked.pattern or "\n" in asked.pattern:
            raise ToolFailure("a pattern is for one line: it cannot hold a newline or a NUL")
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
        base = self._workspace.show(target.path if is_directory else os.path.dirname(target.path))  # noqa: PTH120 -- a text
        text = _describe(findings, "" if base == "." else f"{base.rstrip('/')}/")
        return ToolOutcome(text, [code(text)])


def _make_filter(glob: str | None) -> Callable[[str], bool]:
    if glob is None:
        return lambda _: True
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines([glob]).match_file
    except ValueError as error:
        raise ToolFailure(f"the glob {glob!r} is wrong: {error}; write it as in .gitignore, such as *.py") from None


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
