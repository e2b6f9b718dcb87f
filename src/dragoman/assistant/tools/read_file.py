"""The tool that reads a file."""

from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall, ToolError, ToolOutcome, code
from dragoman.agent.workspace.workspace import ResolvedPath
from dragoman.assistant.tools.arguments import Arguments, decode
from dragoman.assistant.tools.file_calls import ReadingTool, split_lines

MAX_CHARS = 64 * 1024
"""Characters per call: about 16,000 tokens, or all of nearly every source file."""

Path = Annotated[str, Meta(description="The file: absolute, or relative to the working directory.")]
StartLine = Annotated[int, Meta(ge=1, description="The first line wanted, counted from 1. Default: 1.")]
LineCount = Annotated[int, Meta(ge=1, description="How many lines. Default: all that fit.")]


class ReadFileArguments(Arguments, frozen=True):
    """The arguments of `read_file`."""

    path: Path
    start_line: StartLine | None = None
    line_count: LineCount | None = None


class ReadFile(ReadingTool):
    """Reads a text file, from the user's editor if the client supports that."""

    title: str = "Read a file"
    name: str = "read_file"
    description: str = (
        "Read a text file, or some lines of it. The text is returned exactly as it is, without line numbers."
    )
    arguments: type[Arguments] = ReadFileArguments

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the read. Raises ToolError."""
        asked = decode(ReadFileArguments, arguments, self.name)
        target = await self._workspace.find(asked.path)

        async def read() -> ToolOutcome:
            return _outcome(await self._workspace.read_text(target), target, asked)

        title = f"Read {self._workspace.show(target.path)}{_range(asked)}"
        return self._reading(title, target, read, line=asked.start_line)


def _range(asked: ReadFileArguments) -> str:
    first = asked.start_line or 1
    if asked.line_count is not None:
        last = first + asked.line_count - 1
        return f" (line {first})" if last == first else f" (lines {first}-{last})"
    return f" (from line {first})" if asked.start_line else ""


def _outcome(text: str, target: ResolvedPath, asked: ReadFileArguments) -> ToolOutcome:
    lines = split_lines(text)
    first = asked.start_line or 1
    if first > max(len(lines), 1):
        raise ToolError(f"{target.given} has {len(lines)} lines, so line {first} does not exist; ask for earlier ones")
    last = len(lines) if asked.line_count is None else min(first + asked.line_count - 1, len(lines))
    shown_text, count = _fit(lines[first - 1 : last])
    note = _range_note(target, shown_text, first, first + count - 1, last=last, total=len(lines))
    shown = [code(shown_text)] if shown_text else []
    return ToolOutcome(f"{shown_text}{note}" if shown_text else "[the file is empty]", shown)


def _fit(lines: list[str]) -> tuple[str, int]:
    """Return as many whole lines as fit, or else the beginning of the first one, and the number of lines."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line)
        if size > MAX_CHARS:
            return ("".join(lines[:count]), count) if count else (line[:MAX_CHARS], 1)
    return "".join(lines), len(lines)


def _range_note(target: ResolvedPath, text: str, first: int, end: int, *, last: int, total: int) -> str:
    newline = "" if text.endswith("\n") else "\n"
    if first == end and len(text) == MAX_CHARS:
        return f"{newline}[line {first} was cut at {MAX_CHARS:,} characters; search_files finds parts of it]"
    if end < last:
        return (
            f"{newline}[cut after line {end} of {total}; read {target.given} from start_line {end + 1} on for the rest]"
        )
    if (first, end) != (1, total):
        return f"{newline}[lines {first}-{end} of {total}]"
    return ""
