"""A prompt as text: links become mentions of their paths, and what cannot be looked at is counted.

A link is part of the sentence where the words leave room for it: "read " and then the link. A file that an editor puts
beside the words is no part of them, but what "it" and "this file" mean; a verb alone is about that file, too.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.assistant.models.guide.literal import Masked, mask
from dragoman.assistant.models.message import line_range
from dragoman.assistant.prompt_words import unwrap
from dragoman.protocol import v1

_LEAD = re.compile(
    r"\s*(?:(?:please|kindly|now|okay|ok|hey|hi|hello|thanks|thank you|great|cool|nice|perfect|"
    r"well|so|first(?!\s+\d)|firstly|next|finally|then|and|also|dragoman|guide|"
    r"(?:can|could|would|will) you|(?:i(?:'d|\u2019d| would) like|i want|i need)(?: you)? to|let(?:'|\u2019)?s|let us|"
    r"go ahead and|try to|(?:can|could|may) (?:i|we)|help me(?: to)?)\b[,:!.]*\s+)+",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:[,\s]+(?:please|for me|thanks|thank you|right now|now))+[.!?]*\s*\Z", re.IGNORECASE)

_BARE = re.compile(r"(?:read|open|show|show me|view|print|display|cat|look at|summari[sz]e)", re.IGNORECASE)
"""A verb for a file, without one."""

_KINDS: dict[type, str] = {v1.ImageContent: "image", v1.AudioContent: "audio"}

LONG = 20_000
"""Characters beyond which a prompt, its literals aside, is pasted material and no longer read word by word."""


class Prompt(msgspec.Struct, frozen=True):
    """What a person wrote, and which kinds of content came with it that a guide cannot see."""

    masked: Masked
    unseen: tuple[str, ...] = ()
    attached: str | None = None
    """The path of the first file that came beside the words."""


def read_prompt(content: Sequence[v1.ContentBlock]) -> Prompt:
    """Return a prompt's words in their order."""
    pieces: list[str] = []
    unseen: list[str] = []
    beside: list[str] = []
    for block in unwrap(content):
        uri = _uri(block)
        if uri is not None and pieces and pieces[-1][-1:].isspace():
            pieces.append(_mention(uri))
        elif uri is not None:
            beside.append(uri)
        elif isinstance(block, v1.TextContent):
            pieces.append(block.text)
        else:
            unseen.append(_KINDS.get(type(block), "content of an unknown kind"))
    if beside and not "".join(pieces).strip():
        pieces = [f"read{_lines(beside[0])}", *map(_mention, beside)]
    elif beside and (bare := _BARE.fullmatch(without_ending(without_courtesy(_joined(pieces))))):
        pieces = [bare[0], _mention(beside[0])]
    attached = _path(beside[0]) if beside else None
    return Prompt(mask(_joined(pieces)), tuple(dict.fromkeys(unseen)), attached)


def _uri(block: v1.ContentBlock) -> str | None:
    match block:
        case v1.ResourceLink(uri=uri):
            return uri
        case v1.EmbeddedResource(resource=resource):
            return resource.uri
        case _:
            return None


def _path(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return unquote(parts.path) if parts.scheme in ("file", "") else None


def _mention(uri: str) -> str:
    path = _path(uri)
    if path is None:
        return uri
    return f'"{path}"' if "`" in path else f"`{path}`"


def _lines(uri: str) -> str:
    named = line_range(uri.partition("#")[2])
    return "" if named is None else f" lines {named[0]}-{named[1]} of"


def _joined(pieces: Sequence[str]) -> str:
    text = ""
    for piece in pieces:
        space = "" if not text or text[-1].isspace() or piece[:1].isspace() else " "
        text += space + piece
    return text


def without_courtesy(text: str) -> str:
    """Return a request without the polite words before it."""
    return _LEAD.sub("", text, count=1).strip() if _LEAD.match(text) else text.strip()


def without_ending(text: str) -> str:
    """Return a request without the polite words and marks after it."""
    text = _TAIL.sub("", text.strip())
    return re.sub(r"(?<=[^\s./])[.!]+\Z|\s*\?[?!.]*\Z", "", text).strip()
