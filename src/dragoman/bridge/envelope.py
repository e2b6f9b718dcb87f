"""Partial decoding and editing of JSON-RPC lines, without decoding their payloads.

Most traffic is ordinary updates: lines that a session only stores and forwards. `ordinary_runs` recognizes a whole
block of them with one call of the decoder, and `add_cursors` marks them by inserting bytes. Both fall back to a slower
path for every line that does not have exactly the expected form.
"""

import re
from collections.abc import Mapping
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import ErrorCode
from dragoman.protocol import methods
from dragoman.store.block import LINE_HEAD, write_numbers
from dragoman.text.secret import hide_command_secrets
from dragoman.wire import HEADS, Message
from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of, with_param
from dragoman.wire.message import BAD_JSON, SURELY_SHALLOW_BYTES, is_sound, parse_error

ELICIT = methods.ELICITATION_CREATE.name

UPDATE = b'"session/update"'
"""Bytes that every update contains."""

SUBAGENT = b'"subagent_update"'
"""Bytes that every update about a subagent contains."""

_UPDATE_HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{'
_END = b"}}\n"

_TERMINAL = re.compile(rb'("terminalId"\s*:\s*)("(?:[^"\\]|\\.)*+")', re.DOTALL)
"""A terminal id anywhere in a message. Inside a string the quotes would be escaped."""


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
    """An impossible range, so that a message with an id does not decode as this type."""


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
_decode_bare = msgspec.json.Decoder(_Bare).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode


def session_of_update(line: bytes) -> str | None:
    """Return the session of a `session/update`, or None for any other line."""
    try:
        update = _decode_update(line)
    except BAD_JSON:
        return None
    if update.method != "session/update" or update.jsonrpc != "2.0" or update.id is not UNSET:
        return None
    return update.params.session_id


class OrdinaryRun(msgspec.Struct, gc=False):
    """Consecutive ordinary updates of one session, one per line."""

    session_id: str
    lines: bytes
    count: int
    has_user_messages: bool = False
    """Whether the block that it came in has messages of the user."""


def ordinary_runs(block: bytes) -> list[OrdinaryRun] | None:
    """Split a block of lines into runs of ordinary updates, one per session. Return None if any other line is in it.

    A session stores and forwards ordinary updates without looking at them. The lines are really decoded, by one call,
    so that text which only looks like a session id cannot deceive the bridge.
    """
    if block.find(UPDATE, 0, block.find(b"\n")) < 0:
        return None  # usually a single line with an answer
    lines = block[:-1].split(b"\n")
    # In the order of bytes, all lines are between the least and the greatest. If these two have the head, all have it.
    if not (min(lines).startswith(LINE_HEAD) and max(lines).startswith(LINE_HEAD)) or b"\r" in block:
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
    has_user_messages = "user_message_chunk" in {update.params.update.session_update for update in updates}
    if len(set(sessions)) == 1:
        return [OrdinaryRun(sessions[0], block, len(lines), has_user_messages)]
    grouped = groupby(zip(sessions, lines, strict=True), key=itemgetter(0))
    return [_join_run(name, [line for _, line in run], has_user_messages=has_user_messages) for name, run in grouped]


def _join_run(session_id: str, lines: list[bytes], *, has_user_messages: bool) -> OrdinaryRun:
    return OrdinaryRun(session_id, b"\n".join([*lines, b""]), len(lines), has_user_messages)


def parse_list(raw: Raw | None) -> list[Raw]:
    """Return the items of a JSON list, or an empty list for any other value."""
    try:
        return [] if raw is None else _decode_list(raw)
    except BAD_JSON:
        return []


def without_secrets(block: Raw) -> Raw:
    """Return a block of a prompt without the secrets in a `/mcp` command, so that it can be stored."""
    text = string_of(fields_of(block).get("text")) if b"/mcp" in bytes(block) else None
    if text is None or (kept := hide_command_secrets(text)) == text:
        return block
    return Raw(encode({**fields_of(block), "text": kept}))


def is_given(raw: Raw | None) -> bool:
    """Return whether a capability is present, and neither null nor false."""
    return raw is not None and bytes(raw) not in (b"null", b"false")


def is_unrouted(message: Message) -> bool:
    """Return whether an answer says that the method does not exist."""
    return message.error is not UNSET and parse_error(message.error).code == ErrorCode.METHOD_NOT_FOUND


def make_notification(method: str, params: Any) -> bytes:
    """Return a notification from the bridge as a line."""
    return b"%b%b}" % (HEADS[method], encode(params))


def with_result_meta(line: bytes, own: Mapping[str, Any]) -> bytes:
    """Add the data of our extensions to the result of an answer, as `result._meta.dragoman`."""
    fields = decode_fields(line)
    result = fields_of(fields.get("result", UNSET))
    meta = {**fields_of(result.get("_meta", UNSET)), "dragoman": own}
    fields["result"] = Raw(encode({**result, "_meta": meta}))
    return encode(fields)


def add_cursor(line: bytes, cursor: bytes, time_ms: int) -> bytes:
    """Add the cursor and the time to a notification, as `params._meta.dragoman`."""
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
    """Add cursors and the time to consecutive notifications, one per line."""
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
    """Return whether all lines are updates without `_meta` that end with their params.

    Such a line begins with `jsonrpc` and `method` in their usual form, has no member except these and `params`, and
    ends with the two closing braces. Its params have only `sessionId` and `update`.
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
    """Return a notification with another session id."""
    return with_param(line, "sessionId", session_id)


def with_update(line: bytes, update: Mapping[str, Any]) -> bytes:
    """Return a notification with another update."""
    return with_param(line, "update", update)


def rename_request(line: bytes, id_: bytes) -> bytes:
    """Return a message with another request id in its params."""
    return with_param(line, "requestId", Raw(id_))


def rename_terminals(line: bytes, names: Mapping[str, str]) -> bytes:
    """Return a message from the agent with the viewer's terminal ids."""
    return _TERMINAL.sub(partial(_rename_terminal, names), line) if b'"terminalId"' in line else line


def _rename_terminal(names: Mapping[str, str], found: "re.Match[bytes]") -> bytes:
    name = names.get(string_of(Raw(found[2])) or "")
    return found[0] if name is None else found[1] + encode(name)


def rename_server(line: bytes, server_id: str) -> bytes:
    """Return a message with another MCP server id in its params."""
    return with_param(line, "serverId", server_id)


def _params_are_last(line: bytes) -> bool:
    """Return whether a line ends with its params and these are not empty."""
    try:
        bare = _decode_bare(line)
    except BAD_JSON:
        return False
    params = bytes(bare.params)
    return line.endswith(params + b"}") and params[1:-1].strip() != b""
