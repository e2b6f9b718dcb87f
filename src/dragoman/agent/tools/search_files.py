"""The tool that searches files."""

import os
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.models.model import ToolDefinition
from dragoman.agent.tools.arguments import Arguments, decode, make_schema
from dragoman.agent.tools.content import code
from dragoman.agent.tools.reading import reading
from dragoman.agent.tools.search import SearchLocation, SearchMatches, search
from dragoman.agent.tools.tool import PreparedCall, ToolFailure, ToolOutcome
from dragoman.agent.workspace.workspace import ResolvedPath, Workspace
from dragoman.protocol import v1
from dragoman.text.excerpt import shorten

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
    """What `search_files` takes."""

    pattern: Pattern
    path: Path | None = None
    glob: Glob | None = None


class SearchFiles:
    """Finds lines and names, without what `.gitignore` leaves out, links and binary files."""

    title = "Search files"
    kind: v1.ToolKind = "search"

    def __init__(self, workspace: Workspace, *, ask_outside_reads: bool) -> None:
        self.definition = ToolDefinition(
            "search_files",
            "Search the contents and the names of files with a regular expression. Gives path:line: text for each "
            "line that matches. What .gitignore leaves out and binary files are not searched.",
            make_schema(SearchFilesArguments),
        )
        self._workspace = workspace
        self._ask_outside_reads = ask_outside_reads

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Say what is searched for and where; raises ToolFailure."""
        asked = decode(SearchFilesArguments, arguments, self.definition.name)
        if "\0" in asked.pattern or "\n" in asked.pattern:
            raise ToolFailure("a pattern is for one line: it cannot hold a newline or a NUL")
        wants = _make_filter(asked.glob)
        target = await self._workspace.find(asked.path or ".")

        async def read() -> ToolOutcome:
            return await self._search(asked.pattern, target, wants)

        where = "" if target.path == self._workspace.cwd else f" in {self._workspace.show(target.path)}"
        title = f"Search for {shorten(asked.pattern, MAX_TITLE_CHARS)}{where}{f' ({asked.glob})' if asked.glob else ''}"
        return reading(
            self._workspace,
            title,
            self.kind,
            target,
            read,
            by=self.definition.name,
            ask_outside_reads=self._ask_outside_reads,
        )

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
