"""What is said to the agent: the prompt, and the files that go with it."""

import base64
import mimetypes
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.cli.options import UsageError
from dragoman.protocol import v1

MAX_EMBEDDED_BYTES = 1024 * 1024
"""Longer files are named and not sent: an agent reads the part of them that it needs."""


class Attachment(msgspec.Struct, frozen=True):
    """A file that goes with the prompt; without data it is only named."""

    path: Path
    data: bytes | None = None

    def as_block(self, capabilities: v1.PromptCapabilities) -> v1.ContentBlock:
        """Return it whole, if the agent can take that; else the link that every agent can."""
        uri, kind = self.path.as_uri(), mimetypes.guess_type(self.path.name)[0]
        if self.data is not None:
            if capabilities.image and kind is not None and kind.startswith("image/"):
                return v1.ImageContent(data=base64.b64encode(self.data).decode(), mime_type=kind, uri=uri)
            text = _text(self.data)
            if capabilities.embedded_context and text is not None:
                return v1.EmbeddedResource(resource=v1.TextResourceContents(text=text, uri=uri, mime_type=kind))
        return v1.ResourceLink(name=self.path.name, uri=uri, mime_type=kind)


def read_prompt(given: str) -> str:
    """Return the prompt, which `-` has on stdin. Raises UsageError."""
    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise UsageError("stdin had no prompt" if given == "-" else "the prompt is empty")
    return text


def read_files(names: Sequence[str]) -> list[Attachment]:
    """Return the files as far as they may be sent. Raises UsageError."""
    return [_read_file(Path(name).expanduser().absolute()) for name in names]


def _read_file(path: Path) -> Attachment:
    try:
        if path.is_dir() or path.stat().st_size > MAX_EMBEDDED_BYTES:
            return Attachment(path)
        return Attachment(path, path.read_bytes())
    except OSError as error:
        raise UsageError(f"the file {path} cannot be read: {error.strerror}") from None


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
