"""What a prompt's blocks are in words: the same words for every model, whatever else it can be given."""

import base64
import binascii
import re

from dragoman.protocol import v1

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
    """Return what stands for something that the model cannot take."""
    return f"[{kind} ({named}) that this model cannot be given]"


def blob_text(resource: v1.BlobResourceContents) -> str | None:
    """Return the text that a blob is by its own account; None when it is something else."""
    if not (resource.mime_type or "").startswith(_TEXT_TYPES):
        return None
    return (decode_base64(resource.blob) or b"").decode(errors="replace")


def blob_kind(resource: v1.EmbeddedResourceResource) -> tuple[str, str]:
    """Return what a blob is, as `Model.takes` says it, and its media type."""
    media_type = resource.mime_type or "application/octet-stream"
    return "document" if media_type == "application/pdf" else media_type.partition("/")[0], media_type


def decode_base64(encoded: str) -> bytes | None:
    """Return the bytes, or None when that is no base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):  # ValueError: what is not even ASCII
        return None
