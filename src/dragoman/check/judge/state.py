"""What both sides of a conversation know at a point of it: requests in flight, capabilities, sessions, terminals.

The state is read from JSON of any shape, and keeps what it can make sense of: one mistake of a peer must not look
like ten. Answers are matched before the observers see them, everything else is taken in after.
"""

from dragoman.check.conversation import OTHER, ConversationEntry, Side
from dragoman.check.judge.message import Json, Object, SeenMessage, items, number, offered, part, parts, text, texts
from dragoman.check.judge.session import Memory, SeenSession, SeenTerminal, SeenToolCall, SeenTurn

PROOF_S = 2.0
"""A message written this long ago has been read, unless the reader hangs; pipes take far less than a millisecond."""
MAX_RETIRED = 1000
"""Answered requests that are remembered, to tell a second answer from one to nothing."""
MAX_PROMPTS = 200
MAX_PROMPT_CHARS = 500
"""How much of what users said is remembered, to know it again when it is replayed."""
MAX_CALLS = 2000
"""Tool calls of a session that are remembered: a tap may run for weeks."""

OPENERS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
SIGNALLED = frozenset(f"exited -{number}" for number in (1, 2, 9, 15))
"""Ends by a signal that comes from outside: SIGHUP, SIGINT, SIGKILL, SIGTERM."""


class ConversationState:
    """The shared knowledge of all observers of one conversation."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.pending: dict[Side, dict[Json, SeenMessage]] = {"client": {}, "agent": {}}
        """Requests without an answer, by the side that asked and by id."""
        self.late: dict[Side, dict[Json, SeenMessage]] = {"client": {}, "agent": {}}
        """Requests that were given up for unanswered; should an answer come, it is no answer to nothing."""
        self.retired: dict[Side, dict[Json, ConversationEntry]] = {"client": {}, "agent": {}}
        """Requests that were answered, without what they said; `event` is their method."""
        self.capabilities: dict[Side, Object] = {"client": {}, "agent": {}}
        self.initialize: SeenMessage | None = None
        self.initialized: SeenMessage | None = None
        self.auth_methods: list[Object] = []
        self.sessions: dict[str, SeenSession] = {}
        self.opening: dict[str, SeenMessage] = {}
        """Loads and resumes under way, by session."""
        self.terminals: dict[str, SeenTerminal] = {}
        self.last: dict[Side, ConversationEntry] = {}
        """The last message of each side."""
        self.cancelling: list[SeenTurn] = []
        self.explained: ConversationEntry | None = None
        """The end of a process that was put down to what it could not read."""
        self.home: str | None = None
        """Where the agent was started."""
        self.is_whole = False
        """Whether the conversation was seen from its beginning, where it is for the client to speak."""
        self.is_from_start = False
        """Whether it is known that nothing came before the first message, whoever sent that."""
        self.is_timed = False
        """Whether it is known when each message came."""
        self.closed: dict[Side, ConversationEntry] = {}
        """Events that ended the conversation for a side: its stdin closed, or it was killed."""

    def begin(self, message: SeenMessage) -> None:
        """Learn from what the first message is whether anything came before it."""
        self.is_whole = self.is_whole or message.sender == "client"

    @property
    def is_agreed(self) -> bool:
        """Tell whether it is known what the client offers: all of it, or surely nothing as yet."""
        return self.initialized is not None or self.is_from_start or self.initialize is not None

    def client_offers(self, path: str) -> bool:
        """Tell whether the client has advertised a capability, and the agent can know of it."""
        return self.initialized is not None and offered(self.capabilities["client"], path)

    def explain_lack(self, path: str) -> str:
        """Say why the agent cannot count on a capability of the client."""
        if self.initialized is None:
            return "before initialize was answered, so before it was agreed what the client offers"
        return f"but the client did not advertise {path}"

    def session(self, message: SeenMessage) -> SeenSession | None:
        """Return the session that the params of a message name, if it was opened here."""
        session_id = message.params.get("sessionId")
        return self.sessions.get(session_id) if isinstance(session_id, str) else None

    def asked_session(self, answer: SeenMessage) -> SeenSession | None:
        """Return the session that the request of an answer named."""
        return self.session(answer.request) if answer.request is not None else None

    def open_requests(self, side: Side, session_id: str) -> list[SeenMessage]:
        """Return what a side has asked about a session and got no answer to."""
        return [each for each in self.pending[side].values() if each.params.get("sessionId") == session_id]

    def has_heard(self, turn: SeenTurn, at_s: float) -> ConversationEntry | None:
        """Return what proves that the agent had read the cancel of a turn by a time, if anything does."""
        if turn.cancel is None:
            return None
        return turn.heard or (turn.cancel if at_s - turn.cancel.at_s >= PROOF_S else None)

    def is_own_end(self, exited: ConversationEntry) -> bool:
        """Tell whether a process ended by itself: nobody had closed its stdin, killed it or sent it a signal."""
        return exited.sender not in self.closed and exited.event not in SIGNALLED and self.explained is not exited

    def give_up(self, request: SeenMessage) -> None:
        """Take a request off what is pending, because no answer came in good time."""
        if self.pending[request.sender].pop(request.id, None) is not None:
            self.late[request.sender][request.id] = request

    def match(self, answer: SeenMessage) -> None:
        """Find the request of an answer, and take it off what is pending."""
        asker = OTHER[answer.sender]
        request = self.pending[asker].pop(answer.id, None) or self.late[asker].pop(answer.id, None)
        request = request or self._find_twin(answer, asker)
        if request is None:
            return
        answer.request = request
        answer.method = request.method
        retired = self.retired[asker]
        retired[request.id] = ConversationEntry(
            request.entry.n, request.entry.at_s, request.sender, event=request.method
        )
        if len(retired) > MAX_RETIRED:
            del retired[next(iter(retired))]

    def _find_twin(self, answer: SeenMessage, asker: Side) -> SeenMessage | None:
        """Return the open request whose id was changed on the way into that of the answer: its type, or all of it."""
        pending = self.pending[asker]
        if answer.id in self.retired[asker] or (answer.id is None and answer.kind == "error"):
            return None
        same = [request for request in pending.values() if str(request.id) == str(answer.id)]
        strings = [request for request in pending.values() if isinstance(request.id, str)]
        if not same and len(strings) == 1 and not isinstance(answer.id, str):
            same = strings
        return pending.pop(same[0].id) if same else None

    def take(self, message: SeenMessage) -> None:
        """Learn from a message."""
        match message.kind:
            case "request":
                self.pending[message.sender][message.id] = message
                self._take_request(message)
            case "notification":
                self._take_notification(message)
            case "result" | "error":
                if message.request is not None:
                    self._take_answer(message, message.request)

    def take_event(self, entry: ConversationEntry) -> None:
        """Learn from an event."""
        word, _, rest = entry.event.partition(" ")
        if word == "started":
            self.home = rest.removeprefix("in ") or None
            self.is_whole = self.is_from_start = True
        elif entry.event == "stdin closed" or word in ("killed", "exited"):
            self.closed.setdefault(entry.sender, entry)

    def _take_request(self, message: SeenMessage) -> None:
        session = self.session(message)
        session_id = text(message.params, "sessionId")
        match message.method:
            case "initialize":
                self.initialize = message
                self.capabilities["client"] = part(message.params, "clientCapabilities")
            case "session/load" | "session/resume" if session_id is not None:
                self.opening[session_id] = message
                if session is not None:
                    session.is_talking = False
            case "session/prompt" if session is not None:
                self._take_prompt(session, message)
            case "session/close" if session is not None:
                session.closing = message.entry
                session.is_talking = False
            case _:
                pass

    def _take_prompt(self, session: SeenSession, message: SeenMessage) -> None:
        turn = SeenTurn(message, rivals=[each.prompt.entry for each in session.running()])
        for each in session.running():
            each.rivals.append(message.entry)
        if session.turn is None:
            session.turn = turn
        else:
            session.queued.append(turn)
        said = "".join(text(block, "text") or "" for block in parts(message.params, "prompt"))
        prompts = self.memory.past(session.id).prompts
        if len(prompts) < MAX_PROMPTS:
            prompts.append(said[:MAX_PROMPT_CHARS])

    def _take_notification(self, message: SeenMessage) -> None:
        match message.method:
            case "session/update":
                self._take_update(message)
            case "session/cancel" if (session := self.session(message)) is not None:
                self._take_cancel(session, message)
            case "$/cancel_request":
                self._take_request_cancel(message)
            case _:
                pass

    def _take_cancel(self, session: SeenSession, message: SeenMessage) -> None:
        for turn in session.running():
            if turn.cancel is None:
                turn.cancel = message.entry
                turn.awaited = self.open_requests("agent", session.id)
                self.cancelling.append(turn)

    def _take_request_cancel(self, message: SeenMessage) -> None:
        request_id = message.params.get("requestId")
        if not isinstance(request_id, str | int):
            return
        request = self.pending[message.sender].get(request_id)
        if request is not None and request.cancelled is None:
            request.cancelled = message.entry

    def _take_update(self, message: SeenMessage) -> None:
        session = self.session(message)
        if session is None:
            return
        update = message.update
        kind = update.get("sessionUpdate")
        if kind in ("tool_call", "tool_call_update"):
            self._take_tool_call(session, update, message)
        elif kind == "agent_message_chunk":
            self._take_words(session, update)
            session.is_talking = session.turn is not None and session.closing is None and session.id not in self.opening
        elif kind == "current_mode_update":
            session.mode_id = text(update, "currentModeId") or session.mode_id
        elif kind == "config_option_update":
            _keep_options(session, update)

    def _take_words(self, session: SeenSession, update: Object) -> None:
        past = self.memory.past(session.id)
        past.spoke = True
        if session.id in self.opening:
            return
        if session.turn is not None:
            session.turn.hear(text(part(update, "content"), "text") or "")
        elif not past.prompts:
            past.has_begun = True

    def _take_tool_call(self, session: SeenSession, update: Object, message: SeenMessage) -> None:
        call_id = text(update, "toolCallId")
        if call_id is None:
            return
        call = session.calls.get(call_id)
        if call is None or (update.get("sessionUpdate") == "tool_call" and call.status in ("completed", "failed")):
            call = SeenToolCall(call_id, message.entry, turn=session.turn)
            session.calls[call_id] = call
            if len(session.calls) > MAX_CALLS:
                del session.calls[next(iter(session.calls))]
            if session.turn is not None:
                session.turn.calls[call_id] = call
                session.turn.is_pausing = True
        status = text(update, "status")
        if status is not None:
            call.status = status
            call.ran = call.ran or status == "in_progress"

    def _take_answer(self, answer: SeenMessage, request: SeenMessage) -> None:
        if answer.sender == "agent":
            self._hear(answer, request)
        if request.method in OPENERS:
            self._take_opening(answer, request)
        elif request.method == "session/prompt":
            self._take_prompt_end(answer, request)
        elif request.method == "session/request_permission":
            self._take_permission(answer, request)
        elif request.method.startswith("terminal/"):
            self._take_terminal(answer, request)
        elif answer.kind == "result":
            self._take_result(answer, request)

    def _hear(self, answer: SeenMessage, request: SeenMessage) -> None:
        for turn in self.cancelling:
            if turn.heard is None and turn.cancel is not None and request.entry.n > turn.cancel.n:
                turn.heard = answer.entry

    def _take_result(self, answer: SeenMessage, request: SeenMessage) -> None:
        session_id = text(request.params, "sessionId")
        match request.method:
            case "initialize":
                self._take_initialized(answer)
            case "session/close" if session_id is not None:
                self.memory.past(session_id).closed = True
                if session_id in self.sessions:
                    self.sessions[session_id].closed = answer.entry
            case "session/delete" if session_id is not None:
                self.memory.past(session_id).deleted = True
            case "session/list":
                for listed in filter(None, (text(each, "sessionId") for each in parts(answer.params, "sessions"))):
                    self.memory.past(listed).listed = True
            case "session/set_mode" if session_id in self.sessions:
                self.sessions[session_id].mode_id = text(request.params, "modeId")
            case "session/set_config_option" if session_id in self.sessions:
                _keep_options(self.sessions[session_id], answer.params)
            case _:
                pass

    def _take_initialized(self, answer: SeenMessage) -> None:
        self.initialized = answer
        self.capabilities["agent"] = part(answer.params, "agentCapabilities")
        self.auth_methods = parts(answer.params, "authMethods")
        version = answer.params.get("protocolVersion")
        if isinstance(version, int):
            self.memory.versions.add(version)

    def _take_opening(self, answer: SeenMessage, request: SeenMessage) -> None:
        asked = text(request.params, "sessionId")
        if asked is not None and self.opening.get(asked) is request:
            del self.opening[asked]
        session_id = asked if request.method in ("session/load", "session/resume") else text(answer.params, "sessionId")
        if answer.kind == "error" or session_id is None:
            return
        cwd = text(request.params, "cwd")
        roots = [*([cwd] if cwd else []), *texts(request.params, "additionalDirectories")]
        session = SeenSession(session_id, answer, cwd, roots)
        before = self.sessions.get(session_id)
        if before is not None:
            session.turn, session.queued = before.turn, before.queued
        modes = part(answer.params, "modes")
        if modes:
            session.modes = {mode for each in parts(modes, "availableModes") if (mode := text(each, "id"))}
            session.mode_id = text(modes, "currentModeId")
        _keep_options(session, answer.params)
        self.sessions[session_id] = session
        past = self.memory.past(session_id)
        past.cwd = past.cwd or cwd
        past.closed = False
        past.births += request.method == "session/new"

    def _take_prompt_end(self, answer: SeenMessage, request: SeenMessage) -> None:
        session = self.session(request)
        if session is None:
            return
        for turn in session.running():
            if turn.prompt is request:
                turn.end = answer
                session.last = turn
                self._keep_turn(session, turn, answer)
                if turn in self.cancelling:
                    self.cancelling.remove(turn)
        left = [turn for turn in session.running() if turn.end is None]
        session.turn, session.queued = (left[0], left[1:]) if left else (None, [])
        session.is_talking = session.is_talking and session.turn is not None

    def _keep_turn(self, session: SeenSession, turn: SeenTurn, answer: SeenMessage) -> None:
        """Remember what a replay has to have in it; whether that is so of a turn that was cut short is not said."""
        is_cut = turn.cancel or turn.rivals or turn.prompt.cancelled or session.closing
        if is_cut or text(answer.params, "stopReason") in (None, "cancelled", "refusal"):
            return
        asked = [
            words[:MAX_PROMPT_CHARS] for each in parts(turn.prompt.params, "prompt") if (words := text(each, "text"))
        ]
        calls = [each.id for each in turn.calls.values() if each.status == "completed"]
        self.memory.past(session.id).keep(asked, turn.said, calls)

    def _take_permission(self, answer: SeenMessage, request: SeenMessage) -> None:
        session = self.session(request)
        if session is None:
            return
        for turn in session.running():
            if request in turn.awaited:
                turn.heard = turn.heard or answer.entry
        outcome = part(answer.params, "outcome")
        if outcome.get("outcome") == "cancelled" and session.turn is not None:
            session.turn.dismissed = answer.entry
        call = session.calls.get(text(part(request.params, "toolCall"), "toolCallId") or "")
        if call is None or outcome.get("outcome") != "selected":
            return
        kinds = {each.get("optionId"): each.get("kind") for each in parts(request.params, "options") if _is_plain(each)}
        kind = kinds.get(text(outcome, "optionId"))
        if kind in ("allow_once", "allow_always"):
            call.granted = answer.entry
        elif kind in ("reject_once", "reject_always"):
            call.rejected = answer.entry

    def _take_terminal(self, answer: SeenMessage, request: SeenMessage) -> None:
        if answer.kind == "error":
            return
        if request.method == "terminal/create":
            terminal_id = text(answer.params, "terminalId")
            if terminal_id is not None:
                session_id = text(request.params, "sessionId")
                limit = number(request.params, "outputByteLimit")
                self.terminals[terminal_id] = SeenTerminal(terminal_id, answer.entry, session_id, limit)
            return
        terminal = self.terminals.get(text(request.params, "terminalId") or "")
        if terminal is None:
            return
        match request.method:
            case "terminal/kill":
                terminal.killed = answer.entry
            case "terminal/release":
                terminal.released = answer.entry
            case "terminal/wait_for_exit":
                terminal.exited = answer.entry
            case _:
                if part(answer.params, "exitStatus"):
                    terminal.exited = answer.entry


def _is_plain(option: Object) -> bool:
    return isinstance(option.get("optionId"), str)


def _keep_options(session: SeenSession, value: Object) -> None:
    if items(value, "configOptions"):
        session.options = {name: each for each in parts(value, "configOptions") if (name := text(each, "id"))}
        session.once_offered |= session.options
