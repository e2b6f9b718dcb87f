"""The messages that a model remembers of a conversation, and the words for their blocks, the same for every model.

As JSON the messages are the `model` records of a session's log.
"""

import base64
import binascii
import re
from typing import Any

import msgspec

from dragoman.protocol import v1


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that the model wants to be called."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str | None = None
    """Why the arguments cannot be used, when the model wrote something that is no JSON object."""


class ProviderDetails(msgspec.Struct, frozen=True):
    """The details that the provider wants back with a reply: its last part, kept in `AssistantMessage.provider`."""

    data: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a call, in words for the model, with attachments that it may look at."""

    id: str
    text: str
    failed: bool = False
    attachments: list[v1.ContentBlock] = []


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """A prompt, as the model was given it."""

    content: list[v1.ContentBlock]


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    """A reply of the model."""

    text: str = ""
    thought: str = ""
    tool_uses: list[ToolUse] = []
    provider: dict[str, Any] | None = None
    """Details for the provider, such as signatures of thoughts: opaque to all but the model."""


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """The results of all the tools that a reply asked for."""

    results: list[ToolResult]


class SummaryMessage(msgspec.Struct, frozen=True, tag_field="role", tag="summary", omit_defaults=True):
    """Stands for all that was said before it, which the model is no longer given; the log keeps it."""

    text: str
    prompt: list[v1.ContentBlock] = []
    """The prompt that is being answered, which stays in its own words."""


Message = UserMessage | AssistantMessage | ToolMessage | SummaryMessage


_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_LINES = re.compile(r"L(\d{1,9})(?:C\d+)?(?:[-:]L?(\d{1,9})(?:C\d+)?)?")
"""Lines in a link's fragment, as editors write them: `L10`, `L10-20`, `L10:20`, `L10-L20`, `L10C1-L20C5`."""


def link_words(link: v1.ResourceLink) -> str:
    """Return a link as a model reads it."""
    about = f": {link.description}" if link.description else ""
    return f"[{link.title or link.name}]({link.uri}){about}"


def line_range(fragment: str) -> tuple[int, int] | None:
    """Return the first and the last line that the fragment of a link names, if it names any."""
    found = _LINES.fullmatch(fragment)
    if found is None:
        return None
    first, last = sorted((int(found[1]), int(found[2] or found[1])))
    return max(first, 1), max(last, 1)


def resource_words(uri: str, text: str) -> str:
    """Return a text that came with the prompt, with where it is from."""
    return f'<resource uri="{uri}">\n{text}\n</resource>'


def refusal_words(kind: str, named: str) -> str:
    """Return the words in place of content that the model cannot take."""
    return f"[{kind} ({named}) that this model cannot be given]"


def blob_text(resource: v1.BlobResourceContents) -> str | None:
    """Return the text that a blob is by its own account; None when it is something else."""
    if not (resource.mime_type or "").startswith(_TEXT_TYPES):
        return None
    return (decode_base64(resource.blob) or b"").decode(errors="replace")


def blob_kind(resource: v1.EmbeddedResourceResource) -> tuple[str, str]:
    """Return the kind of a blob, as in `Model.takes`, and its media type."""
    media_type = resource.mime_type or "application/octet-stream"
    return "document" if media_type == "application/pdf" else media_type.partition("/")[0], media_type


def decode_base64(encoded: str) -> bytes | None:
    """Return the bytes, or None when that is no base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):  # ValueError: a text that is not ASCII
        return None
