"""A prompt as a person's words: attachments told from the words, quoted pieces masked, courtesy taken away.

A quoted piece, a piece between backticks and a code block become one token each, so that rules see a word where the
person marked a text; `Words.value` gives back the text inside. A link is part of the sentence where the words leave
room for it ("read " and then the link). A file that an editor puts beside the words is no part of them: it is what
"it" and "this file" mean.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.agent.prompt_words import unwrap
from dragoman.assistant.models.message import line_range
from dragoman.protocol import v1

MAX_CHARS = 4_000
"""A longer prompt, quoted pieces aside, is pasted material and not read word by word."""

_OPEN, _CLOSE = "\ue000", "\ue001"
TOKEN = f"{_OPEN}\\d+{_CLOSE}"
_TOKEN = re.compile(f"{_OPEN}(\\d+){_CLOSE}")

# A quote inside a word (don't, print('hi')) opens nothing.
_QUOTED = re.compile(
    r"^[ \t]*```[^\n`]*\n(?P<block>.*?)^[ \t]*```[ \t]*$"
    r"|```(?P<line>[^`\n]+)```|`(?P<code>[^`\n]+)`"
    r"|(?:(?<=[\s:=,;(])|(?<![^\s]))(?:\"(?P<double>[^\"\n]*)\"|'(?P<single>(?:[^'\n]|(?<=\w)'(?=\w))*)'"
    r"|“(?P<curly>[^”\n]*)”)(?=[\s.,;:!?)]|$)",
    re.MULTILINE | re.DOTALL,
)
_POLITE = (
    "please|kindly|pls|plz|now|okay|ok|hey|hi|hello|thanks|thank you|great|cool|so|first(?!\\s+\\d)|next|finally|"
    "then|and|also|dragoman|guide|just|(?:can|could|would|will) you|(?:can|could|may) (?:i|we)|"
    "(?:i(?:['\u2019]d| would) like|i want|i need)(?: you)? to|let['\u2019]?s|let us|"
    "go ahead and|try to|help me(?: to)?"
)
_LEAD = re.compile(rf"\A(?:(?:{_POLITE})\b[,:!.]*\s+)+(?=\S)", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:[,\s]+(?:please|pls|for me|to me|thanks|thank you|right now|now|again))+[.!?]*\s*\Z", re.IGNORECASE
)
_MARKS = re.compile(r"(?<=[^\s./])[.!]+\Z|\s*\?[?!.]*\Z")
_SHOW = re.compile(r"(?:read|open|show|show me|view|print|display|cat|look at|summari[sz]e)?", re.IGNORECASE)

_UNSEEN: dict[type, str] = {v1.ImageContent: "images", v1.AudioContent: "audio"}


class Words(msgspec.Struct, frozen=True):
    """A text with its quoted pieces masked: `quoted` has each as it stood and the text inside its marks."""

    text: str
    quoted: tuple[tuple[str, str], ...] = ()

    def part(self, text: str) -> "Words":
        """Return another text with the same quoted pieces."""
        return Words(text.strip(), self.quoted)

    def value(self, text: str) -> str:
        """Return the text inside the marks when `text` is one quoted piece, else the text as it stood."""
        one = _TOKEN.fullmatch(text.strip())
        if one is not None:
            return self.quoted[int(one[1])][1]
        return _TOKEN.sub(lambda found: self.quoted[int(found[1])][0], text).strip()


class Prompt(msgspec.Struct, frozen=True):
    """The words of a prompt, the path of the first file beside them, and the kinds of content that were not read."""

    words: Words
    attached: str | None = None
    unseen: tuple[str, ...] = ()


def is_quoted(text: str) -> bool:
    """Tell whether a text is one quoted piece and nothing else."""
    return _TOKEN.fullmatch(text.strip()) is not None


def read_prompt(content: Sequence[v1.ContentBlock]) -> Prompt:
    """Return the words of a prompt in their order."""
    pieces: list[str] = []
    beside: list[str] = []
    unseen: list[str] = []
    for block in unwrap(content):
        uri = _uri(block)
        if uri is not None and pieces and pieces[-1][-1:].isspace():
            pieces.append(_mention(uri))
        elif uri is not None:
            beside.append(uri)
        elif isinstance(block, v1.TextContent):
            pieces.append(block.text)
        else:
            unseen.append(_UNSEEN.get(type(block), "content of this kind"))
    text = " ".join(piece.strip() for piece in pieces).strip()
    if beside and _SHOW.fullmatch(without_courtesy(text)):
        text = f"read{_lines(beside[0])} {_mention(beside[0])}"
    return Prompt(mask(text), _path(beside[0]) if beside else None, tuple(dict.fromkeys(unseen)))


def mask(text: str) -> Words:
    """Replace the quoted pieces of a text by tokens."""
    quoted: list[tuple[str, str]] = []

    def keep(found: re.Match[str]) -> str:
        inside = next((text for text in found.groups() if text is not None), "")
        quoted.append((found[0], inside))
        return f"{_OPEN}{len(quoted) - 1}{_CLOSE}"

    clean = text.replace(_OPEN, "").replace(_CLOSE, "").replace("\r\n", "\n")
    return Words(_QUOTED.sub(keep, clean), tuple(quoted))


def without_lead(text: str) -> str:
    """Return a request without the polite words before it."""
    return _LEAD.sub("", text.strip(), count=1)


def without_courtesy(text: str) -> str:
    """Return a request without the polite words before it, and without those and the marks after it."""
    return _MARKS.sub("", _TAIL.sub("", without_lead(text))).strip()


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
    path = _path(uri) or uri
    return f'"{path}"' if "`" in path else f"`{path}`"


def _lines(uri: str) -> str:
    named = line_range(uri.partition("#")[2])
    return "" if named is None else f" lines {named[0]}-{named[1]} of"
