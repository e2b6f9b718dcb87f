"""Attached files. A link to a file in the session's directories is replaced by its content, so that every model has it.

A text becomes an embedded resource, as if the client had sent it. It is read through the boundary, as the tools read.
It comes from the client if the client supports that, because the user may refer to an unsaved file. A picture, sound or
document, detected by its first bytes, goes to a model that accepts it. A file that cannot be attached remains a link,
and its description gives the reason. Links that are not to files are not touched.

The `user_message_chunk` in the log has the client's blocks. The model's own record has the blocks sent to the model.
"""

import asyncio
import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from dragoman.assistant.models.message import blob_text, line_range
from dragoman.errors import DragomanError
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.agent.workspace.workspace import ResolvedPath, Workspace


_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def sniff(head: bytes) -> str | None:
    """Return the media type of a picture, sound or document with these first bytes, else None."""
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    return next((media_type for signature, media_type in _SIGNATURES if head.startswith(signature)), None)


MAX_TEXT = 256 * 1024
"""Characters of all texts attached to a prompt: about 64,000 tokens, half the context of a typical model."""

MAX_MEDIA_BYTES = 5 * 1024 * 1024
"""The largest picture, sound or document. Some providers refuse larger ones, and it is part of every request."""

_HEAD_BYTES = 16


async def resolve(
    blocks: Sequence[v1.ContentBlock], workspace: "Workspace", content_types: frozenset[str]
) -> list[v1.ContentBlock]:
    """Return the prompt's blocks with linked files attached, if the model accepts them."""
    reader = _Reader(workspace, content_types)
    return [await reader.attach(block) for block in blocks]


class _AttachmentError(DragomanError):
    """The file cannot be attached. The message gives the reason."""


class _Reader:
    """Attaches the files of one prompt and tracks the space left in it."""

    def __init__(self, workspace: "Workspace", content_types: frozenset[str]) -> None:
        self._workspace = workspace
        self._content_types = content_types
        self._room = MAX_TEXT

    async def attach(self, block: v1.ContentBlock) -> v1.ContentBlock:
        match block:
            case v1.ResourceLink():
                return await self._follow(block)
            case v1.EmbeddedResource(resource=resource):
                text = resource.text if isinstance(resource, v1.TextResourceContents) else blob_text(resource)
                return block if text is None else self._embed(resource.uri, text, resource.mime_type)
            case _:
                return block

    async def _follow(self, link: v1.ResourceLink) -> v1.ContentBlock:
        address = _split(link.uri)
        if address is None or address.scheme != "file":
            return link
        try:
            return await self._read(link, address)
        except DragomanError as problem:
            about = f"{link.description} " if link.description else ""
            return msgspec.structs.replace(link, description=f"{about}[not attached: {problem}]")

    async def _read(self, link: v1.ResourceLink, address: SplitResult) -> v1.ContentBlock:
        if address.netloc not in ("", "localhost"):
            raise _AttachmentError(f"it is on another machine, {address.netloc}")
        target = await self._workspace.find(unquote(address.path))
        if not target.inside:
            raise _AttachmentError(
                "it is outside the session's directories; the user can add its directory to the session"
            )
        media_type = await self._media_type(target)
        if media_type is not None:
            return await self._attach_media(link, target, media_type)
        if not self._room:
            raise _AttachmentError("the prompt has no room left for it; read the file or parts of it")
        return self._embed(link.uri, _pick(await self._workspace.read_text(target), address.fragment), link.mime_type)

    async def _media_type(self, target: "ResolvedPath") -> str | None:
        """Return the media type of a file from its first bytes, or None if it may be text. Its name can be wrong."""

        def look() -> str | None:
            with self._workspace.boundary_of(target).open_read(target.path) as file:
                return sniff(file.read(_HEAD_BYTES))

        try:
            return await asyncio.to_thread(look)
        except DragomanError:  # the file may exist only in the client; otherwise reading it fails later
            return None

    async def _attach_media(self, link: v1.ResourceLink, target: "ResolvedPath", media_type: str) -> v1.ContentBlock:
        kind = "document" if media_type == "application/pdf" else media_type.partition("/")[0]
        if kind not in self._content_types:
            raise _AttachmentError(f"it is {media_type}, which this model does not accept")
        boundary = self._workspace.boundary_of(target)
        data = await asyncio.to_thread(boundary.read_bytes, target.path, MAX_MEDIA_BYTES)
        encoded = base64.b64encode(data).decode()
        match kind:
            case "image":
                return v1.ImageContent(data=encoded, mime_type=media_type, uri=link.uri)
            case "audio":
                return v1.AudioContent(data=encoded, mime_type=media_type)
            case _:
                blob = v1.BlobResourceContents(uri=link.uri, blob=encoded, mime_type=media_type)
                return v1.EmbeddedResource(resource=blob)

    def _embed(self, uri: str, text: str, media_type: str | None) -> v1.EmbeddedResource:
        kept = text[: self._room]
        self._room -= len(kept)
        if len(kept) < len(text):
            kept += f"\n[cut: these are {len(kept):,} of {len(text):,} characters; read the rest if you need it]"
        return v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=kept, mime_type=media_type))


def _split(uri: str) -> SplitResult | None:
    try:
        return urlsplit(uri)
    except ValueError:
        return None


def _pick(text: str, fragment: str) -> str:
    """Return the lines that a fragment names, or all lines if it names none."""
    from dragoman.assistant.tools.file_calls import split_lines

    named = line_range(fragment)
    if named is None:
        return text
    first, last = named
    lines = split_lines(text)
    if first > max(len(lines), 1):
        raise _AttachmentError(f"it has {len(lines)} lines, so line {first} does not exist")
    return "".join(lines[first - 1 : last])
