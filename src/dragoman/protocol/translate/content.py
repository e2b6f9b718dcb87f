"""Content blocks: the same five types in both versions, with fields and values that only version 2 has."""

from typing import Any, cast

import msgspec

from dragoman.protocol.translate.envelope import OF_V1, OF_V2, Json, Object, as_list, as_object, carry, move, restore

BLOCKS = frozenset({"text", "image", "audio", "resource_link", "resource"})
"""The content types that both versions have."""
_ROLES = ("assistant", "user")


def block_to_v2(block: Object) -> Object:
    """Return a version 1 content block as a version 2 block."""
    carried = as_object(as_object(block.get("_meta")).get(OF_V2))
    if "block" in carried:
        return as_object(carried["block"])
    block = restore(block, OF_V2)
    annotations = block.get("annotations")
    if isinstance(annotations, dict):
        block = {**block, "annotations": _annotations_to_v2(cast("Object", annotations))}
    size = block.get("size")
    return move(block, OF_V1, ("size",)) if isinstance(size, int) and size < 0 else block


def block_to_v1(block: Object) -> Object:
    """Return a version 2 content block as a version 1 block. A type unknown to version 1 becomes text."""
    block = restore(block, OF_V1)
    if block.get("type") not in BLOCKS:
        return carry({"type": "text", "text": msgspec.json.encode(block).decode()}, OF_V2, {"block": block})
    annotations = block.get("annotations")
    if isinstance(annotations, dict):
        block = {**block, "annotations": _annotations_to_v1(cast("Object", annotations))}
    return move(block, OF_V2, ("icons",))


def blocks_to_v2(blocks: Json) -> list[Object]:
    """Return an array of version 1 blocks as version 2 blocks."""
    return [block_to_v2(as_object(each)) for each in as_list(blocks)]


def blocks_to_v1(blocks: Json) -> list[Object]:
    """Return an array of version 2 blocks as version 1 blocks."""
    return [block_to_v1(as_object(each)) for each in as_list(blocks)]


def plain_text(block: Object) -> str | None:
    """Return the text of a block that contains only text, or None."""
    return block["text"] if block.keys() == {"type", "text"} and block["type"] == "text" else None


def _annotations_to_v2(annotations: Object) -> Object:
    annotations = restore(annotations, OF_V2)
    priority: Any = annotations.get("priority")
    is_out_of_range = isinstance(priority, int | float) and not 0 <= priority <= 1
    return move(annotations, OF_V1, ("priority",)) if is_out_of_range else annotations


def _annotations_to_v1(annotations: Object) -> Object:
    annotations = restore(annotations, OF_V1)
    audience = as_list(annotations.get("audience"))
    known = [each for each in audience if each in _ROLES]
    if known == audience:
        return annotations
    return carry({**annotations, "audience": known}, OF_V2, {"audience": audience})
