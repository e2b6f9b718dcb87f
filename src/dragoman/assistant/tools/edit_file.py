"""The tool that edits a file."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman.agent.turns.prepared_call import PreparedCall, ToolError
from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, decode, make_schema
from dragoman.assistant.tools.file_calls import find_to_write, rewriting
from dragoman.assistant.tools.read_file import Path
from dragoman.protocol import v1

MAX_PLACES = 10
"""The most matches that an error lists. More would not help the model."""

Old = Annotated[str, Meta(min_length=1, description="The text to replace, exactly as it is in the file.")]
New = Annotated[str, Meta(description="The text to put in its place; empty to remove it.")]


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement."""

    old: Old
    new: New


class EditFileArguments(Arguments, frozen=True):
    """The arguments of `edit_file`."""

    path: Path
    edits: Annotated[list[Edit], Meta(min_length=1, description="The replacements, in order.")]


class EditFile:
    """Replaces parts of a file. Each part must occur exactly once."""

    title = "Edit a file"
    kind: v1.ToolKind = "edit"

    def __init__(self, workspace: Workspace) -> None:
        self.definition = ToolDefinition(
            "edit_file",
            "Replace parts of a text file. Each `old` must occur exactly once in the text after the edits before "
            "it, so include enough lines around it. If one edit fails, none is made.",
            make_schema(EditFileArguments),
        )
        self._workspace = workspace

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Apply the edits to a copy. Raises ToolError if one does not match exactly once."""
        asked = decode(EditFileArguments, arguments, self.definition.name)
        target = await find_to_write(self._workspace, asked.path)
        old = await self._workspace.read_text(target)
        new, lines = apply(old, asked.edits)
        count = len(asked.edits)
        summary = f"edited {asked.path}: {count} edit{'' if count == 1 else 's'}, at line {_listed(lines)}"
        return rewriting(self._workspace, "Edit", target, old, new, summary=summary, lines=lines)


def apply(text: str, edits: Sequence[Edit]) -> tuple[str, list[int]]:
    """Return the edited text and the line of each edit. Raises ToolError."""
    lines: list[int] = []
    for number, edit in enumerate(edits, 1):
        name = f"edit {number} of {len(edits)}"
        old, new = (_with_line_ends_of(text, each) for each in (edit.old, edit.new))
        if old == new:
            raise ToolError(f"{name}: old and new are the same; leave it out. Nothing was changed")
        at = _find_once(text, old, name)
        text = text[:at] + new + text[at + len(old) :]
        lines.append(_line(text, at))
    return text, lines


def _with_line_ends_of(text: str, part: str) -> str:
    """Return a part with the line ends of the text. Models write `\\n` even for files with `\\r\\n`."""
    newlines = text.count("\n")
    if not newlines or text.count("\r\n") != newlines or "\r" in part:
        return part
    return part.replace("\n", "\r\n")


def _find_once(text: str, old: str, name: str) -> int:
    places = _find_all(text, old)
    if len(places) == 1:
        return places[0]
    if places:
        more = "" if len(places) <= MAX_PLACES else ", …"
        where = _listed([_line(text, at) for at in places[:MAX_PLACES]]) + more
        problem = f"old matches {len(places)} times, on lines {where}; add lines around it until it matches once"
    else:
        problem = f"old is not in the file{_near(text, old)}; read the file again and copy the text exactly"
    raise ToolError(f"{name}: {problem}. Nothing was changed")


def _find_all(text: str, old: str) -> list[int]:
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _near(text: str, old: str) -> str:
    """Return a hint if the text differs only in white space, the most common reason for no match."""
    old_words = old.split()
    if not old_words:
        return ""
    words = [(word, number) for number, line in enumerate(text.split("\n"), 1) for word in line.split()]
    first = old_words[0]
    for start, (word, number) in enumerate(words):
        if word == first and [each for each, _ in words[start : start + len(old_words)]] == old_words:
            return f" (line {number} differs only in white space)"
    return ""


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _listed(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines))
