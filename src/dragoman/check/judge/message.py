"""One line of a conversation: a message with its flaws, or noise. Also access to its fields."""

import binascii
import posixpath
from typing import Any, Literal, cast

import msgspec

from dragoman.check.conversation import ConversationEntry, Side
from dragoman.wire.message import BAD_JSON, is_sound

Json = Any
"""Parsed JSON: dict, list, str, int, float, bool or None."""
Object = dict[str, Json]
Kind = Literal["request", "notification", "result", "error"]
NoiseKind = Literal["utf-8", "not JSON", "unfinished", "trailing", "batch", "no object", "no message", "too deep"]

LONG_BYTES = 64 * 1024
"""The buffer size of many line readers. A longer line shows their limit."""
NO_ID = 'the response has no "id"'
"""The flaw of a response that does not name its request."""

_decode = msgspec.json.Decoder().decode
_ID_TYPES = (str, int, float, type(None))


class SeenMessage(msgspec.Struct, eq=False):
    """A message. `body` is its params, result or error. A response has the method of its request.

    `params` is the body, or empty if it is not an object. `update` is the update in it, if any.
    """

    entry: ConversationEntry
    sender: Side
    kind: Kind
    method: str
    id: Json = None
    body: Json = None
    params: Object = {}
    update: Object = {}
    flaws: tuple[str, ...] = ()
    fits: bool = False
    """Whether it fits the schema, apart from fields that the schema does not have."""
    request: "SeenMessage | None" = None
    cancelled: ConversationEntry | None = None
    """The `$/cancel_request` for this request."""

    @property
    def code(self) -> int | None:
        """The code of an error."""
        code = self.params.get("code") if self.kind == "error" else None
        return code if isinstance(code, int) else None


class Noise(msgspec.Struct):
    """A line that is not a message."""

    entry: ConversationEntry
    kind: NoiseKind
    detail: str


def read(entry: ConversationEntry) -> SeenMessage | Noise:
    """Parse a line into a message, or return why it is not one."""
    line = entry.line
    if not is_sound(line):
        return _explain_unsound(entry)
    try:
        fields = _decode(line)
    except BAD_JSON as error:
        return _explain(entry, error)
    if not isinstance(fields, dict):
        return Noise(entry, "batch" if isinstance(fields, list) else "no object", "the line is not a JSON object")
    return _read_fields(entry, cast("Object", fields))


def _read_fields(entry: ConversationEntry, fields: Object) -> SeenMessage | Noise:
    """Return the message that an object is meant to be, with its flaws.

    A method makes it a request or a notification, even with a result. An id that JSON-RPC does not allow is
    removed, since no answer can belong to it.
    """
    method = fields.get("method")
    if isinstance(method, str):
        kind = "request" if "id" in fields else "notification"
        message = SeenMessage(entry, entry.sender, kind, method, fields.get("id"), fields.get("params"))
    elif fields.get("error") is not None:
        message = SeenMessage(entry, entry.sender, "error", "", fields.get("id"), fields["error"])
    elif "result" in fields:
        message = SeenMessage(entry, entry.sender, "result", "", fields.get("id"), fields["result"])
    else:
        return Noise(entry, "no message", "the object has no method, and neither a result nor an error")
    if isinstance(message.body, dict):
        message.params = cast("Object", message.body)
        update = message.params.get("update")
        if isinstance(update, dict):
            message.update = cast("Object", update)
    is_plain = isinstance(message.id, _ID_TYPES) and not isinstance(message.id, bool)
    if fields.get("jsonrpc") != "2.0" or message.method == "" or not is_plain:
        message.flaws = tuple(_flaws(fields, message))
        message.id = message.id if is_plain else None
    return message


def _flaws(fields: Object, message: SeenMessage) -> list[str]:
    flaws: list[str] = []
    if fields.get("jsonrpc") != "2.0":
        flaws.append('"jsonrpc" is not "2.0"' if "jsonrpc" in fields else '"jsonrpc" is missing')
    if isinstance(fields.get("id"), bool) or not isinstance(fields.get("id"), _ID_TYPES):
        flaws.append('"id" is neither a string nor a number nor null')
    if message.kind in ("result", "error"):
        if "id" not in fields:
            flaws.append(NO_ID)
        if "result" in fields and "error" in fields:
            flaws.append('the response has both "result" and "error"')
    return flaws


def _explain_unsound(entry: ConversationEntry) -> Noise:
    try:
        str(entry.line, "utf-8")
    except UnicodeDecodeError as error:
        return Noise(entry, "utf-8", f"byte {error.start} of the line is not UTF-8")
    return Noise(entry, "too deep", "the line is nested too deeply to be read")


def _explain(entry: ConversationEntry, error: Exception) -> Noise:
    problem = str(error)
    begins_well = entry.line.lstrip()[:1] in (b"{", b"[")
    if begins_well and "truncated" in problem:
        return Noise(entry, "unfinished", "the line ends before its JSON does")
    if begins_well and "trailing" in problem:
        return Noise(entry, "trailing", "there is more on the line after its JSON")
    return Noise(entry, "not JSON", f"the line is not JSON: {problem}")


EMPTY: Object = {}


def text(value: Object, name: str) -> str | None:
    """Return a field that is a string."""
    field = value.get(name)
    return field if isinstance(field, str) else None


def number(value: Object, name: str) -> float | None:
    """Return a field that is a number."""
    field = value.get(name)
    return field if isinstance(field, int | float) and not isinstance(field, bool) else None


def part(value: Object, name: str) -> Object:
    """Return a field that is an object, or an empty one."""
    field = value.get(name)
    return cast("Object", field) if isinstance(field, dict) else EMPTY


def parts(value: Object, name: str) -> list[Object]:
    """Return the objects in a field that is an array."""
    return [each for each in items(value, name) if isinstance(each, dict)]


def items(value: Object, name: str) -> list[Json]:
    """Return a field that is an array, or an empty one."""
    field = value.get(name)
    return cast("list[Json]", field) if isinstance(field, list) else []


def texts(value: Object, name: str) -> list[str]:
    """Return the strings in a field that is an array."""
    return [each for each in items(value, name) if isinstance(each, str)]


def offered(capabilities: Object, path: str) -> bool:
    """Return whether a capability is present: `true`, or an object, which may be empty."""
    *above, name = path.split(".")
    for each in above:
        capabilities = part(capabilities, each)
    value = capabilities.get(name)
    return value is not None and value is not False


def find_request(answer: SeenMessage) -> tuple[SeenMessage, str] | None:
    """Return a response's request with the session id that it names, or None."""
    session_id = text(answer.request.params, "sessionId") if answer.request is not None else None
    return None if answer.request is None or session_id is None else (answer.request, session_id)


def is_base64(data: str) -> bool:
    """Return whether a text is base64."""
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return False
    return True


def is_absolute(path: str) -> bool:
    """Return whether a path is absolute on any system."""
    return path.startswith(("/", "\\\\")) or (path[1:2] == ":" and path[2:3] in ("/", "\\") and path[0].isalpha())


def decode_object(line: bytes) -> Object | None:
    """Return the JSON object of a line, or None."""
    try:
        value = msgspec.json.decode(line)
    except BAD_JSON:
        return None
    return cast("Object", value) if isinstance(value, dict) else None


def may_be_same_path(one: str, other: str) -> bool:
    """Return whether two paths may name the same place.

    A peer may have resolved links, so paths with the same last part count as the same.
    """
    one, other = _normal(one), _normal(other)
    return one == other or posixpath.basename(one) == posixpath.basename(other)


def is_within(path: str, directory: str) -> bool:
    """Return whether a path is a directory or inside it."""
    path, directory = _normal(path), _normal(directory)
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _normal(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))
