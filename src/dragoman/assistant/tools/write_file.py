"""The tool that writes a file."""

from typing import Annotated, Any

from msgspec import Meta

from dragoman.agent.prepared_call import PreparedCall
from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.assistant.tools.file_calls import find_to_write, rewriting, split_lines
from dragoman.assistant.tools.read_file import Path
from dragoman.protocol import v1


class WriteFileArguments(Arguments, frozen=True):
    """The arguments of `write_file`."""

    path: Path
    content: Annotated[str, Meta(description="The whole text of the file.")]


class WriteFile:
    """Gives a file a text, and makes it where it is missing, with the directories above it."""

    title = "Write a file"
    kind: v1.ToolKind = "edit"

    def __init__(self, workspace: Workspace) -> None:
        self.definition = ToolDefinition(
            "write_file",
            "Write a text file: make it, with missing directories, or replace all of it. "
            "To change parts of a file use edit_file.",
            make_schema(WriteFileArguments),
        )
        self._workspace = workspace

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Compare the text with the file's; raises ToolFailure."""
        asked = decode(WriteFileArguments, arguments, self.definition.name)
        target = await find_to_write(self._workspace, asked.path)
        old = await self._workspace.read_text_if_there(target)
        count = len(split_lines(asked.content))
        words = f"{'created' if old is None else 'replaced'} {asked.path}: {count} line{'' if count == 1 else 's'}"
        return rewriting(self._workspace, "Write", target, old, asked.content, words=words)
