"""JSON-RPC lines taken apart and put together; their payloads are not decoded."""

import re
from collections.abc import Mapping
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import ErrorCode
from dragoman.store.block import LINE_HEAD, write_numbers
from dragoman.text.secret import hide_command_secrets
from dragoman.wire import HEADS, Message
from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of, with_param
from dragoman.wire.envelope import make_error as make_error  # noqa: PLC0414 -- given on, as the next three
from dragoman.wire.envelope import make_request as make_request  # noqa: PLC0414
from dragoman.wire.envelope import make_result as make_result  # noqa: PLC0414
from dragoman.wire.envelope import with_id as with_id  # noqa: PLC0414
from dragoman.wire.message import BAD_JSON, SURELY_SHALLOW_BYTES, is_sound, parse_error

ELICIT = "elicitation/create"

UPDATE = b'"session/update"'
"""Bytes that stand in every update."""

SUBAGENT = b'"subagent_update"'
"""Bytes that stand in every update that announces a subagent."""

_UPDATE_HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{'
_END = b"}}\n"

_TERMINAL = re.compile(rb'("terminalId"\s*:\s*)("(?:[^"\\]|\\.)*+")', re.DOTALL)
"""A terminal id, wherever a message has one: inside a string its quotes would not be bare."""


class _SessionParams(msgspec.Struct, gc=False, rename="camel"):
    session_id: str


class _Update(msgspec.Struct, gc=False):
    jsonrpc: str
    method: str
    params: _SessionParams
    id: Raw | UnsetType = UNSET


class _OrdinaryKind(msgspec.Struct, gc=False):
    session_update: Literal[
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        # of version 2
        "agent_message",
        "agent_thought",
        "tool_call_content_chunk",
        "terminal_update",
        "terminal_output_chunk",
        "plan_update",
        "plan_removed",
    ] = msgspec.field(name="sessionUpdate")


class _OrdinaryParams(msgspec.Struct, gc=False, rename="camel"):
    session_id: str
    update: _OrdinaryKind


class _Ordinary(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _OrdinaryParams
    id: Annotated[int, msgspec.Meta(ge=1, le=0)] = 0
    """No number is like that: a message with an id does not decode as this."""


class _LastParams(msgspec.Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    session_id: Raw
    update: Raw


class _LastIsParams(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: _LastParams


class _Bare(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    jsonrpc: Raw
    method: Raw
    params: Raw


_decode_update = msgspec.json.Decoder(_Update).decode
_decode_ordinary = msgspec.json.Decoder(_Ordinary).decode_lines
_decode_last_is_params = msgspec.json.Decoder(_LastIsParams).decode_lines
_decode_session = msgspec.json.Decoder(_SessionParams).decode
_decode_bare = msgspec.json.Decoder(_Bare).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode


def session_of_update(line: bytes) -> str | None:
    """Give the session of a `session/update`; None if the line is anything else."""
    try:
        update = _decode_update(line)
    except BAD_JSON:
        return None
    if update.method != "session/update" or update.jsonrpc != "2.0" or update.id is not UNSET:
        return None
    return update.params.session_id


class OrdinaryRun(msgspec.Struct, gc=False):
    """Updates of one session that follow each other and that it takes without a look at them, each a line."""

    session_id: str
    lines: bytes
    count: int


def ordinary_runs(block: bytes) -> list[OrdinaryRun] | None:
    """Cut a block of lines into runs, each the updates of one session; None if any line is anything else.

    Ordinary updates are those that a session takes without a look at them. All lines are decoded by one call: so the
    session is the one that any other decoder finds, whatever else in a line looks like a session id.
    """
    if block.find(UPDATE, 0, block.find(b"\n")) < 0:
        return None  # most often the one line of an answer
    lines = block[:-1].split(b"\n")
    if block.count(b"\n" + LINE_HEAD) != len(lines) - 1 or not block.startswith(LINE_HEAD) or b"\r" in block:
        return None
    if max(map(len, lines)) > SURELY_SHALLOW_BYTES and not all(
        is_sound(line) for line in lines if len(line) > SURELY_SHALLOW_BYTES
    ):
        return None
    try:
        if not block.isascii():
            str(block, "utf-8")
        updates = _decode_ordinary(block)
    except BAD_JSON:
        return None
    sessions = [update.params.session_id for update in updates]
    if len(set(sessions)) == 1:
        return [OrdinaryRun(sessions[0], block, len(lines))]
    grouped = groupby(zip(sessions, lines, strict=True), key=itemgetter(0))
    return [_join_run(name, [line for _, line in run]) for name, run in grouped]


def _join_run(session_id: str, lines: list[bytes]) -> OrdinaryRun:
    return OrdinaryRun(session_id, b"\n".join([*lines, b""]), len(lines))


def session_of(params: Raw) -> str | None:
    """Give the session that params name."""
    try:
        return _decode_session(params).session_id
    except BAD_JSON:
        return None


def parse_list(raw: Raw | None) -> list[Raw]:
    """Give the items of a list; anything else has none."""
    try:
        return [] if raw is None else _decode_list(raw)
    except BAD_JSON:
        return []


def without_secrets(block: Raw) -> Raw:
    """Give a block of a prompt as it may be kept: without the secrets of a server that the person adds."""
    text = string_of(fields_of(block).get("text")) if b"/mcp" in bytes(block) else None
    if text is None or (kept := hide_command_secrets(text)) == text:
        return block
    return Raw(encode({**fields_of(block), "text": kept}))


def is_given(raw: Raw | None) -> bool:
    """Tell whether a capability is there: absent, null and false are not."""
    return raw is not None and bytes(raw) not in (b"null", b"false")


def is_unrouted(message: Message) -> bool:
    """Tell whether an answer says that there is no such method."""
    return message.error is not UNSET and parse_error(message.error).code == ErrorCode.METHOD_NOT_FOUND


def make_notification(method: str, params: Any) -> bytes:
    """Make a notification of the bridge."""
    return b"%b%b}" % (HEADS[method], encode(params))


def with_result_meta(line: bytes, own: Mapping[str, Any]) -> bytes:
    """Add to the result of an answer what our extensions tell, as `result._meta.dragoman`."""
    fields = decode_fields(line)
    result = fields_of(fields.get("result", UNSET))
    meta = {**fields_of(result.get("_meta", UNSET)), "dragoman": own}
    fields["result"] = Raw(encode({**result, "_meta": meta}))
    return encode(fields)


def add_cursor(line: bytes, cursor: bytes, time_ms: int) -> bytes:
    """Add to a notification its cursor and its time, as `params._meta.dragoman`."""
    note = b'{"cursor":"%b","time":%d}' % (cursor, time_ms)
    if line.endswith(b"}}") and b'"_meta"' not in line and _params_are_last(line):
        return b'%b,"_meta":{"dragoman":%b}}}' % (line[:-2], note)
    fields = decode_fields(line)
    params = fields_of(fields.get("params", UNSET))
    meta = fields_of(params.get("_meta", UNSET))
    meta["dragoman"] = Raw(note)
    fields["params"] = Raw(encode({**params, "_meta": meta}))
    return encode(fields)


def add_cursors(lines: bytes, epoch: bytes, first: int, time_ms: int) -> bytes:
    """Add to notifications that follow each other, each a line, their cursors and their time."""
    count = lines.count(b"\n")
    numbers = write_numbers(first, count)
    if _can_insert(lines, count):
        begin = b',"_meta":{"dragoman":{"cursor":"%b.' % epoch
        end = b'","time":%d}}}}\n' % time_ms
        pieces = zip(lines.split(_END)[:-1], repeat(begin), numbers, repeat(end))
        return b"".join(chain.from_iterable(pieces))
    cursors = [b"%b.%b" % (epoch, number) for number in numbers]
    messages = lines[:-1].split(b"\n")
    added = [add_cursor(line, cursor, time_ms) for line, cursor in zip(messages, cursors, strict=True)]
    return b"\n".join([*added, b""])


def _can_insert(lines: bytes, count: int) -> bool:
    """Tell whether all lines are updates that end with their params, in which there is no `_meta`.

    They have the three members of a notification, the first two in their usual place, and end with the braces of the
    third and of the whole; the params have `sessionId` and `update` alone.
    """
    heads = lines.count(b"\n" + _UPDATE_HEAD) + lines.startswith(_UPDATE_HEAD)
    if heads != count or lines.count(_END) != count:
        return False
    try:
        _decode_last_is_params(lines)
    except BAD_JSON:
        return False
    return True


def rename_session(line: bytes, session_id: str) -> bytes:
    """Have a notification name another session."""
    return with_param(line, "sessionId", session_id)


def with_update(line: bytes, update: Mapping[str, Any]) -> bytes:
    """Have a notification tell another update."""
    return with_param(line, "update", update)


def rename_request(line: bytes, id_: bytes) -> bytes:
    """Have a message be about a request of another id."""
    return with_param(line, "requestId", Raw(id_))


def rename_terminals(line: bytes, names: Mapping[str, str]) -> bytes:
    """Have a message of the agent name terminals as its viewer does."""
    return _TERMINAL.sub(partial(_rename_terminal, names), line) if b'"terminalId"' in line else line


def _rename_terminal(names: Mapping[str, str], found: "re.Match[bytes]") -> bytes:
    name = names.get(string_of(Raw(found[2])) or "")
    return found[0] if name is None else found[1] + encode(name)


def rename_server(line: bytes, server_id: str) -> bytes:
    """Have a message be about an MCP server of another id."""
    return with_param(line, "serverId", server_id)


def _params_are_last(line: bytes) -> bool:
    """Tell whether a line has nothing after its params, which are an object with something in it."""
    try:
        bare = _decode_bare(line)
    except BAD_JSON:
        return False
    params = bytes(bare.params)
    return line.endswith(params + b"}") and params[1:-1].strip() != b""
