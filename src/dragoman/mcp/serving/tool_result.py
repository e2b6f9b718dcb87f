"""What a function returned, as the result of a tool in MCP."""

import base64
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.errors import DragomanError

Result = dict[str, Any]


class Image(msgspec.Struct, frozen=True):
    """A picture that a function returns: its bytes and their kind, such as `image/png`."""

    data: bytes
    mime: str = "image/png"


class UnsendableResult(DragomanError):
    """A function returned what cannot be sent."""


def as_result(value: Any) -> Result:
    """Return the result of a call; raises UnsendableResult for a value that cannot be sent."""
    match value:
        case None:
            return {"content": []}
        case str() | Image():
            return {"content": [_block(value)]}
        case list() | tuple() if any(isinstance(each, Image) for each in cast("Sequence[Any]", value)):
            return {"content": [_block(each) for each in cast("Sequence[Any]", value)]}
        case _:
            return _structured(_plain(value))


def as_failure(error: BaseException) -> Result:
    """Return the result of a call that failed: what happened, without where."""
    words = str(error)
    name = type(error).__name__
    return failure(f"{name}: {words}" if words else name)


def failure(words: str) -> Result:
    """Return the result of a call that failed, in these words."""
    return {"content": [{"type": "text", "text": words}], "isError": True}


def _structured(value: Any) -> Result:
    result: Result = {"content": [_block(value)]}
    if isinstance(value, dict):
        result["structuredContent"] = value
    elif isinstance(value, list | tuple):
        # Structured content is an object; a list has to be inside of one.
        result["structuredContent"] = {"result": list(cast("Sequence[Any]", value))}
    return result


def _block(value: Any) -> dict[str, Any]:
    if isinstance(value, Image):
        return {"type": "image", "data": base64.b64encode(value.data).decode(), "mimeType": value.mime}
    text = value if isinstance(value, str) else msgspec.json.encode(_plain(value)).decode()
    return {"type": "text", "text": text}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        raise UnsendableResult(
            "the function returned bytes, and nobody knows of what kind; return Image(data, mime) or text"
        )
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise UnsendableResult(f"the function returned what cannot be made JSON: {error}") from None
