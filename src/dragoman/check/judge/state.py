"""The state of a conversation that all observers share: its connection, sessions, turns and terminals.

The state is read from JSON of any shape, and keeps the parts that make sense: one mistake of a peer must not look like
ten. Answers are matched to their requests before the observers see them; everything else is taken in after.
"""

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.connection_state import Agreement, RequestTable, Timeline
from dragoman.check.judge.foreground import Foreground, ForegroundTable, take_call
from dragoman.check.judge.message import Object, SeenMessage, items, number, part, parts, text, texts
from dragoman.check.judge.session import Memory, SeenSession, SeenTerminal, SeenToolCall, SeenTurn

PROOF_S = 2.0
"""A message written this long ago has been read, unless the reader hangs; pipes take far less than a millisecond."""
MAX_PROMPTS = 200
MAX_PROMPT_CHARS = 500
"""How much of the prompts is remembered, to recognize it in a replay."""
MAX_CALLS = 2000
"""Tool calls of a session that are remembered: a tap may run for weeks."""

OPENERS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
CLOSERS = frozenset({"session/close", "session/delete"})


class ConversationState:
    """The shared knowledge of all observers of one conversation."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.timeline = Timeline()
        self.requests = RequestTable()
        self.agreement = Agreement(self.timeline)
        self.sessions: dict[str, SeenSession] = {}
        self.foreground = ForegroundTable(self.sessions, memory)
        """The sessions of version 2."""
        self.opening: dict[str, SeenMessage] = {}
        """Loads and resumes without an answer so far, by session."""
        self.terminals: dict[str, SeenTerminal] = {}
        self.cancelling: list[SeenTurn] = []
        """Turns that were cancelled and have not ended."""

    @property
    def is_v2(self) -> bool:
        """Tell whether version 2 of the protocol is spoken."""
        return self.agreement.dialect.version == 2

    def session(self, message: SeenMessage) -> SeenSession | None:
        """Return the session that the params of a message name, if it was opened here."""
        session_id = message.params.get("sessionId")
        return self.sessions.get(session_id) if isinstance(session_id, str) else None

    def asked_session(self, answer: SeenMessage) -> SeenSession | None:
        """Return the session that the request of an answer named."""
        return self.session(answer.request) if answer.request is not None else None

    def has_heard(self, turn: SeenTurn, at_s: float) -> ConversationEntry | None:
        """Return the entry that proves that the agent had read the cancel of a turn by a time, if there is one.

        In version 2 the cancel may come before the report of the work: then the agent need not have read anything yet.
        """
        if turn.cancel is None:
            return None
        since_s = max(turn.cancel.at_s, turn.prompt.entry.at_s)
        return turn.heard or (turn.cancel if at_s - since_s >= PROOF_S else None)

    def may_be_cancelled(self, session: SeenSession, turn: SeenTurn) -> bool:
        """Tell whether a turn may end as cancelled: the client cut it short, by any of its ways, or has left."""
        recalled = turn.prompt.cancelled or self.foreground.of(session.id).recalled
        is_cut = turn.cancel or turn.dismissed or recalled or session.closing
        return is_cut is not None or "agent" in self.timeline.closed

    def take(self, message: SeenMessage) -> None:
        """Learn from a message."""
        match message.kind:
            case "request":
                self.requests.add(message)
                self._take_request(message)
            case "notification":
                self._take_notification(message)
            case "result" | "error":
                if message.request is not None:
                    self._take_answer(message, message.request)

    def _take_request(self, message: SeenMessage) -> None:
        session = self.session(message)
        session_id = text(message.params, "sessionId")
        match message.method:
            case "initialize":
                self.agreement.take_request(message)
            case "session/load" | "session/resume" if session_id is not None:
                self.opening[session_id] = message
                if session is not None:
                    session.is_talking = False
            case "session/prompt" if session is not None:
                self._take_prompt(session, message)
            case method if method in CLOSERS and session is not None:
                session.closing = message.entry
                session.is_talking = False
            case "session/request_permission" if session is not None and self.is_v2:
                take_call(session, part(part(message.params, "subject"), "toolCall"), message)
            case _:
                pass

    def _take_prompt(self, session: SeenSession, message: SeenMessage) -> None:
        if not self.is_v2:
            self._begin_turn(session, message)
        said = "".join(text(block, "text") or "" for block in parts(message.params, "prompt"))
        prompts = self.memory.past(session.id).prompts
        if len(prompts) < MAX_PROMPTS:
            prompts.append(said[:MAX_PROMPT_CHARS])

    def _begin_turn(self, session: SeenSession, message: SeenMessage) -> None:
        turn = SeenTurn(message, rivals=[each.prompt.entry for each in session.running()])
        for each in session.running():
            each.rivals.append(message.entry)
        if session.turn is None:
            session.turn = turn
        else:
            session.queued.append(turn)

    def _take_notification(self, message: SeenMessage) -> None:
        match message.method:
            case "session/update":
                self._take_update(message)
            case "session/cancel" if (session := self.session(message)) is not None:
                self._take_cancel(session, message)
            case "$/cancel_request":
                self._take_recall(message)
            case _:
                pass

    def _take_cancel(self, session: SeenSession, message: SeenMessage) -> None:
        for turn in session.running():
            if turn.cancel is None:
                turn.cancel = message.entry
                turn.awaited = self.requests.find_open("agent", session.id)
                self.cancelling.append(turn)
        if self.is_v2 and session.turn is None and self._is_prompted(session.id):
            self.foreground.of(session.id).early_cancel = message.entry

    def _is_prompted(self, session_id: str) -> bool:
        """Tell whether a session of version 2 has prompts that were not refused and whose work has not ended."""
        asked = self.requests.find_open("client", session_id)
        return bool(self.foreground.of(session_id).accepted) or any(each.method == "session/prompt" for each in asked)

    def _take_recall(self, message: SeenMessage) -> None:
        request = self.requests.cancel(message)
        if request is not None and request.method == "session/prompt" and self.is_v2:
            self.foreground.of(text(request.params, "sessionId")).recalled = message.entry

    def _take_update(self, message: SeenMessage) -> None:
        session = self.session(message)
        if self.is_v2:
            before = session.turn if session is not None else None
            self.foreground.take_update(message, is_replay=text(message.params, "sessionId") in self.opening)
            if before is not None and before.end is not None and before in self.cancelling:
                self.cancelling.remove(before)
            if session is not None and before is None and session.turn is not None:
                self._take_early_cancel(session.turn, self.foreground.of(session.id))
        if session is None:
            return
        update = message.update
        kind = update.get("sessionUpdate")
        if kind == "config_option_update":
            self._keep_options(session, update)
        elif self.is_v2:
            return
        elif kind in ("tool_call", "tool_call_update"):
            self._take_tool_call(session, update, message)
        elif kind == "agent_message_chunk":
            self._take_words(session, update)
            session.is_talking = session.turn is not None and session.closing is None and session.id not in self.opening
        elif kind == "current_mode_update":
            session.mode_id = text(update, "currentModeId") or session.mode_id

    def _take_early_cancel(self, turn: SeenTurn, seen: Foreground) -> None:
        turn.cancel, seen.early_cancel = seen.early_cancel, None
        if turn.cancel is not None:
            self.cancelling.append(turn)

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
        elif request.method == "session/prompt" and self.is_v2:
            self._take_accepted(answer, request)
        elif request.method == "session/prompt":
            self._take_prompt_end(answer, request)
        elif request.method == "session/request_permission":
            self._take_permission(answer, request)
        elif request.method in ("tool_call/cancel", "terminal/cancel"):
            self._take_item_cancel(answer, request)
        elif request.method.startswith("terminal/"):
            self._take_terminal(answer, request)
        elif request.method in CLOSERS and answer.kind == "error":
            self._take_kept(request)
        elif answer.kind == "result":
            self._take_result(answer, request)

    def _take_accepted(self, answer: SeenMessage, request: SeenMessage) -> None:
        self.foreground.take_accepted(answer, request)
        session_id = text(request.params, "sessionId")
        if session_id is not None and not self._is_prompted(session_id):
            self.foreground.of(session_id).early_cancel = None

    def _take_kept(self, request: SeenMessage) -> None:
        """Note that a session stays, because the agent refused to close or delete it; a turn may be cut short by it."""
        session = self.session(request)
        if session is not None and session.closing is request.entry and not session.running():
            session.closing = None

    def _hear(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Note the answer to a request behind a cancel, of the same session: a bridge keeps the order of each."""
        session_id = request.params.get("sessionId")
        for turn in self.cancelling:
            is_behind = turn.cancel is not None and request.entry.n > turn.cancel.n
            if turn.heard is None and is_behind and turn.prompt.params.get("sessionId") == session_id:
                turn.heard = answer.entry

    def _take_result(self, answer: SeenMessage, request: SeenMessage) -> None:
        session_id = text(request.params, "sessionId")
        match request.method:
            case "initialize":
                self.agreement.take_answer(answer)
                version = answer.params.get("protocolVersion")
                if isinstance(version, int):
                    self.memory.versions.add(version)
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
                self._keep_options(self.sessions[session_id], answer.params)
            case _:
                pass

    def _keep_options(self, session: SeenSession, value: Object) -> None:
        if items(value, "configOptions"):
            session.keep_options(parts(value, "configOptions"), self.agreement.dialect.option_id)

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
        self._keep_options(session, answer.params)
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
        """Remember the parts that a replay must have; for a turn that was cut short, the specification says nothing."""
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
        call = session.calls.get(find_asked_call(request.params) or "")
        if call is None or outcome.get("outcome") != "selected":
            return
        kinds = {each.get("optionId"): each.get("kind") for each in parts(request.params, "options") if _is_plain(each)}
        kind = kinds.get(text(outcome, "optionId"))
        if kind in ("allow_once", "allow_always"):
            call.granted = answer.entry
        elif kind in ("reject_once", "reject_always"):
            call.rejected = answer.entry

    def _take_item_cancel(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Learn that a tool call or a terminal of version 2 is being cancelled alone."""
        session = self.session(request)
        if answer.kind == "error" or session is None:
            return
        if request.method == "tool_call/cancel":
            item = session.calls.get(text(request.params, "toolCallId") or "")
        else:
            item = self.foreground.of(session.id).terminals.get(text(request.params, "terminalId") or "")
        if item is not None:
            item.cancelling = request

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


def find_asked_call(params: Object) -> str | None:
    """Return the id of the tool call that a permission request is about, in either version."""
    subject = part(params, "subject")
    asked = part(params, "toolCall") or part(subject, "toolCall") or subject
    return text(asked, "toolCallId")


def _is_plain(option: Object) -> bool:
    return isinstance(option.get("optionId"), str)
