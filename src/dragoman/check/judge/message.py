"""One line of a conversation, read without trust: a message with its flaws, or noise; and access to its fields."""

import binascii
import posixpath
from base64 import b64decode
from typing import Any, Literal, cast

import msgspec

from dragoman.check.conversation import ConversationEntry, Side
from dragoman.wire.message import BAD_JSON, is_sound

Json = Any
"""Parsed JSON: dict, list, str, int, float, bool or None."""
Object = dict[str, Json]
Kind = Literal["request", "notification", "result", "error"]
NoiseKind = Literal["utf-8", "not JSON", "unfinished", "trailing", "batch", "no object", "no message", "too deep"]

_decode = msgspec.json.Decoder().decode
_ID_TYPES = (str, int, float, type(None))


class SeenMessage(msgspec.Struct, eq=False):
    """A message: `body` is its params, result or error; an answer has the method of the request that it answers.

    `params` is the body, empty when it is no object, and `update` the update in it, if it is one.
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
        """Return the code of an error."""
        code = self.params.get("code") if self.kind == "error" else None
        return code if isinstance(code, int) else None


class Noise(msgspec.Struct):
    """A line that is no message."""

    entry: ConversationEntry
    kind: NoiseKind
    detail: str


def read(entry: ConversationEntry) -> SeenMessage | Noise:
    """Make a message of a line, or say why it is none."""
    line = entry.line
    if not is_sound(line):
        return _explain_unsound(entry)
    try:
        fields = _decode(line)
    except BAD_JSON as error:
        return _explain(entry, error)
    if not isinstance(fields, dict):
        return Noise(entry, "batch" if isinstance(fields, list) else "no object", "the line is no JSON object")
    return _read_fields(entry, cast("Object", fields))


def _read_fields(entry: ConversationEntry, fields: Object) -> SeenMessage | Noise:
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
            flaws.append('the response has no "id"')
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
    words = str(error)
    begins_well = entry.line.lstrip()[:1] in (b"{", b"[")
    if begins_well and "truncated" in words:
        return Noise(entry, "unfinished", "the line ends before its JSON does")
    if begins_well and "trailing" in words:
        return Noise(entry, "trailing", "there is more on the line after its JSON")
    return Noise(entry, "not JSON", f"the line is not JSON: {words}")


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
    """Tell whether a capability is there: `true`, or an object, which may be empty."""
    *above, name = path.split(".")
    for each in above:
        capabilities = part(capabilities, each)
    value = capabilities.get(name)
    return value is not None and value is not False


def find_asked(answer: SeenMessage) -> tuple[SeenMessage, str] | None:
    """Return the request of an answer with the id of the session that it names, if it names one."""
    session_id = text(answer.request.params, "sessionId") if answer.request is not None else None
    return None if answer.request is None or session_id is None else (answer.request, session_id)


def is_base64(data: str) -> bool:
    """Tell whether a text is base64."""
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_absolute(path: str) -> bool:
    """Tell whether a path is absolute on any system."""
    return path.startswith(("/", "\\\\")) or (path[1:2] == ":" and path[2:3] in ("/", "\\") and path[0].isalpha())


def decode_object(line: bytes) -> Object | None:
    """Return the JSON object of a line, if it is one."""
    try:
        value = msgspec.json.decode(line)
    except BAD_JSON:
        return None
    return cast("Object", value) if isinstance(value, dict) else None


def may_be_same_path(one: str, other: str) -> bool:
    """Tell whether two paths may be of the same place.

    A peer may have resolved links: paths with the same last part count as the same.
    """
    one, other = _normal(one), _normal(other)
    return one == other or posixpath.basename(one) == posixpath.basename(other)


def is_within(path: str, directory: str) -> bool:
    """Tell whether a path is a directory or lies in it."""
    path, directory = _normal(path), _normal(directory)
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _normal(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))
