"""The state of one connection: its requests, the agreement of both sides, and its timeline."""

import math

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.dialect import Dialect, dialect_of
from dragoman.check.judge.message import NO_ID, Json, Object, SeenMessage, offered, part, parts

MAX_RETIRED = 1000
"""Maximum number of answered requests that are remembered, to recognise a second response."""

SIGNALLED = frozenset(f"exited -{number}" for number in (1, 2, 9, 15))
"""Exits by a signal from outside: SIGHUP, SIGINT, SIGKILL, SIGTERM."""


class RequestTable:
    """The requests of both sides: open, given up, and answered."""

    def __init__(self) -> None:
        self.pending: dict[Side, dict[Json, SeenMessage]] = {"client": {}, "agent": {}}
        """Unanswered requests, by sender and id."""
        self._late: dict[Side, dict[Json, SeenMessage]] = {"client": {}, "agent": {}}
        """Requests that were reported as unanswered. A late response to one of them is not an unexpected response."""
        self.retired: dict[Side, dict[Json, ConversationEntry]] = {"client": {}, "agent": {}}
        """Answered requests without their content. `event` is the method."""

    def add(self, request: SeenMessage) -> None:
        """Store a request until its response arrives."""
        self.pending[request.sender][request.id] = request

    def find_open(self, side: Side, session_id: str) -> list[SeenMessage]:
        """Return the open requests of a side about a session."""
        return [each for each in self.pending[side].values() if each.params.get("sessionId") == session_id]

    def find_oldest_unanswered(self, side: Side) -> float:
        """Return the number of a side's first entry that is an unanswered request, or infinity."""
        unanswered = (*self.pending[side].values(), *self._late[side].values())
        return min((each.entry.n for each in unanswered), default=math.inf)

    def mark_late(self, request: SeenMessage) -> None:
        """Move a request to the late ones, because no response arrived in time."""
        if self.pending[request.sender].pop(request.id, None) is not None:
            self._late[request.sender][request.id] = request

    def cancel(self, message: SeenMessage) -> SeenMessage | None:
        """Mark the open request that a `$/cancel_request` names, and return it."""
        request_id = message.params.get("requestId")
        if not isinstance(request_id, str | int):
            return None
        request = self.pending[message.sender].get(request_id)
        if request is not None and request.cancelled is None:
            request.cancelled = message.entry
        return request

    def match(self, answer: SeenMessage) -> None:
        """Find the request of a response and remove it from the open ones."""
        asker = OTHER[answer.sender]
        request = self.pending[asker].pop(answer.id, None) or self._late[asker].pop(answer.id, None)
        request = request or self._find_twin(answer, asker)
        if request is None:
            return
        answer.request = request
        answer.method = request.method
        entry = request.entry
        retired = self.retired[asker]
        retired[request.id] = ConversationEntry(entry.n, entry.at_s, request.sender, event=request.method)
        if len(retired) > MAX_RETIRED:
            del retired[next(iter(retired))]

    def _find_twin(self, answer: SeenMessage, asker: Side) -> SeenMessage | None:
        """Return the open request for a response with a missing id or an id of another type."""
        pending = self.pending[asker]
        if NO_ID in answer.flaws:
            return pending.popitem()[1] if len(pending) == 1 else None
        if answer.id in self.retired[asker] or (answer.id is None and answer.kind == "error"):
            return None
        same = [request for request in pending.values() if str(request.id) == str(answer.id)]
        strings = [request for request in pending.values() if isinstance(request.id, str)]
        # Some peers cannot store a string id. If one string id is open, a response without a string id is for that
        # request.
        if not same and len(strings) == 1 and not isinstance(answer.id, str):
            same = strings
        return pending.pop(same[0].id) if same else None


class Timeline:
    """When the conversation started, the last message of each side, and how it ended for each side."""

    def __init__(self) -> None:
        self.last: dict[Side, ConversationEntry] = {}
        """The last message of each side."""
        self.closed: dict[Side, ConversationEntry] = {}
        """Events that ended the conversation for a side: its stdin was closed, or it was killed."""
        self.explained: ConversationEntry | None = None
        """The exit of a process that is explained by a line that it could not read."""
        self.home: str | None = None
        """The directory in which the agent was started."""
        self.is_whole = False
        """Whether the conversation was recorded from its start, which is a message of the client."""
        self.is_from_start = False
        """Whether certainly nothing came before the first message, whichever side sent it."""
        self.is_timed = False
        """Whether the times of the messages are known."""

    def begin(self, message: SeenMessage) -> None:
        """Record from the first message whether another one may have come before it."""
        self.is_whole = self.is_whole or message.sender == "client"

    def record_event(self, entry: ConversationEntry) -> None:
        """Record an event."""
        word, _, rest = entry.event.partition(" ")
        if word == "started":
            self.home = rest.removeprefix("in ") or None
            self.is_whole = self.is_from_start = True
        elif entry.event == "stdin closed" or word in ("killed", "exited"):
            self.closed.setdefault(entry.sender, entry)

    def is_own_end(self, exited: ConversationEntry) -> bool:
        """Return whether a process exited without closed stdin, kill or signal from outside."""
        return exited.sender not in self.closed and exited.event not in SIGNALLED and self.explained is not exited


class Agreement:
    """The client's `initialize`, its response, and the capabilities in both."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.dialect: Dialect = dialect_of(1)
        """The agreed version, or the requested version until a response settles it."""
        self.initialize: SeenMessage | None = None
        self.initialized: SeenMessage | None = None
        """The response to `initialize`."""
        self.capabilities: dict[Side, Object] = {"client": {}, "agent": {}}
        self.auth_methods: list[Object] = []

    def record_request(self, message: SeenMessage) -> None:
        """Record the `initialize` request."""
        self.initialize = message
        self.capabilities["client"] = part(message.params, self.dialect.client_capabilities)

    def record_answer(self, answer: SeenMessage) -> None:
        """Record the response to `initialize`."""
        self.initialized = answer
        self.capabilities["agent"] = part(answer.params, self.dialect.agent_capabilities)
        self.auth_methods = parts(answer.params, "authMethods")
        if self.initialize is not None:  # a client that requests version 2 may get version 1
            self.capabilities["client"] = part(self.initialize.params, self.dialect.client_capabilities)

    @property
    def is_known(self) -> bool:
        """Return whether all capabilities of the client are known, even if that means none so far."""
        return self.initialized is not None or self._timeline.is_from_start or self.initialize is not None

    def client_offers(self, path: str) -> bool:
        """Return whether the client advertised a capability and the agent can know it."""
        return self.initialized is not None and offered(self.capabilities["client"], path)

    def agent_offers(self, path: str) -> bool:
        """Return whether the agent advertised a capability, given by its path in version 1."""
        return offered(self.capabilities["agent"], self.dialect.path(path))

    def explain_missing_capability(self, path: str) -> str:
        """Return why the agent cannot rely on a capability of the client."""
        if self.initialized is None:
            return "before initialize was answered, so before the client's capabilities were agreed"
        return f"but the client did not advertise {path}"
