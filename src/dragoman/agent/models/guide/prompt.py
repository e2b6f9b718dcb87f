"""A prompt as text: links become mentions of their paths, and what cannot be looked at is counted."""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.agent.models.content import line_range
from dragoman.agent.models.guide.literal import Masked, mask
from dragoman.protocol import v1

_LEAD = re.compile(
    r"\s*(?:(?:please|kindly|now|okay|ok|hey|hi|hello|thanks|thank you|great|cool|nice|perfect|"
    r"well|so|first(?!\s+\d)|firstly|next|finally|then|and|also|dragoman|guide|"
    r"(?:can|could|would|will) you|(?:i(?:'d|\u2019d| would) like|i want|i need)(?: you)? to|let(?:'|\u2019)?s|let us|"
    r"go ahead and|try to|(?:can|could|may) (?:i|we)|help me(?: to)?)\b[,:!.]*\s+)+",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:[,\s]+(?:please|for me|thanks|thank you|right now|now))+[.!?]*\s*\Z", re.IGNORECASE)

LONG = 20_000
"""Characters beyond which a prompt, its literals aside, is pasted material and no longer read word by word."""


class Prompt(msgspec.Struct, frozen=True):
    """What a person wrote, and which kinds of content came with it that a guide cannot see."""

    masked: Masked
    unseen: tuple[str, ...] = ()


def read_prompt(content: Sequence[v1.ContentBlock]) -> Prompt:
    """Return a prompt's words in their order."""
    pieces: list[str] = []
    unseen: list[str] = []
    uris: list[str] = []
    for block in content:
        match block:
            case v1.TextContent(text=text):
                pieces.append(text)
            case v1.ImageContent():
                unseen.append("image")
            case v1.AudioContent():
                unseen.append("audio")
            case v1.ResourceLink(uri=uri):
                pieces.append(_mention(uri))
                uris.append(uri)
            case v1.EmbeddedResource(resource=resource):
                pieces.append(_mention(resource.uri))
                uris.append(resource.uri)
            case _:
                unseen.append("content of an unknown kind")
    if len(uris) == len(pieces) == 1:
        pieces.insert(0, f"read{_lines(uris[0])}")
    return Prompt(mask(_joined(pieces)), tuple(dict.fromkeys(unseen)))


def _mention(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path)
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
