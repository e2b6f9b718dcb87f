"""The tool that lists a directory."""

from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall, ToolOutcome, code
from dragoman.assistant.tools.arguments import Arguments, decode
from dragoman.assistant.tools.file_calls import ReadingTool
from dragoman.files import DirectoryEntry
from dragoman.text import is_visible, visible

MAX_ENTRIES = 1000
"""About 8,000 tokens of names. A larger directory contains data, and a search tells more about it than a list."""

_MARKS = {"directory": "/", "link": "@", "FIFO": "|", "socket": "=", "device": "#"}


class ListDirectoryArguments(Arguments, frozen=True):
    """The arguments of `list_directory`."""

    path: Annotated[str, Meta(description='The directory: absolute, or relative to the working directory, or ".".')]


class ListDirectory(ReadingTool):
    """Lists the names in a directory, with the sizes of files."""

    title: str = "List a directory"
    name: str = "list_directory"
    description: str = (
        "List a directory, one name per line. Directories end in /, links in @, and files have their size."
    )
    arguments: type[Arguments] = ListDirectoryArguments

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare the list. Raises ToolError."""
        asked = decode(ListDirectoryArguments, arguments, self.name)
        target = await self._workspace.find(asked.path)

        async def read() -> ToolOutcome:
            return _outcome(await self._workspace.list_directory(target))

        title = f"List {self._workspace.show(target.path)}"
        return self._reading(title, target, read, by=self.name)


def _outcome(entries: list[DirectoryEntry]) -> ToolOutcome:
    if not entries:
        return ToolOutcome("[the directory is empty]")
    text = "\n".join(map(_line, entries[:MAX_ENTRIES]))
    if len(entries) > MAX_ENTRIES:
        text += f"\n[{len(entries) - MAX_ENTRIES:,} more left out; search_files finds names by a pattern]"
    return ToolOutcome(text, [code(text)])


def _line(entry: DirectoryEntry) -> str:
    name = entry.name if is_visible(entry.name) else f"'{visible(entry.name)}'"
    if entry.kind == "file":
        return f"{name}  {entry.size:,} bytes"
    return name + _MARKS[entry.kind]
