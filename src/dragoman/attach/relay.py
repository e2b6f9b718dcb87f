"""The messages between an editor and a bridge, across broken connections.

    AWAY      not connected: the editor's messages wait, and expire after a limit
    GREETING  connected again: the relay repeats the editor's `initialize`
    OPEN      messages pass, except those of a session that is being resumed, which wait
    ENDED     the editor has left, or the bridge rejects the connection for good

No message is lost or repeated by a break. The bridge marks each record of a session with a cursor, and the relay
resumes a session after the last record that the editor received. The relay gives each prompt a key, so that the bridge
recognizes a repeated prompt. Other requests are sent again if that is harmless. Otherwise they are answered with an
error. The relay works for every version of ACP: apart from the marks it passes messages unchanged.
"""

import asyncio
import secrets
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw

from dragoman.attach.lines import OWN, MarkedLine, add_mark, unmark, unmark_result
from dragoman.attach.questions import AskedRequest, AskedRequests
from dragoman.attach.requests import (
    CANCEL,
    CANCEL_REQUEST,
    INITIALIZE,
    PROMPT,
    EditorMessage,
    EditorRequests,
    read_message,
)
from dragoman.attach.sessions import RESUME, AttachedSessions
from dragoman.errors import ErrorCode
from dragoman.wire import MAX_LINE_BYTES, Malformed, Message, Oversized, parse
from dragoman.wire.envelope import (
    decode_fields,
    encode,
    fields_of,
    make_error,
    make_request,
    make_result,
    session_of,
    string_of,
    with_id,
)
from dragoman.wire.message import parse_error, parse_mended
from dragoman.wire.transport import Transport

MAX_EDITOR_BYTES = MAX_LINE_BYTES - 4096
"""The longest message that a bridge accepts, minus room for the marks of the relay."""

_V1 = b"1"
_MAX_DIGITS = 9


class RelayState(Enum):
    """The state of the connection to the bridge."""

    AWAY = auto()
    GREETING = auto()
    OPEN = auto()
    ENDED = auto()


_NEXT = {
    RelayState.AWAY: {RelayState.GREETING, RelayState.OPEN, RelayState.ENDED},
    RelayState.GREETING: {RelayState.OPEN, RelayState.AWAY, RelayState.ENDED},
    RelayState.OPEN: {RelayState.AWAY, RelayState.ENDED},
    RelayState.ENDED: set[RelayState](),
}


class RelayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The longest times that the editor waits."""

    wait_s: float = 60.0
    """Limit for a message while the bridge is away. A restart is faster, and a user would not wait longer."""
    turn_s: float = 900.0
    """Limit for a prompt that the bridge received before the break, because its turn continues there."""


class Greeting(msgspec.Struct):
    """The editor's `initialize` and the important parts of its answer."""

    message: EditorMessage | None = None
    version: bytes | None = None
    """The negotiated version of ACP, or None before the answer."""
    keeps_cursors: bool = False
    """Whether the server sends cursors and accepts keys, as a bridge does. Otherwise a break loses running requests."""

    @property
    def params(self) -> dict[str, Any]:
        """The params for the bridge, with the relay's mark."""
        params = Raw(b"{}") if self.message is None else self.message.params
        fields = dict[str, Any](fields_of(params))
        is_v2 = "capabilities" in fields and "clientCapabilities" not in fields
        name = "capabilities" if is_v2 else "clientCapabilities"
        fields[name] = add_mark(fields.get(name, Raw(b"{}")), relay="1")
        return fields


class BridgeEnd(Protocol):
    """A connection to the bridge."""

    def write(self, line: bytes) -> None:
        """Send a line."""
        ...

    def drop(self, reason: str) -> None:
        """Close the connection for this reason."""
        ...


class _OwnRequests:
    """The relay's own requests to the bridge, the keys of prompts, and the last failure to reach the bridge."""

    def __init__(self) -> None:
        self.calls: dict[bytes, Callable[[Message], None]] = {}
        self.failure = ""
        self._name = secrets.token_hex(8)
        self._count = 0

    def add_call(self, answered: Callable[[Message], None]) -> bytes:
        """Register a request of the relay, and return its id."""
        id_ = b'"%b"' % self.make_key().encode()
        self.calls[id_] = answered
        return id_

    def make_key(self) -> str:
        """Return a new unique key."""
        self._count += 1
        return f"{self._name}-{self._count}"

    def is_key(self, key: str) -> bool:
        """Return whether this relay made a key."""
        return key.startswith(self._name)


class Relay:
    """Passes messages between one editor and one bridge."""

    def __init__(self, editor: Transport, bridge_name: str, limits: RelayLimits, report: Callable[[str], None]) -> None:
        self.state = RelayState.AWAY
        self.greeting = Greeting()
        self._editor = editor
        self._bridge: BridgeEnd | None = None
        self._bridge_name = bridge_name
        self._limits = limits
        self._report = report
        self._requests = EditorRequests()
        self._asked = AskedRequests()
        self._sessions = AttachedSessions()
        self._own = _OwnRequests()
        self._restoring: set[str] = set()

    def connected(self, bridge: BridgeEnd) -> None:
        """Use a new connection: send the waiting messages, or repeat the editor's `initialize` first."""
        self._bridge = bridge
        if self.greeting.version is None:
            self._move(RelayState.OPEN)
            self._flush()
        else:
            self._move(RelayState.GREETING)
            self._call(INITIALIZE, self.greeting.params, self._greeted)

    def lost(self, reason: str) -> None:
        """Handle a lost connection. Keep the requests that can be repeated, and answer the others with an error."""
        if self.state is RelayState.ENDED:
            return
        self._own.failure = reason
        self._move(RelayState.AWAY)
        self._bridge = None
        self._restoring.clear()
        self._own.calls.clear()
        for asked in self._asked.lose_connection():
            self._withdraw_from_editor(asked)
        for message in self._requests.lose_connection():
            problem = f"the connection to the bridge broke before it answered ({reason})"
            self._refuse(
                message, f"{problem}; it is unknown whether {message.method} was carried out; check and try again"
            )
        for message in self._requests.waiting():
            self._start_expiry(message)

    def record_failure(self, reason: str) -> None:
        """Store why the connection failed, for the errors of waiting messages."""
        self._own.failure = reason

    def end(self, problem: str | None = None) -> None:
        """End the relay. Answer every open request with the problem, if there is one."""
        if self.state is not RelayState.ENDED:
            self._move(RelayState.ENDED)
            for message in self._requests.pop_all():
                if problem is not None:
                    self._refuse(message, problem)

    def from_editor(self, line: bytes | Oversized) -> None:
        """Handle a line from the editor."""
        if isinstance(line, bytes) and len(line) <= MAX_EDITOR_BYTES:
            message, line = parse_mended(line)
        else:
            message = parse(line if isinstance(line, Oversized) else Oversized.of(line, MAX_EDITOR_BYTES))
        if isinstance(message, Malformed) or isinstance(line, Oversized):
            self._refuse_malformed(message)
        elif message.method is None:
            self._answered_by_editor(bytes(message.id or b""), line)
        else:
            self._handle(read_message(message, line))

    def from_bridge(self, line: bytes) -> None:
        """Handle a message from the bridge. Only valid messages reach the editor, each as one line."""
        line = line.replace(b"\n", b" ").replace(b"\r", b" ")  # unescaped line ends are white space in JSON
        message = parse(line)
        if isinstance(message, Malformed):
            self._report(f"the bridge sent an invalid message ({message.problem}); it was dropped")
        elif message.method is None:
            self._answered_by_bridge(message, line)
        elif message.id is not UNSET:
            self._ask(bytes(message.id), message, line)
        elif message.method == CANCEL_REQUEST:
            self._cancel_asked(message)
        else:
            self._pass_notification(line)

    # The editor's messages.

    def _handle(self, message: EditorMessage) -> None:
        """Send a request or notification now, or let it wait for the bridge and for earlier ones of its session."""
        if message.id is not None and self._requests.is_pending(message.id):
            problem = f"a request with the id {message.id.decode()} is still running; use a new id for each request"
            self._to_editor(make_error(message.id, ErrorCode.INVALID_REQUEST, problem))
            return
        if message.method == INITIALIZE:
            self.greeting.message = message
        if self.state is RelayState.AWAY and self._cancel_while_away(message):
            return
        if self._is_ready(message) and not self._requests.has_waiting(message.session_id):
            self._send(message)
        elif self._requests.wait(message):
            self._start_expiry(message)
        else:
            self._refuse(
                message, f"too many messages are waiting for the bridge at {self._bridge_name}; wait until it is back"
            )

    def _is_ready(self, message: EditorMessage) -> bool:
        return self.state is RelayState.OPEN and message.session_id not in self._restoring

    def _flush(self) -> None:
        for message in list(self._requests.pop_ready(self._is_ready)):
            self._send(message)

    def _send(self, message: EditorMessage) -> None:
        line, session_id = message.line, message.session_id
        if message.method == INITIALIZE:
            line = _with_params(line, self.greeting.params)
        elif message.method == PROMPT and self.greeting.keeps_cursors:
            message.key = message.key or self._own.make_key()
            line = _with_params(line, add_mark(message.params, key=message.key))
        elif not message.was_sent:
            self._sessions.begin(message.method, session_id)
        elif (cursor := self._sessions.cursor(session_id)) is not None:  # a repeated load continues
            line = _with_params(line, add_mark(message.params, after=cursor))
        self._requests.record_sent(message)
        self._to_bridge(line)

    def _cancel_while_away(self, message: EditorMessage) -> bool:
        """Cancel waiting requests while the bridge is away. Return whether the bridge need not see the cancellation."""
        if message.method == CANCEL_REQUEST:
            id_ = bytes(fields_of(message.params).get("requestId", b""))
            waiting = self._requests.find_waiting(id_)
            if waiting is None or waiting.was_sent:
                return False
            self._requests.withdraw(waiting)
            self._to_editor(make_error(id_, ErrorCode.REQUEST_CANCELLED, "the bridge did not receive it"))
            return True
        # In version 1 the answer to the prompt ends a cancelled turn. In version 2 only the bridge can end it.
        if message.method != CANCEL or self.greeting.version != _V1:
            return False
        prompts = self._requests.waiting_prompts(message.session_id)
        for prompt in prompts:
            self._requests.withdraw(prompt)
            self._to_editor(make_result(prompt.id or b"null", {"stopReason": "cancelled"}))
        return bool(prompts) and not any(prompt.was_sent for prompt in prompts)

    def _start_expiry(self, message: EditorMessage) -> None:
        if message.expiry is None and self.greeting.version is not None:  # the first connection has its own limit
            is_turn = message.method == PROMPT and message.was_sent
            delay_s = self._limits.turn_s if is_turn else self._limits.wait_s
            message.expiry = asyncio.get_running_loop().call_later(delay_s, self._expire, message, delay_s)

    def _expire(self, message: EditorMessage, delay_s: float) -> None:
        message.expiry = None
        if not self._requests.withdraw(message):
            return
        problem = f"the bridge at {self._bridge_name} did not accept it for {delay_s:g} s: {self._own.failure}"
        step = (
            "the turn may continue there: load the session when it is back" if message.was_sent else "try again later"
        )
        self._refuse(message, f"{problem}; {step}")

    def _refuse(self, message: EditorMessage, problem: str) -> None:
        if message.id is not None:
            self._to_editor(make_error(message.id, ErrorCode.INTERNAL_ERROR, problem))

    def _refuse_malformed(self, message: Message | Malformed) -> None:
        if not isinstance(message, Malformed):
            return
        if message.answerable:
            self._to_editor(make_error(message.id, message.code, message.problem))
        else:
            problem = f"the answer was dropped, because {message.problem}"
            self._answered_by_editor(message.id, make_error(message.id, ErrorCode.INTERNAL_ERROR, problem))

    # The bridge's messages.

    def _pass_notification(self, line: bytes) -> None:
        marked = unmark(line)
        if marked.session_id is not None and marked.cursor is not None:
            self._sessions.record_cursor(marked.session_id, marked.cursor)
        if not self._is_echo(marked):
            self._to_editor(marked.line)

    def _is_echo(self, marked: MarkedLine) -> bool:
        """Return whether a message repeats the editor's own prompt, which the editor already shows.

        A bridge sends no prompt back to its viewer, but does not recognize the relay after a break. Version 2 requires
        the prompt.
        """
        is_ours = marked.prompt_key is not None and self._own.is_key(marked.prompt_key)
        return is_ours and marked.session_id in self._restoring and self.greeting.version == _V1

    def _answered_by_bridge(self, message: Message, line: bytes) -> None:
        id_ = b"" if message.id is UNSET else bytes(message.id)
        if (call := self._own.calls.pop(id_, None)) is not None:
            call(message)
            return
        request = self._requests.pop_answered(id_)
        if request is None:
            self._report("the bridge sent an answer to no open request; it was dropped")
            return
        if message.result is not UNSET:
            line, own = unmark_result(line)
            self._sessions.end(request.method, request.params, message.result, own)
            if request.method == INITIALIZE:
                self.greeting.version = bytes(fields_of(message.result).get("protocolVersion", b""))
                self.greeting.keeps_cursors = bool(own)
        self._to_editor(line)

    def _greeted(self, message: Message) -> None:
        """Handle the answer to the repeated `initialize`: resume the sessions, then send the waiting messages."""
        version = bytes(fields_of(message.result).get("protocolVersion", b""))
        if message.error is not UNSET:
            self._drop_bridge(f"it cannot start the agent: {parse_error(message.error).text}")
        elif version != self.greeting.version:
            self._drop_bridge("it now speaks another version of ACP; start the agent again in the editor")
        else:
            self._move(RelayState.OPEN)
            opening = self._requests.waiting_openings()
            for session_id in self._sessions.ids():
                if session_id not in opening:
                    self._restoring.add(session_id)
                    self._call(RESUME, self._sessions.resume_params(session_id), partial(self._resumed, session_id))
            self._flush()

    def _resumed(self, session_id: str, message: Message) -> None:
        """Handle the answer to a `session/resume` of the relay."""
        self._restoring.discard(session_id)
        own = fields_of(fields_of(fields_of(message.result).get("_meta", UNSET)).get(OWN, UNSET))
        if message.error is not UNSET:
            error = parse_error(message.error)
            self._report(f"session {session_id} could not be resumed: {error.text}")
            if error.code == ErrorCode.RESOURCE_NOT_FOUND:
                self._sessions.forget(session_id)
        elif (cursor := string_of(own.get("cursor"))) is not None:
            self._sessions.record_cursor(session_id, cursor)
            if "reset" in own:
                self._report(f"session {session_id} has a different history now; load it again to see all of it")
        for settled in self._asked.expect(session_id, _count_of(own.get("asked"))):
            self._withdraw_from_editor(settled)
        self._flush()

    def _ask(self, bridge_id: bytes, message: Message, line: bytes) -> None:
        session_id = session_of(message.params)
        asked, is_known = self._asked.add(bridge_id, message.method or "", bytes(message.params), session_id)
        if not is_known:
            self._to_editor(with_id(line, asked.editor_id))
        elif (answer := self._asked.pop_answer(asked)) is not None:
            self._to_bridge(with_id(answer, bridge_id))
        if asked.is_question:
            for settled in self._asked.count_asked(session_id):
                self._withdraw_from_editor(settled)

    def _answered_by_editor(self, editor_id: bytes, line: bytes) -> None:
        asked = self._asked.add_answer(editor_id, line)
        if asked is not None and asked.bridge_id is not None:
            self._to_bridge(with_id(line, asked.bridge_id))

    def _cancel_asked(self, message: Message) -> None:
        asked = self._asked.find(bytes(fields_of(message.params).get("requestId", b"")))
        if asked is not None:
            self._withdraw_from_editor(asked)

    def _withdraw_from_editor(self, asked: AskedRequest) -> None:
        params = {"requestId": Raw(asked.editor_id)}
        self._to_editor(encode({"jsonrpc": "2.0", "method": CANCEL_REQUEST, "params": params}))

    # The two ends.

    def _call(self, method: str, params: dict[str, Any], answered: Callable[[Message], None]) -> None:
        id_ = self._own.add_call(answered)
        self._to_bridge(make_request(id_, method, params))

    def _drop_bridge(self, reason: str) -> None:
        if self._bridge is not None:
            self._bridge.drop(reason)

    def _to_bridge(self, line: bytes) -> None:
        if self._bridge is not None:
            self._bridge.write(line + b"\n")

    def _to_editor(self, line: bytes) -> None:
        self._editor.write(line + b"\n")

    def _move(self, state: RelayState) -> None:
        if state not in _NEXT[self.state]:
            raise AssertionError(f"a relay cannot go from {self.state.name} to {state.name}")
        self.state = state


def _count_of(raw: Raw | None) -> int:
    """Return a count from the bridge, or 0 for any other value."""
    digits = b"" if raw is None else bytes(raw)
    return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else 0


def _with_params(line: bytes, params: dict[str, Any]) -> bytes:
    fields = decode_fields(line)
    fields["params"] = Raw(encode(params))
    return encode(fields)
