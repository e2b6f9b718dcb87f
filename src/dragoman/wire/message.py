"""Parses one line into one JSON-RPC message.

`parse` never raises. A line becomes a `Message`, or a `Malformed` that says how to answer it. Params and results stay
raw bytes (`msgspec.Raw`). Code that knows their type decodes them once, and code that passes them on does not decode
them at all. IDs stay bytes as well, so that every form of ID is returned unchanged.
"""

import re
from itertools import accumulate
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import ErrorCode, RpcError, error_text
from dragoman.text import one_line
from dragoman.wire.framing import EDGE_BYTES, Oversized, too_long

MAX_NESTING = 200
"""The deepest nesting allowed. Real messages are far flatter, and recursive decoders fail only far deeper."""

SURELY_SHALLOW_BYTES = 2 * MAX_NESTING
"""A line of at most this length cannot exceed the nesting limit."""

NULL_ID = b"null"

NO_PARAMS = Raw(b"{}")
"""The params of a message that has none."""

BAD_JSON = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""A string, even one that never ends. Otherwise the search would restart at each quote inside it."""
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
MAX_MESSAGE = 500
"""The length limit of an error's message: one to three sentences. `data` holds the full text."""

_STARTS_OF_AN_ID = frozenset(b'"-0123456789n')

MessageKind = Literal["request", "response", "notification", "unknown"]

_KIND_BY_KEY: dict[bytes, MessageKind] = {
    b'"method"': "notification",
    b'"result"': "response",
    b'"error"': "response",
}
_QUOTED = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR = rb"(?:%b|-?[0-9][0-9.eE+-]*|true|false|null)" % _QUOTED
_KEY = re.compile(rb"\s*(%b)\s*:\s*" % _QUOTED, re.DOTALL)
_MEMBER = re.compile(rb"(%b)\s*," % _SCALAR, re.DOTALL)
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(%b)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z' % _SCALAR, re.DOTALL)

_SURROGATES = re.compile(
    rb"\\\\"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class Message(msgspec.Struct, gc=False):
    """A request (method and ID), a notification (method only) or a response (result or error), as received."""

    jsonrpc: Literal["2.0"]
    id: Raw | UnsetType = UNSET
    method: str | None = None
    params: Raw = NO_PARAMS
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Malformed(msgspec.Struct, frozen=True):
    """A line that is not a message, and the error to send back. Responses and notifications get no answer."""

    code: ErrorCode
    problem: str
    id: bytes = NULL_ID
    answerable: bool = True
    answered_ids: tuple[bytes, ...] = ()
    """The IDs of the responses in a batch."""


class ErrorObject(msgspec.Struct):
    """The `error` of a response."""

    code: int
    message: str
    data: Any = UNSET

    @property
    def text(self) -> str:
        """The text to show to the user."""
        return error_text(self.code, self.message, None if self.data is UNSET else self.data)


_decode = msgspec.json.Decoder(Message).decode
_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_batch = msgspec.json.Decoder(list[dict[str, Raw]]).decode
_decode_error = msgspec.json.Decoder(ErrorObject).decode
_decode_id = msgspec.json.Decoder(str | int | float | None).decode


def parse(line: bytes | Oversized) -> Message | Malformed:
    """Parse a line into a message."""
    if not isinstance(line, bytes):
        return _describe_ends(line.head, line.tail, too_long(line.max_bytes))
    if not is_sound(line):
        return _explain_unsound(line)
    try:
        message = _decode(line)
    except BAD_JSON as error:
        return _explain(line, error)
    if message.method is None or message.id is not UNSET:
        return _check(message, line)
    return message


def parse_mended(line: bytes) -> tuple[Message | Malformed, bytes]:
    """Parse a line. If lone surrogates make it malformed, replace them first. Return the message and its line."""
    message = parse(line)
    if isinstance(message, Malformed) and (mended := replace_lone_surrogates(line)):
        return parse(mended), mended
    return message, line


def is_sound(line: bytes) -> bool:
    """Return whether a line is UTF-8 and not nested too deeply. The decoder may find out neither."""
    if not line.isascii():
        try:
            str(line, "utf-8")
        except UnicodeDecodeError:
            return False
    return len(line) <= SURELY_SHALLOW_BYTES or not _is_too_deep(line)


def parse_error(raw: Raw) -> ErrorObject:
    """Decode the `error` of a response. If it is malformed, return an error object that says so."""
    try:
        return _decode_error(raw)
    except BAD_JSON as error:
        return ErrorObject(ErrorCode.INTERNAL_ERROR, f"the error object itself is malformed: {error}")


def error_object(error: RpcError) -> ErrorObject:
    """Return an error as it is sent. Its message is shortened to one line, because it may contain foreign text."""
    return ErrorObject(
        int(error.code), one_line(error.message, MAX_MESSAGE), UNSET if error.data is None else error.data
    )


def replace_lone_surrogates(line: bytes) -> bytes | None:
    r"""Return a line with a replacement character for each lone surrogate, as in `"\ud83d"`, or None if it has none.

    Some programs cut a text in the middle of an emoji. No decoder accepts that, but a message is worth more than one
    character.
    """
    found = False

    def replace(escape: re.Match[bytes]) -> bytes:
        nonlocal found
        if escape["lone"] is None:
            return escape[0]
        found = True
        return rb"\ufffd"

    mended = _SURROGATES.sub(replace, line)
    return mended if found else None


def encode_with_surrogates(value: object, encoder: msgspec.json.Encoder) -> bytes:
    """Encode a value that msgspec rejects because of lone surrogates. Each becomes a replacement character."""

    def encode_other(other: object) -> object:
        if isinstance(other, msgspec.Raw):
            return msgspec.json.decode(other)
        if encoder.enc_hook is None:
            raise NotImplementedError(f"{type(other).__name__} cannot be converted to JSON")
        return encoder.enc_hook(other)

    return encoder.encode(_without_surrogates(msgspec.to_builtins(value, str_keys=True, enc_hook=encode_other)))


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():  # two adjacent halves become the one character that they encode
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_without_surrogates(each) for each in cast("list[Any]", value)]
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return {_without_surrogates(key): _without_surrogates(each) for key, each in pairs}
        case _:
            return value


def _check(message: Message, line: bytes) -> Message | Malformed:
    if message.id is not UNSET and memoryview(message.id)[0] not in _STARTS_OF_AN_ID:
        return _describe(line, "id: expected a string, a number or null")
    if message.method is not None:
        return message
    if message.error is not UNSET and bytes(message.error) == b"null":
        message.error = UNSET
    if message.result is UNSET and message.error is UNSET:
        return _describe(line, "the message has no method, and neither a result nor an error")
    if message.id is UNSET:
        return _describe(line, "the response has no id")
    return message


def _explain_unsound(line: bytes) -> Malformed:
    try:
        str(line, "utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        seen = _describe(line.decode("utf-8", "replace").encode(), problem)
        # A request gets a parse error as its answer. A response fails the call that it answers.
        return Malformed(ErrorCode.PARSE_ERROR, problem) if seen.answerable else seen
    return _describe(line, f"the message is nested deeper than {MAX_NESTING} levels, the limit")


def _explain(line: bytes, error: Exception) -> Malformed:
    """Explain why a line did not decode: it is not JSON, not an object, or not an envelope."""
    if not isinstance(error, msgspec.ValidationError):
        return Malformed(ErrorCode.PARSE_ERROR, _decode_problem(error))
    try:
        fields = _decode_fields(line)
    except msgspec.ValidationError:
        if not line.lstrip().startswith(b"["):
            return Malformed(ErrorCode.INVALID_REQUEST, "expected a JSON object")
        problem = "batches are not part of the protocol. Send one message per line"
        return Malformed(ErrorCode.INVALID_REQUEST, problem, answered_ids=_response_ids(line))
    except BAD_JSON as malformed:
        return Malformed(ErrorCode.PARSE_ERROR, _decode_problem(malformed))
    if bytes(fields.get("jsonrpc", b"")) != b'"2.0"':
        return _describe(line, 'jsonrpc: expected "2.0"')
    return _describe(line, "method: expected a string")


def _response_ids(batch: bytes) -> tuple[bytes, ...]:
    """Return the IDs of the responses in a batch."""
    try:
        messages = _decode_batch(batch)
    except BAD_JSON:
        return ()
    return tuple(bytes(message["id"]) for message in messages if "method" not in message and "id" in message)


def _describe(line: bytes, problem: str) -> Malformed:
    try:
        fields = _decode_fields(line)
    except BAD_JSON:  # nested so deeply that even skipping it fails
        return _describe_ends(line[:EDGE_BYTES], line[-EDGE_BYTES:], problem)
    id_ = bytes(fields.get("id", NULL_ID))
    is_response = "method" not in fields and ("result" in fields or "error" in fields)
    return Malformed(
        ErrorCode.INVALID_REQUEST,
        problem,
        id=id_ if id_[0] in _STARTS_OF_AN_ID else NULL_ID,
        answerable=not is_response,
    )


def _describe_ends(head: bytes, tail: bytes, problem: str) -> Malformed:
    """Refuse a message that cannot be decoded, under its own ID if one of its ends contains it."""
    seen = read_ends(head, tail)
    try:
        _decode_id(seen.id or NULL_ID)
    except BAD_JSON:
        return Malformed(ErrorCode.INVALID_REQUEST, problem)
    is_answerable = seen.kind in {"request", "unknown"}
    return Malformed(ErrorCode.INVALID_REQUEST, problem, id=seen.id or NULL_ID, answerable=is_answerable)


def _decode_problem(error: Exception) -> str:
    return str(error).removeprefix("JSON is malformed: ") if isinstance(error, msgspec.DecodeError) else "not JSON"


def _is_too_deep(line: bytes) -> bool:
    """Return whether the nesting exceeds the limit, without a Python loop."""
    if line.count(b"{") + line.count(b"[") <= MAX_NESTING:
        return False
    steps = _STRING.sub(b"", line).translate(_STEPS, delete=_ALL_BUT_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > MAX_NESTING


class MessageEnds(msgspec.Struct, frozen=True):
    """The kind and the ID of a message, as far as its two ends show them."""

    kind: MessageKind
    id: bytes | None = None


def read_ends(head: bytes, tail: bytes) -> MessageEnds:
    """Find the kind and ID of a message that is too long or too deep, from its two ends, which may overlap.

    IDs and methods are short. They are near the beginning of a message or at its very end, so only these parts are
    read.
    """
    kind: MessageKind = "unknown"
    found: bytes | None = None
    begin = len(head) - len(head.lstrip())
    at = begin + 1 if head[begin : begin + 1] == b"{" else len(head)
    while key := _KEY.match(head, at):
        kind = _KIND_BY_KEY.get(key[1], kind)
        value = _MEMBER.match(head, key.end())
        if value is None:
            break  # the long or deep member, or the last one: any later members are in the tail
        if key[1] == b'"id"':
            found = value[1]
        at = value.end()
    if found is None and (last := _LAST_ID.search(tail)):
        found = last[1]
    if found is not None and kind in {"notification", "unknown"}:
        kind = "request"  # the method may follow its long params, out of sight
    return MessageEnds(kind, found)
