"""One client of the bridge: an editor, a program, or a page; and its requests."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery.outbox import ViewerOutbox, ViewerStream
from dragoman.bridge.delivery.subscription import Subscription
from dragoman.bridge.delivery.untaken import teller_of
from dragoman.bridge.envelope import (
    ELICIT,
    encode,
    fields_of,
    is_given,
    make_error,
    make_result,
    session_of,
    string_of,
    with_id,
)
from dragoman.bridge.translation import V1, V2, RequestTranslator, StreamTranslator, Version, not_found_data
from dragoman.errors import ErrorCode
from dragoman.protocol.translate.session_for_v1 import ClientTakes
from dragoman.protocol.translate.session_for_v1 import read_capabilities as read_taken
from dragoman.wire.message import BAD_JSON, NULL_ID

_MAX_BURST = 16
"""Windows of answers, for a viewer that waits for them: it takes them as soon as all its requests are answered."""

_MAX_EXPECTED = 1_000
"""Streams that a viewer opens for sessions before it opens those."""

_unnamed = count(1)


class ViewerHandler(Protocol):
    """The bridge as a viewer meets it."""

    async def greet(self, viewer: "Viewer", line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP."""
        ...

    def receive(self, viewer: "Viewer", line: bytes) -> None:
        """Take a message of a viewer."""
        ...

    def could_open(self, session_id: str) -> bool:
        """Tell whether a session is here, or might be at the agent or at another node."""
        ...

    def is_part_of(self, session_id: str, of: str) -> bool:
        """Tell whether a session is a subagent of another one, at any depth."""
        ...

    def viewer_left(self, viewer: "Viewer") -> None:
        """Detach a viewer everywhere; its requests go on."""
        ...


class ViewerCapabilities(msgspec.Struct, frozen=True):
    """The requests of the agent that a viewer takes, and the form in which it wants messages."""

    methods: frozenset[str] = frozenset()
    """Methods that need a capability, and that it has."""
    extensions: bool = False
    """It knows our extensions: it is told the cursor of each message, and the state of sessions."""
    is_relay: bool = False
    """It passes messages on to a client that knows none of our extensions, and is told cursors alone."""
    read_only: bool = False
    notices: bool = False
    """It shows notices, which are about a conversation and not in it."""
    version: Version = V1
    """The version of ACP that it speaks."""
    takes: ClientTakes = ClientTakes()
    """The updates that it takes beyond the usual ones."""
    tell_untaken: Callable[[bytes], bytes] | None = None
    """Changes lines of version 1 that have others; None if it takes all, or speaks version 2."""

    def can(self, method: str, params: Raw) -> bool:
        """Tell whether it may be sent a request."""
        if method == ELICIT:
            mode = string_of(fields_of(params).get("mode")) or "form"
            return f"{ELICIT}:{mode}" in self.methods
        if method.startswith("terminal/"):
            return "terminal" in self.methods
        return not method.startswith("fs/") or method in self.methods


def read_capabilities(params: Raw, version: Version = V1) -> ViewerCapabilities:
    """Read the params of `initialize`, of either version."""
    capabilities = _inside(fields_of(params), "clientCapabilities" if version == V1 else "capabilities")
    methods: set[str] = set()
    files = _inside(capabilities, "fs")
    if is_given(files.get("readTextFile")):
        methods.add("fs/read_text_file")
    if is_given(files.get("writeTextFile")):
        methods.add("fs/write_text_file")
    if is_given(capabilities.get("terminal")):
        methods.add("terminal")
    if is_given(capabilities.get("elicitation")):
        modes = [mode for mode, given in _inside(capabilities, "elicitation").items() if is_given(given)]
        # An empty object is how the first draft of the capability offered forms.
        methods.update(f"{ELICIT}:{mode}" for mode in modes or ["form"])
    own = _inside(_inside(capabilities, "_meta"), "dragoman")
    extensions, read_only = is_given(own.get("viewer")), is_given(own.get("readOnly"))
    is_relay = is_given(own.get("relay")) and not extensions
    if version == V2:
        # Every client of it takes notices, compactions and subagents, and none has files or terminals for the agent.
        methods = {method for method in methods if method.startswith(ELICIT)}
        takes = ClientTakes(notices=True, compaction=True, subagents=True)
        return ViewerCapabilities(
            frozenset(methods), extensions, is_relay, read_only, notices=True, version=V2, takes=takes
        )
    notices = is_given(_inside(capabilities, "session").get("notices"))
    takes = _read_taken(capabilities)
    tell = teller_of(takes)
    return ViewerCapabilities(
        frozenset(methods), extensions, is_relay, read_only, notices, takes=takes, tell_untaken=tell
    )


def _read_taken(capabilities: dict[str, Raw]) -> ClientTakes:
    try:
        return read_taken(msgspec.json.decode(encode(capabilities)))
    except BAD_JSON:
        return ClientTakes()  # a number out of range is JSON, and means nothing here


def _inside(fields: dict[str, Raw], key: str) -> dict[str, Raw]:
    return fields_of(fields.get(key, UNSET))


class ViewerAccess(msgspec.Struct, frozen=True):
    """What a viewer may do and see."""

    read_only: bool = False
    session_id: str | None = None
    """The one session that it may see, with the subagents of that; None for all."""
    share_id: str | None = None
    """The share by which it was let in, which may end before it leaves."""


class PendingRequests:
    """Requests of one viewer that are under way, by its own ids."""

    def __init__(self) -> None:
        self._agent_ids: dict[bytes, bytes] = {}
        """The id at the agent, empty until the request is there."""
        self._opens: dict[bytes, str] = {}
        """The session that a request wants opened."""

    def __len__(self) -> int:
        return len(self._agent_ids)

    def __contains__(self, key: bytes) -> bool:
        return key in self._agent_ids

    def begin(self, key: bytes, opens: str | None) -> None:
        """Count a request, which may want a session opened."""
        self._agent_ids[key] = b""
        if opens is not None:
            self._opens[key] = opens

    def note_sent(self, key: bytes, agent_id: bytes) -> None:
        """Remember the id that a request has at the agent."""
        if key in self._agent_ids:
            self._agent_ids[key] = agent_id

    def agent_id(self, key: bytes) -> bytes | None:
        """Give the id that a request has at the agent: empty before it is there, None if there is no such request."""
        return self._agent_ids.get(key)

    def opens(self, session_id: str) -> bool:
        """Tell whether a request wants this session opened."""
        return session_id in self._opens.values()

    def end(self, key: bytes) -> None:
        """Forget a request."""
        self._agent_ids.pop(key, None)
        self._opens.pop(key, None)


class Viewer:
    """Speaks ACP with the bridge as if it were the agent."""

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
        """Set once it is gone, also when it was dropped."""
        self.close_reason: str | None = None
        """The reason why it was dropped, in words; None if it was not."""
        self.access = access
        self.capabilities: ViewerCapabilities | None = None
        """None before `initialize` was answered."""
        self.terminal_names: dict[str, dict[str, str]] = {}
        """By session: its own names of terminals that the agent knows by others."""
        self.translator: RequestTranslator | None = None
        """Between its version and that of the agent, if they speak different ones."""
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
        """Whether it may see one session alone."""
        return self.access.session_id is not None

    def sees(self, session_id: str) -> bool:
        """Tell whether it may see a session."""
        only = self.access.session_id
        return only is None or session_id == only or self._handler.is_part_of(session_id, only)

    @property
    def knows_extensions(self) -> bool:
        """Whether it gets cursors and announcements."""
        return self.capabilities is not None and self.capabilities.extensions

    @property
    def has_cursors(self) -> bool:
        """Whether it gets each message with its cursor."""
        return self.capabilities is not None and (self.capabilities.extensions or self.capabilities.is_relay)

    @property
    def version(self) -> Version:
        """The version of ACP that it speaks."""
        return V1 if self.capabilities is None else self.capabilities.version

    def make_translator(self, session_id: str, name: Callable[[int], str]) -> StreamTranslator:
        """Make a translator of the records of a session in the other version."""
        takes = ClientTakes() if self.capabilities is None else self.capabilities.takes
        return StreamTranslator(session_id, self.version, takes, name)

    @property
    def takes_subagents(self) -> bool:
        """Whether it shows sessions that an agent makes for parts of its work."""
        return self.capabilities is not None and self.capabilities.takes.subagents

    @property
    def tell_untaken(self) -> Callable[[bytes], bytes] | None:
        """Change lines that have updates which it does not take; None if it takes all."""
        return None if self.capabilities is None else self.capabilities.tell_untaken

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
        """Whether it comes by HTTP, with a stream for each session."""
        return self.outbox.over_http

    async def greet(self, line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP, which has to be `initialize`."""
        self.outbox.use_http()
        return await self._handler.greet(self, line)

    def receive(self, line: bytes) -> None:
        """Take any message; a wrong one is answered as JSON-RPC does."""
        if not self.closed.is_set():
            self._handler.receive(self, line)

    def stream(self) -> ViewerStream:
        """Give everything for this viewer as one stream; a stream opened before ends."""
        return self.outbox.stream()

    def connection_stream(self, last_event_id: str | None) -> ViewerStream:
        """Give the stream of messages that belong to no session, or open one."""
        return self.outbox.connection_stream(last_event_id)

    def session_stream(self, session_id: str, last_event_id: str | None) -> ViewerStream | None:
        """Give the stream of one session; None if there is none that this viewer could have or open."""
        subscriptions = self.outbox.subscriptions
        if not self.sees(session_id):
            return None
        if session_id not in subscriptions:
            expected = sum(subscription.journal is None for subscription in subscriptions.values())
            if expected >= _MAX_EXPECTED or not self._handler.could_open(session_id):
                return None
        self.outbox.note_use(session_id)
        return self.outbox.session_stream(self.subscribe(session_id), last_event_id)

    def knows(self, session_id: str) -> bool:
        """Tell whether this viewer is on a session, or has asked to be."""
        return session_id in self.outbox.subscriptions or self.requests.opens(session_id)

    async def close(self) -> None:
        """Detach it everywhere; its requests go on."""
        self._handler.viewer_left(self)

    def drop(self, reason: str) -> None:
        """Close it for a reason."""
        if not self.closed.is_set():
            self.close_reason = reason
            self._handler.viewer_left(self)

    def drop_if_stalled(self, stall_s: float, now: float) -> None:
        """Close it if it does not read: for so long it took nothing although something waited for it."""
        if self.outbox.is_stalled(stall_s, now):
            self.drop(f"it took nothing for {stall_s:g} s although something waited for it")

    def end(self) -> None:
        """End all its streams, and wake the tasks that wait for that."""
        self.closed.set()
        self.outbox.end()

    def subscription(self, session_id: str | None) -> Subscription | None:
        """Give its subscription to a session, if it has one."""
        return None if session_id is None else self.outbox.subscriptions.get(session_id)

    def subscribe(self, session_id: str) -> Subscription:
        """Make the subscription to a session, or give the one there is."""
        return self.outbox.subscribe(self, session_id)

    def send(
        self,
        data: bytes,
        subscription: Subscription | None = None,
        after: int | None = None,
        *,
        request_id: bytes | None = None,
    ) -> None:
        """Queue a message, in the stream of a session if there is one, behind the records that are there so far."""
        if subscription is not None and subscription.journal is None:
            subscription = None
        if self._takes_more(subscription):
            self.outbox.put(data, subscription, after, request_id)

    def send_opened(self, data: bytes, subscription: Subscription, after: int, *, is_new: bool = False) -> None:
        """Queue the answer to a request that opened a session: over HTTP it belongs to the connection."""
        if not self.over_http:
            self.send(data, subscription, after)
        elif self._takes_more(None):
            self.outbox.put_gated(data, subscription, after, is_new=is_new)

    def refuse(self, id_: bytes, code: int, problem: Any, subscription: Subscription | None = None) -> None:
        """Answer a request of it with an error in words."""
        self.send(make_error(id_, code, problem), subscription)

    def has_room(self) -> bool:
        """Tell whether its backlog is small, so that it may be sent messages that it could do without."""
        return self.outbox.backlog_bytes < self._window_bytes // 2

    def wake(self, subscription: Subscription) -> None:
        """Have its streams look at a subscription again."""
        self.outbox.wake(subscription)

    def _takes_more(self, subscription: Subscription | None) -> bool:
        """Tell whether it may be sent more; a viewer that lets answers pile up is dropped."""
        window = self._window_bytes
        if self.closed.is_set() or self.outbox.backlog_bytes <= window:
            return not self.closed.is_set()
        if self.outbox.is_hungry(subscription) and self.outbox.backlog_bytes <= _MAX_BURST * window:
            return True
        self.drop(f"it left more than {window} bytes of answers untaken")
        return False


class RepeatablePrompt(msgspec.Struct, eq=False):
    """A prompt with a key: a client that lost its connection sends it again, and there is one turn all the same."""

    key: str
    request: "ViewerRequest"
    answer: bytes | None = None


class ViewerRequest(msgspec.Struct):
    """A request of a viewer, as it came and decoded; answered exactly once.

    Its method, params and line are in the version of the agent, its answers are given in that version, and the viewer
    gets them in its own.
    """

    viewer: Viewer
    id: bytes
    method: str
    params: Raw
    line: bytes
    given: bytes
    """The line as the viewer sent it."""
    agent_version: Version = V1
    """The version of the agent that it is for."""
    translator: RequestTranslator | None = None
    """By which it was translated, if it was."""
    key: bytes = b""
    """Its key among the pending requests: its id, or one of ours for a request whose id is null."""
    is_over: bool = False
    """Whether it was answered; another answer comes too late."""
    repeatable: "RepeatablePrompt | None" = None
    """The prompt that it is, if it has a key by which it may come again."""

    @property
    def session_id(self) -> str | None:
        """The session that it is about."""
        return session_of(self.params)

    @property
    def wants_replay(self) -> bool:
        """Whether it opens a session with all that was said in it."""
        return self.method == "session/load" or is_given(fields_of(self.params).get("replayFrom"))

    def begin(self, *, opens: str | None = None) -> None:
        """Count it as under way; `opens` is the session that it wants opened."""
        self.key = self.id if self.id != NULL_ID else b"null %d" % next(_unnamed)
        self.viewer.requests.begin(self.key, opens)

    def note_sent(self, agent_id: bytes) -> None:
        """Remember the id that it has at the agent, in case it is cancelled."""
        self.viewer.requests.note_sent(self.key, agent_id)

    def continue_as(self, again: "ViewerRequest") -> None:
        """Have the same request, which came again over another connection, get the answer."""
        agent_id = self.viewer.requests.agent_id(self.key)
        self.viewer.requests.end(self.key)
        self.viewer, self.id, self.key, self.translator = again.viewer, again.id, again.key, again.translator
        if agent_id:
            self.note_sent(agent_id)

    def answer(self, result: Any) -> None:
        """Answer it."""
        self._send(make_result(self.id, result))

    def pass_on(self, line: bytes) -> None:
        """Answer it with the agent's answer."""
        self._send(with_id(line, self.id))

    def refuse(self, code: int, problem: Any) -> None:
        """Answer it with an error in words."""
        if code == ErrorCode.RESOURCE_NOT_FOUND and self.viewer.version == V2:
            problem = not_found_data(problem, self.session_id)
        self._send(make_error(self.id, code, problem))

    def fail(self, data: dict[str, Any]) -> None:
        """Answer that the agent is not there, with the data of its failure."""
        self.refuse(ErrorCode.INTERNAL_ERROR, data)

    def answer_opened(self, result: Any, subscription: Subscription, after: int) -> None:
        """Answer a request that opened a session."""
        self.pass_opened(make_result(self.id, result), subscription, after)

    def pass_opened(self, line: bytes, subscription: Subscription, after: int, *, is_new: bool = False) -> None:
        """Answer a request that opened a session with the agent's answer."""
        if self.end():
            answer, *updates = self._translate(with_id(line, self.id))
            self.viewer.send_opened(answer, subscription, after, is_new=is_new)
            for update in updates:
                self.viewer.send(update, subscription)

    def end(self) -> bool:
        """Count it as answered, and tell whether it was not before."""
        was_over, self.is_over = self.is_over, True
        self.viewer.requests.end(self.key)
        return not was_over

    def _translate(self, line: bytes) -> list[bytes]:
        return [line] if self.translator is None else self.translator.answer(line)

    def _send(self, line: bytes) -> None:
        if self.repeatable is not None:
            self.repeatable.answer = line
        if self.end():
            for each in self._translate(line):
                self.viewer.send(each, self.viewer.subscription(self.session_id))
