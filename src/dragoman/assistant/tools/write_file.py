"""The tool that writes a file."""

from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall
from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.assistant.tools.file_calls import find_to_write, rewriting, split_lines
from dragoman.assistant.tools.read_file import Path
from dragoman.protocol import v1


class WriteFileArguments(Arguments, frozen=True):
    """The arguments of `write_file`."""

    path: Path
    content: Annotated[str, Meta(description="The complete text of the file.")]


class WriteFile:
    """Writes a file. Creates it and its parent directories if necessary."""

    title = "Write a file"
    kind: v1.ToolKind = "edit"

    def __init__(self, workspace: Workspace) -> None:
        self.definition = ToolDefinition(
            "write_file",
            "Create a text file, with missing directories, or replace all of it. "
            "To change parts of a file use edit_file.",
            make_schema(WriteFileArguments),
        )
        self._workspace = workspace

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Compare the text with the existing file. Raises ToolError."""
        asked = decode(WriteFileArguments, arguments, self.definition.name)
        target = await find_to_write(self._workspace, asked.path)
        old = await self._workspace.read_text_or_none(target)
        count = len(split_lines(asked.content))
        summary = f"{'created' if old is None else 'replaced'} {asked.path}: {count} line{'' if count == 1 else 's'}"
        return rewriting(self._workspace, "Write", target, old, asked.content, summary=summary)
