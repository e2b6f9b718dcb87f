"""Extracts the user's text from a prompt, without the elements that an editor puts around it.

Most editors send the text unchanged, with files next to it. Some wrap the text in an element and add context as text in
other elements. avante.nvim has three forms: a `<task>` after its own system prompt and the files, earlier prompts as
`<previous_user_message>` with the newest one first, and, after a lost session, the whole conversation in such elements
with the newest one last. In the last two forms, the newest message is the prompt. Models read all of this, but commands
and `guide` read only the user's text.
"""

import re
from collections.abc import Sequence

import msgspec

from dragoman.protocol import v1

_REQUESTS = ("task", "user_message", "user_request", "user_query", "user_input", "user_prompt", "question", "query")
_SELECTED = "selected_code"
_CONTEXT = (_SELECTED, "system_context", "attachment", "previous_assistant_message")
_EARLIER = "previous_user_message"

_ELEMENT = re.compile(
    rf"\s*<(?P<name>{'|'.join((*_REQUESTS, *_CONTEXT, _EARLIER))})\b[^<>]*>(?P<inside>.*)</(?P=name)>\s*\Z", re.DOTALL
)
_PATH = re.compile(r"<path>([^<>\n]+)</path>")


class _Piece(msgspec.Struct, frozen=True):
    """A block, and the name of the element that encloses all of it, if any."""

    block: v1.ContentBlock
    name: str = ""


def unwrap(blocks: Sequence[v1.ContentBlock]) -> list[v1.ContentBlock]:
    """Return a prompt as the user wrote it: the text without the editor's elements, and the attachments."""
    # An element for the request takes precedence, then plain text, then the newest of the earlier messages.
    pieces = [_open(block) for block in blocks]
    requests = [piece for piece in pieces if piece.name in _REQUESTS]
    plain = [piece for piece in pieces if not piece.name and isinstance(piece.block, v1.TextContent)]
    earlier = [piece for piece in pieces if piece.name == _EARLIER]
    if requests:
        words = requests[-1:]
    elif plain or not earlier:
        words = plain
    else:
        is_whole_conversation = any(piece.name == "previous_assistant_message" for piece in pieces)
        words = earlier[-1:] if is_whole_conversation else earlier[:1]
    kept = {id(piece) for piece in words}
    return [piece.block for piece in pieces if id(piece) in kept or not isinstance(piece.block, v1.TextContent)]


def first_text(blocks: Sequence[v1.ContentBlock]) -> str:
    """Return the first text of a prompt that the user wrote."""
    return next((block.text for block in unwrap(blocks) if isinstance(block, v1.TextContent)), "")


def _open(block: v1.ContentBlock) -> _Piece:
    found = _ELEMENT.match(block.text) if isinstance(block, v1.TextContent) else None
    if found is None:
        return _Piece(block)
    path = _PATH.search(found["inside"]) if found["name"] == _SELECTED else None
    if path is not None:
        return _Piece(v1.ResourceLink(name=path[1], uri=path[1]))
    return _Piece(v1.TextContent(text=found["inside"].strip()), found["name"])
