"""The state of one connection: its requests, the agreement of both sides at its start, and its timeline."""

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.dialect import Dialect, dialect_of
from dragoman.check.judge.message import Json, Object, SeenMessage, offered, part, parts

MAX_RETIRED = 1000
"""Answered requests that are remembered, to tell a second answer from an answer to no request."""

SIGNALLED = frozenset(f"exited -{number}" for number in (1, 2, 9, 15))
"""Ends by a signal from outside: SIGHUP, SIGINT, SIGKILL, SIGTERM."""


class RequestTable:
    """The requests of both sides: open, given up, and answered."""

    def __init__(self) -> None:
        self.pending: dict[Side, dict[Json, SeenMessage]] = {"client": {}, "agent": {}}
        """Requests without an answer, by the side that asked and by id."""
        self._late: dict[Side, dict[Json, SeenMessage]] = {"client": {}, "agent": {}}
        """Requests that were reported as unanswered; a late answer to one of them is not an answer to no request."""
        self.retired: dict[Side, dict[Json, ConversationEntry]] = {"client": {}, "agent": {}}
        """Answered requests without their content; `event` is the method."""

    def add(self, request: SeenMessage) -> None:
        """Keep a request until its answer comes."""
        self.pending[request.sender][request.id] = request

    def find_open(self, side: Side, session_id: str) -> list[SeenMessage]:
        """Return the open requests of a side about a session."""
        return [each for each in self.pending[side].values() if each.params.get("sessionId") == session_id]

    def give_up(self, request: SeenMessage) -> None:
        """Take a request off the open ones, because no answer came in time."""
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
        """Find the request of an answer, and take it off the open ones."""
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
        """Return the open request that an answer with a changed id is for: with the id as another type, or lost."""
        pending = self.pending[asker]
        if answer.id in self.retired[asker] or (answer.id is None and answer.kind == "error"):
            return None
        same = [request for request in pending.values() if str(request.id) == str(answer.id)]
        strings = [request for request in pending.values() if isinstance(request.id, str)]
        # Some peers cannot keep a string as an id. If one string is open, an answer without a string is for that.
        if not same and len(strings) == 1 and not isinstance(answer.id, str):
            same = strings
        return pending.pop(same[0].id) if same else None


class Timeline:
    """When the conversation began, the last message of each side, and how it ended for each side."""

    def __init__(self) -> None:
        self.last: dict[Side, ConversationEntry] = {}
        """The last message of each side."""
        self.closed: dict[Side, ConversationEntry] = {}
        """Events that ended the conversation for a side: its stdin was closed, or it was killed."""
        self.explained: ConversationEntry | None = None
        """The end of a process that is explained by a line that it could not read."""
        self.home: str | None = None
        """The directory in which the agent was started."""
        self.is_whole = False
        """Whether the conversation was seen from its beginning, which is a message of the client."""
        self.is_from_start = False
        """Whether nothing came before the first message for sure, whichever side sent that."""
        self.is_timed = False
        """Whether the times of the messages are known."""

    def begin(self, message: SeenMessage) -> None:
        """Learn from the first message whether another one came before it."""
        self.is_whole = self.is_whole or message.sender == "client"

    def take_event(self, entry: ConversationEntry) -> None:
        """Learn from an event."""
        word, _, rest = entry.event.partition(" ")
        if word == "started":
            self.home = rest.removeprefix("in ") or None
            self.is_whole = self.is_from_start = True
        elif entry.event == "stdin closed" or word in ("killed", "exited"):
            self.closed.setdefault(entry.sender, entry)

    def is_own_end(self, exited: ConversationEntry) -> bool:
        """Tell whether a process ended by itself: nobody had closed its stdin, killed it or sent it a signal."""
        return exited.sender not in self.closed and exited.event not in SIGNALLED and self.explained is not exited


class Agreement:
    """The `initialize` of the client, its answer, and the capabilities in both."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.dialect: Dialect = dialect_of(1)
        """The version that is spoken, or asked for as long as no answer says which."""
        self.initialize: SeenMessage | None = None
        self.initialized: SeenMessage | None = None
        """The answer to `initialize`."""
        self.capabilities: dict[Side, Object] = {"client": {}, "agent": {}}
        self.auth_methods: list[Object] = []

    def take_request(self, message: SeenMessage) -> None:
        """Learn from `initialize`."""
        self.initialize = message
        self.capabilities["client"] = part(message.params, self.dialect.client_capabilities)

    def take_answer(self, answer: SeenMessage) -> None:
        """Learn from the answer to `initialize`."""
        self.initialized = answer
        self.capabilities["agent"] = part(answer.params, self.dialect.agent_capabilities)
        self.auth_methods = parts(answer.params, "authMethods")
        if self.initialize is not None:  # asked for version 2, a client may get version 1
            self.capabilities["client"] = part(self.initialize.params, self.dialect.client_capabilities)

    @property
    def is_known(self) -> bool:
        """Tell whether the offers of the client are known: all of them, or surely none so far."""
        return self.initialized is not None or self._timeline.is_from_start or self.initialize is not None

    def client_offers(self, path: str) -> bool:
        """Tell whether the client has advertised a capability, and the agent can know of it."""
        return self.initialized is not None and offered(self.capabilities["client"], path)

    def agent_offers(self, path: str) -> bool:
        """Tell whether the agent has advertised a capability, named as in version 1."""
        return offered(self.capabilities["agent"], self.dialect.path(path))

    def explain_lack(self, path: str) -> str:
        """Say why the agent cannot count on a capability of the client."""
        if self.initialized is None:
            return "before initialize was answered, so before the client's capabilities were agreed"
        return f"but the client did not advertise {path}"
