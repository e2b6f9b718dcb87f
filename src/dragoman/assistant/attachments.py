"""Files that come with a prompt: a link to a file inside the session's directories is read, so that every model has it.

A text becomes an embedded resource, as if the client had sent it. It is read as the tools read, through the boundary,
and from the client where the client offers that, because the person may point at a file that is not saved yet. A
picture, a sound or a document, told by its first bytes, goes to a model that takes those. A file that cannot be given
stays a link, and its description says why; links to anything but files are left alone.

The log's `user_message_chunk` has the blocks of the client; the model's own record has the blocks that the model was
given.
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
    """Return the media type of a picture, a sound or a document that begins like this; None for anything else."""
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    return next((media_type for signature, media_type in _SIGNATURES if head.startswith(signature)), None)


MAX_TEXT = 256 * 1024
"""Characters of all texts that come with one prompt: some 64,000 tokens, half of the context of a usual model."""

MAX_MEDIA_BYTES = 5 * 1024 * 1024
"""The largest picture, sound or document: some providers refuse larger ones, and it is sent with every request."""

_HEAD_BYTES = 16


async def resolve(
    blocks: Sequence[v1.ContentBlock], workspace: "Workspace", takes: frozenset[str]
) -> list[v1.ContentBlock]:
    """Return a prompt's blocks with the files that they link to, as far as the model can be given them."""
    reader = _Reader(workspace, takes)
    return [await reader.take(block) for block in blocks]


class _Unfit(DragomanError):
    """The file cannot be given; the message says why."""


class _Reader:
    """Goes through one prompt, and knows how much room is left in it."""

    def __init__(self, workspace: "Workspace", takes: frozenset[str]) -> None:
        self._workspace = workspace
        self._takes = takes
        self._room = MAX_TEXT

    async def take(self, block: v1.ContentBlock) -> v1.ContentBlock:
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
            raise _Unfit(f"it is on another machine, {address.netloc}")
        target = await self._workspace.find(unquote(address.path))
        if not target.inside:
            raise _Unfit("it is outside the session's directories; the person can add its directory to the session")
        media_type = await self._media_type(target)
        if media_type is not None:
            return await self._give(link, target, media_type)
        if not self._room:
            raise _Unfit("the prompt has no room left for it; read it, or parts of it")
        return self._embed(link.uri, _pick(await self._workspace.read_text(target), address.fragment), link.mime_type)

    async def _media_type(self, target: "ResolvedPath") -> str | None:
        """Return the media type of a file by its first bytes, None for possible text; names can be wrong."""

        def look() -> str | None:
            with self._workspace.boundary_of(target).open_read(target.path) as file:
                return sniff(file.read(_HEAD_BYTES))

        try:
            return await asyncio.to_thread(look)
        except DragomanError:  # the client may have a file that is not on the disk; if not, reading will say so
            return None

    async def _give(self, link: v1.ResourceLink, target: "ResolvedPath", media_type: str) -> v1.ContentBlock:
        kind = "document" if media_type == "application/pdf" else media_type.partition("/")[0]
        if kind not in self._takes:
            raise _Unfit(f"it is {media_type}, which this model cannot be given")
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
        given = text[: self._room]
        self._room -= len(given)
        if len(given) < len(text):
            given += f"\n[cut: these are {len(given):,} of {len(text):,} characters; read the rest where it is needed]"
        return v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=given, mime_type=media_type))


def _split(uri: str) -> SplitResult | None:
    try:
        return urlsplit(uri)
    except ValueError:
        return None


def _pick(text: str, fragment: str) -> str:
    """Return the lines that a fragment names; all of them when it names none."""
    from dragoman.assistant.tools.file_calls import split_lines

    named = line_range(fragment)
    if named is None:
        return text
    first, last = named
    lines = split_lines(text)
    if first > max(len(lines), 1):
        raise _Unfit(f"it has {len(lines)} lines, so none from line {first} on")
    return "".join(lines[first - 1 : last])
