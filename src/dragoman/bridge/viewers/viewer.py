"""One client of the bridge, such as an editor or a page, and its requests."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from dragoman.bridge.agent_link import AgentCall, AgentLink
from dragoman.bridge.envelope import is_given
from dragoman.bridge.translation import V1, V2, RequestTranslator, StreamTranslator, Version, not_found_data
from dragoman.bridge.viewers.capabilities import ViewerCapabilities
from dragoman.bridge.viewers.outbox import ViewerOutbox, ViewerStream
from dragoman.bridge.viewers.subscription import Subscription
from dragoman.errors import ErrorCode
from dragoman.protocol import methods
from dragoman.protocol.translate.session_for_v1 import SupportedUpdates
from dragoman.wire.envelope import fields_of, make_error, make_result, with_id
from dragoman.wire.message import NULL_ID

_MAX_BURST = 16
"""Windows of answers that may wait for a viewer whose stream has a waiting reader. It reads them at once."""

_MAX_EXPECTED = 1_000
"""Streams of one viewer for sessions that it has not opened yet."""

_unnamed = count(1)


class ViewerHandler(Protocol):
    """The bridge as seen by a viewer."""

    async def greet(self, viewer: "Viewer", line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP."""
        ...

    def receive(self, viewer: "Viewer", line: bytes) -> None:
        """Handle a message of a viewer."""
        ...

    def could_open(self, session_id: str) -> bool:
        """Return whether a session is here, or might be at the agent or at another node."""
        ...

    def is_part_of(self, session_id: str, of: str) -> bool:
        """Return whether a session is a subagent of another one, at any depth."""
        ...

    def viewer_left(self, viewer: "Viewer") -> None:
        """Detach a viewer everywhere. Its requests continue."""
        ...


class ViewerAccess(msgspec.Struct, frozen=True):
    """The rights of a viewer."""

    read_only: bool = False
    session_id: str | None = None
    """The only session that it may see, with its subagents. None for all sessions."""
    share_id: str | None = None
    """The share that admitted it. The share may end before the viewer leaves."""


class PendingRequests:
    """The unanswered requests of one viewer, by its own ids."""

    def __init__(self) -> None:
        self._agent_ids: dict[bytes, bytes] = {}
        """The id at the agent, empty until the request was sent."""
        self._opens: dict[bytes, str] = {}
        """The session that a request opens."""

    def __len__(self) -> int:
        return len(self._agent_ids)

    def __contains__(self, key: bytes) -> bool:
        return key in self._agent_ids

    def begin(self, key: bytes, opens: str | None) -> None:
        """Add a request, which may open a session."""
        self._agent_ids[key] = b""
        if opens is not None:
            self._opens[key] = opens

    def record_sent(self, key: bytes, agent_id: bytes) -> None:
        """Remember the id that a request has at the agent."""
        if key in self._agent_ids:
            self._agent_ids[key] = agent_id

    def agent_id(self, key: bytes) -> bytes | None:
        """Return the id of a request at the agent: empty if it was not sent, None if there is no such request."""
        return self._agent_ids.get(key)

    def opens(self, session_id: str) -> bool:
        """Return whether a request opens this session."""
        return session_id in self._opens.values()

    def end(self, key: bytes) -> None:
        """Forget a request."""
        self._agent_ids.pop(key, None)
        self._opens.pop(key, None)


class Viewer:
    """A client that speaks ACP with the bridge as if that were the agent."""

    def __init__(
        self,
        handler: ViewerHandler,
        window_bytes: int,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        access: ViewerAccess,
    ) -> None:
        self.id = str(uuid.uuid4())
        """Over HTTP this is the Acp-Connection-Id."""
        self.closed = asyncio.Event()
        """Set once it has left or was dropped."""
        self.close_reason: str | None = None
        """The reason why it was dropped. None if it was not."""
        self.access = access
        self.capabilities: ViewerCapabilities | None = None
        """None before `initialize` was answered."""
        self.terminal_names: dict[str, dict[str, str]] = {}
        """Per session, its own names of terminals that have other ids at the agent."""
        self.translator: RequestTranslator | None = None
        """Translates its requests, if it speaks another version than the agent."""
        self.requests = PendingRequests()
        self.outbox = ViewerOutbox(self.id, window_bytes)
        self.spawn = spawn
        self._window_bytes = window_bytes
        self._handler = handler

    @property
    def read_only(self) -> bool:
        """Whether it may only read."""
        return self.access.read_only

    @property
    def is_scoped(self) -> bool:
        """Whether it may see only one session."""
        return self.access.session_id is not None

    def sees(self, session_id: str) -> bool:
        """Return whether it may see a session."""
        only = self.access.session_id
        return only is None or session_id == only or self._handler.is_part_of(session_id, only)

    @property
    def knows_extensions(self) -> bool:
        """Whether it receives cursors and announcements."""
        return self.capabilities is not None and self.capabilities.extensions

    @property
    def has_cursors(self) -> bool:
        """Whether it receives each message with its cursor."""
        return self.capabilities is not None and (self.capabilities.extensions or self.capabilities.is_relay)

    @property
    def version(self) -> Version:
        """The version of ACP that it speaks."""
        return V1 if self.capabilities is None else self.capabilities.version

    def make_translator(self, session_id: str, name: Callable[[int], str]) -> StreamTranslator:
        """Return a translator for records of a session in the other version."""
        takes = SupportedUpdates() if self.capabilities is None else self.capabilities.takes
        return StreamTranslator(session_id, self.version, takes, name)

    @property
    def takes_subagents(self) -> bool:
        """Whether it shows sessions that an agent makes for parts of its work."""
        return self.capabilities is not None and self.capabilities.takes.subagents

    @property
    def replace_unsupported(self) -> Callable[[bytes], bytes] | None:
        """Replace updates that it does not support. None if it supports all."""
        return None if self.capabilities is None else self.capabilities.replace_unsupported

    def name_terminal(self, session_id: str, id_: str, own: str) -> None:
        """Note its own name of a terminal that has another id at the agent."""
        names = self.terminal_names.setdefault(session_id, {})
        names[id_] = own
        names.setdefault(own, id_)

    def forget_terminals(self) -> None:
        """Forget its names of terminals, because the agent that had them is gone."""
        self.terminal_names.clear()

    @property
    def over_http(self) -> bool:
        """Whether it uses HTTP, with a stream per session."""
        return self.outbox.over_http

    async def greet(self, line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP, which must be `initialize`."""
        self.outbox.use_http()
        return await self._handler.greet(self, line)

    def receive(self, line: bytes) -> None:
        """Handle a message. A malformed one is answered with a JSON-RPC error."""
        if not self.closed.is_set():
            self._handler.receive(self, line)

    def stream(self) -> ViewerStream:
        """Return one stream of all messages. A stream opened before ends."""
        return self.outbox.stream()

    def connection_stream(self, last_event_id: str | None) -> ViewerStream:
        """Return the stream of messages that belong to no session or open one."""
        return self.outbox.connection_stream(last_event_id)

    def session_stream(self, session_id: str, last_event_id: str | None) -> ViewerStream | None:
        """Return the stream of one session. None if the viewer can neither have nor open it."""
        subscriptions = self.outbox.subscriptions
        if not self.sees(session_id):
            return None
        if session_id not in subscriptions:
            expected = sum(subscription.history is None for subscription in subscriptions.values())
            if expected >= _MAX_EXPECTED or not self._handler.could_open(session_id):
                return None
        return self.outbox.session_stream(self.subscribe(session_id), last_event_id)

    def knows(self, session_id: str) -> bool:
        """Return whether this viewer is on a session, or has asked to open it."""
        return session_id in self.outbox.subscriptions or self.requests.opens(session_id)

    async def close(self) -> None:
        """Detach it everywhere. Its requests continue."""
        self._handler.viewer_left(self)

    def drop(self, reason: str) -> None:
        """Close it for a reason."""
        if not self.closed.is_set():
            self.close_reason = reason
            self._handler.viewer_left(self)

    def drop_if_stalled(self, stall_s: float, now: float) -> None:
        """Close it if it has read nothing for so long although messages were waiting."""
        if self.outbox.is_stalled(stall_s, now):
            self.drop(f"it read nothing for {stall_s:g} s although messages were waiting")

    def end(self) -> None:
        """End all its streams, and wake the tasks that wait for that."""
        self.closed.set()
        self.outbox.end()

    def subscription(self, session_id: str | None) -> Subscription | None:
        """Return its subscription to a session, if it has one."""
        return None if session_id is None else self.outbox.subscriptions.get(session_id)

    def subscribe(self, session_id: str) -> Subscription:
        """Return the subscription to a session. Create it if there is none."""
        return self.outbox.subscribe(self, session_id)

    def send(
        self,
        data: bytes,
        subscription: Subscription | None = None,
        after: int | None = None,
    ) -> None:
        """Queue a message after a record of a session, by default the last one, or in the stream of the connection."""
        if subscription is not None and subscription.history is None:
            subscription = None
        if self._takes_more(subscription):
            self.outbox.put(data, subscription, after)

    def send_opened(self, data: bytes, subscription: Subscription, after: int) -> None:
        """Queue the answer to a request that opened a session. Over HTTP it goes to the stream of the connection."""
        if not self.over_http:
            self.send(data, subscription, after)
        elif self._takes_more(None):
            self.outbox.put_gated(data, subscription, after)

    def refuse(self, id_: bytes, code: int, problem: Any, subscription: Subscription | None = None) -> None:
        """Answer a request of the viewer with an error."""
        self.send(make_error(id_, code, problem), subscription)

    def has_room(self) -> bool:
        """Return whether its backlog is small enough for messages that it can miss."""
        return self.outbox.backlog_bytes < self._window_bytes // 2

    def wake(self, subscription: Subscription) -> None:
        """Wake its streams for a subscription."""
        self.outbox.wake(subscription)

    def _takes_more(self, subscription: Subscription | None) -> bool:
        """Return whether it may be sent more. Drop a viewer that leaves too many answers unread."""
        window = self._window_bytes
        if self.closed.is_set() or self.outbox.backlog_bytes <= window:
            return not self.closed.is_set()
        if self.outbox.is_hungry(subscription) and self.outbox.backlog_bytes <= _MAX_BURST * window:
            return True
        self.drop(f"it left more than {window} bytes of answers unread")
        return False


class RepeatablePrompt(msgspec.Struct, eq=False):
    """A prompt with a key. A client that lost its connection sends it again, and it still starts only one turn."""

    key: str
    request: "ViewerRequest | None"
    """None once it is answered, because it may be large and its viewer gone."""
    answer: bytes | None = None
    journal_answer: Callable[[str, bytes], None] | None = None
    """Journals the answer under the key, once the prompt itself is journalled."""

    def answered(self, line: bytes) -> None:
        """Keep the answer."""
        self.answer, self.request = line, None
        if self.journal_answer is not None:
            self.journal_answer(self.key, line)


class ViewerRequest(msgspec.Struct):
    """A request of a viewer, as received and decoded. It is answered exactly once.

    Its method, params and line are in the version of the agent, its answers are given in that version, and the viewer
    gets them in its own.
    """

    viewer: Viewer
    id: bytes
    method: str
    params: Raw
    session_id: str | None
    """The session that it is about."""
    line: bytes
    given: bytes
    """The line as the viewer sent it."""
    agent_version: Version = V1
    """The version of ACP that the agent spoke when it was received."""
    translator: RequestTranslator | None = None
    """The translator of its answer, if it was translated."""
    key: bytes = b""
    """Its key among the unanswered requests: its id, or a generated one if its id is null."""
    is_over: bool = False
    """Whether it was answered. Another answer is dropped."""
    repeatable: "RepeatablePrompt | None" = None
    """Its record as a prompt that may be sent again, if it has a key."""

    @property
    def wants_replay(self) -> bool:
        """Whether it opens a session with its whole history."""
        return self.method == methods.SESSION_LOAD.name or is_given(fields_of(self.params).get("replayFrom"))

    def begin(self, *, opens: str | None = None) -> None:
        """Add it to the unanswered requests. `opens` is the session that it opens."""
        self.key = self.id if self.id != NULL_ID else b"null %d" % next(_unnamed)
        self.viewer.requests.begin(self.key, opens)

    def send_to(self, link: AgentLink) -> AgentCall:
        """Send it to the agent at once."""
        call = link.call(self.method, self.line, origin=self)
        self.record_sent(call.id)
        return call

    def record_sent(self, agent_id: bytes) -> None:
        """Remember the id that it has at the agent, in case it is cancelled."""
        self.viewer.requests.record_sent(self.key, agent_id)

    def continue_as(self, again: "ViewerRequest") -> None:
        """Send the answer to the same request, which came again over another connection."""
        agent_id = self.viewer.requests.agent_id(self.key)
        self.viewer.requests.end(self.key)
        self.viewer, self.id, self.key, self.translator = again.viewer, again.id, again.key, again.translator
        if agent_id:
            self.record_sent(agent_id)

    def answer(self, result: Any) -> None:
        """Answer it."""
        self._send(make_result(self.id, result))

    def pass_on(self, line: bytes) -> None:
        """Answer it with the agent's answer."""
        self._send(with_id(line, self.id))

    def refuse(self, code: int, problem: Any) -> None:
        """Answer it with an error."""
        if code == ErrorCode.RESOURCE_NOT_FOUND and self.viewer.version == V2:
            problem = not_found_data(problem, self.session_id)
        self._send(make_error(self.id, code, problem))

    def fail(self, data: dict[str, Any]) -> None:
        """Answer that the agent is gone, with the data of its failure."""
        self.refuse(ErrorCode.INTERNAL_ERROR, data)

    def answer_opened(self, result: Any, subscription: Subscription, after: int) -> None:
        """Answer a request that opened a session."""
        self.pass_opened(make_result(self.id, result), subscription, after)

    def pass_opened(self, line: bytes, subscription: Subscription, after: int) -> None:
        """Answer a request that opened a session with the agent's answer."""
        if self.end():
            answer, *updates = self._translate(with_id(line, self.id))
            self.viewer.send_opened(answer, subscription, after)
            for update in updates:
                self.viewer.send(update, subscription)

    def end(self) -> bool:
        """Mark it as answered. Return False if it was already."""
        was_over, self.is_over = self.is_over, True
        self.viewer.requests.end(self.key)
        return not was_over

    def _translate(self, line: bytes) -> list[bytes]:
        return [line] if self.translator is None else self.translator.answer(line)

    def _send(self, line: bytes) -> None:
        if self.repeatable is not None:
            self.repeatable.answered(line)
        if self.end():
            for each in self._translate(line):
                self.viewer.send(each, self.viewer.subscription(self.session_id))
            self.viewer.outbox.push()
