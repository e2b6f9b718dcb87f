"""A prompt as the guide reads it: the user's words, and the files that came with them."""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.agent.turns.prompt_words import unwrap
from dragoman.assistant.models.message import blob_text
from dragoman.protocol import v1

QUOTED = r"(?:```[^\n`]*\n.*?```|`[^`\n]+`|\"[^\"\n]*\"|“[^”\n]*”|'[^\n]*?')"
"""Text that the user marked. The surrounding patterns decide at which single quote it ends."""

_POLITE = (
    "please|hey|hi|hello|ok(?:ay)?|now|just|so|then|first(?! \\d)|next|(?:can|could|would|will) you|(?:can|could) i|"
    "(?:i(?:['\u2019]d| would) like|i want|i need)(?: you)? to|let['\u2019]?s|go ahead and|help me(?: to)?"
)
_LEAD = re.compile(rf"\A(?:(?:{_POLITE})\b[,:!.]*\s+)+(?=\S)", re.IGNORECASE)
_TAIL = re.compile(r"(?:[,\s]+(?:please|for me|to me|thanks|thank you|now|again))+[.!?]*\s*\Z", re.IGNORECASE)
_MARKS = re.compile(r"(?<=[^\s./])[.!]+\Z|\s*\?[?!.]*\Z")


class AttachedFile(msgspec.Struct, frozen=True):
    """A file of the prompt. `text` is None when only a link to it came."""

    path: str
    text: str | None


class Prompt(msgspec.Struct, frozen=True):
    """The words of a prompt, its files, and the kinds of content that the guide cannot read."""

    words: str
    files: tuple[AttachedFile, ...] = ()
    unread: tuple[str, ...] = ()

    def find_file(self, path: str) -> AttachedFile | None:
        """Return the file that a path in the words names, if it came with the prompt."""
        end = "/" + path.removeprefix("./").lstrip("/")
        return next((file for file in self.files if file.path == path or file.path.endswith(end)), None)


def read_prompt(content: Sequence[v1.ContentBlock]) -> Prompt:
    """Return a prompt without the elements that an editor puts around the words."""
    words: list[str] = []
    files: list[AttachedFile] = []
    unread: list[str] = []
    for block in unwrap(content):
        match block:
            case v1.TextContent(text=text):
                words.append(text.strip())
            case v1.ResourceLink(uri=uri):
                files.append(AttachedFile(_path(uri), None))
            case v1.EmbeddedResource(resource=resource):
                text = resource.text if isinstance(resource, v1.TextResourceContents) else blob_text(resource)
                if text is None:
                    unread.append("binary files")
                else:
                    files.append(AttachedFile(_path(resource.uri), text))
            case v1.ImageContent():
                unread.append("images")
            case v1.AudioContent():
                unread.append("audio")
            case _:
                unread.append("content of this kind")
    joined = " ".join(words).replace("\r\n", "\n").strip()
    return Prompt(joined, tuple(files), tuple(dict.fromkeys(unread)))


def without_lead(text: str) -> str:
    """Return a request without the polite words before it."""
    return _LEAD.sub("", text, count=1)


def without_courtesy(text: str) -> str:
    """Return a request without the polite words around it and the marks at its end."""
    return _MARKS.sub("", _TAIL.sub("", without_lead(text))).strip()


def unquote_text(piece: str) -> str:
    """Return the text inside quotation marks, backticks or a code block, or the piece itself."""
    if piece.startswith("```") and piece.endswith("```") and "\n" in piece:
        return piece[piece.index("\n") + 1 : -3]
    is_quoted = re.fullmatch(QUOTED, piece, re.DOTALL) is not None
    return piece[1:-1] if is_quoted else piece


def _path(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme in ("file", "") else uri
