"""The messages of a conversation that a model remembers, and the text form of their blocks, for all models.

As JSON, the messages are the `model` records of the session log.
"""

import base64
import binascii
import re
from typing import Any

import msgspec

from dragoman.protocol import v1


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call that the model requests."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str | None = None
    """Why the arguments cannot be used, if the model did not write a JSON object."""


class ProviderDetails(msgspec.Struct, frozen=True):
    """Details that the provider needs back with the reply.

    They are the last part of a reply, and stored in `AssistantMessage.provider`.
    """

    data: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a tool call as text for the model, with optional attachments."""

    id: str
    text: str
    failed: bool = False
    attachments: list[v1.ContentBlock] = []


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """A prompt as sent to the model."""

    content: list[v1.ContentBlock]


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    """A reply of the model."""

    text: str = ""
    thought: str = ""
    tool_uses: list[ToolUse] = []
    provider: dict[str, Any] | None = None
    """Details for the provider, such as signatures of thoughts. Only the model interprets them."""


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """The results of all tools that a reply called."""

    results: list[ToolResult]


class SummaryMessage(msgspec.Struct, frozen=True, tag_field="role", tag="summary", omit_defaults=True):
    """Replaces everything before it, which is no longer sent to the model. The log keeps it."""

    text: str
    prompt: list[v1.ContentBlock] = []
    """The prompt that is being answered, unchanged."""


Message = UserMessage | AssistantMessage | ToolMessage | SummaryMessage


_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_LINES = re.compile(r"L(\d{1,9})(?:C\d+)?(?:[-:]L?(\d{1,9})(?:C\d+)?)?")
"""Lines in a link's fragment, as editors write them: `L10`, `L10-20`, `L10:20`, `L10-L20`, `L10C1-L20C5`."""


def link_text(link: v1.ResourceLink) -> str:
    """Return a link as text for the model."""
    about = f": {link.description}" if link.description else ""
    return f"[{link.title or link.name}]({link.uri}){about}"


def line_range(fragment: str) -> tuple[int, int] | None:
    """Return the first and last line that a link's fragment names, or None."""
    found = _LINES.fullmatch(fragment)
    if found is None:
        return None
    first, last = sorted((int(found[1]), int(found[2] or found[1])))
    return max(first, 1), max(last, 1)


def resource_text(uri: str, text: str) -> str:
    """Return a resource as text for the model, with its URI."""
    return f'<resource uri="{uri}">\n{text}\n</resource>'


def refusal_text(kind: str, named: str) -> str:
    """Return the text that replaces content the model does not accept."""
    return f"[{kind} ({named}), which this model does not accept]"


def blob_text(resource: v1.BlobResourceContents) -> str | None:
    """Return the text of a blob whose media type is textual, else None."""
    if not (resource.mime_type or "").startswith(_TEXT_TYPES):
        return None
    return (decode_base64(resource.blob) or b"").decode(errors="replace")


def blob_kind(resource: v1.EmbeddedResourceResource) -> tuple[str, str]:
    """Return the content type of a blob, as in `Model.content_types`, and its media type."""
    media_type = resource.mime_type or "application/octet-stream"
    return "document" if media_type == "application/pdf" else media_type.partition("/")[0], media_type


def decode_base64(encoded: str) -> bytes | None:
    """Return the decoded bytes, or None if the text is not base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):  # ValueError: the text is not ASCII
        return None
