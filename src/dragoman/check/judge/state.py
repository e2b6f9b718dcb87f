"""The state of a conversation that all observers share: its connection, sessions, turns and terminals.

The state is read from JSON of any shape, and keeps the parts that make sense. One mistake of a peer must not look like
ten. Responses are matched to their requests before the observers see them. Everything else is applied afterwards.
"""

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.connection_state import Agreement, RequestTable, Timeline
from dragoman.check.judge.foreground import Foreground, ForegroundTable, apply_call
from dragoman.check.judge.message import Object, SeenMessage, items, number, part, parts, text, texts
from dragoman.check.judge.session import AgentMemory, SeenSession, SeenTerminal, SeenToolCall, SeenTurn

PROOF_S = 2.0
"""A message sent this long ago has been read, unless the reader hangs. Pipes need far less than a millisecond."""
MAX_PROMPTS = 200
MAX_PROMPT_CHARS = 500
"""Maximum number and length of prompts remembered to recognise them in a replay."""
MAX_CALLS = 2000
"""Maximum number of tool calls remembered per session, because a tap may run for weeks."""

OPENERS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
CLOSERS = frozenset({"session/close", "session/delete"})


class ConversationState:
    """The shared state of all observers of one conversation."""

    def __init__(self, memory: AgentMemory) -> None:
        self.memory = memory
        self.timeline = Timeline()
        self.requests = RequestTable()
        self.agreement = Agreement(self.timeline)
        self.sessions: dict[str, SeenSession] = {}
        self.foreground = ForegroundTable(self.sessions, memory)
        """The sessions of version 2."""
        self.opening: dict[str, SeenMessage] = {}
        """Unanswered loads and resumes, by session."""
        self.terminals: dict[str, SeenTerminal] = {}
        self.cancelling: list[SeenTurn] = []
        """Turns that were cancelled and have not ended."""

    @property
    def is_v2(self) -> bool:
        """Return whether the conversation uses version 2 of the protocol."""
        return self.agreement.dialect.version == 2

    def session(self, message: SeenMessage) -> SeenSession | None:
        """Return the session that a message's params name, if it was opened on this connection."""
        session_id = message.params.get("sessionId")
        return self.sessions.get(session_id) if isinstance(session_id, str) else None

    def requested_session(self, answer: SeenMessage) -> SeenSession | None:
        """Return the session that a response's request named."""
        return self.session(answer.request) if answer.request is not None else None

    def proof_of_reading(self, turn: SeenTurn, at_s: float) -> ConversationEntry | None:
        """Return the entry that proves that the agent had read the cancel of a turn by a time, or None.

        In version 2 the cancel may come before the work is reported. Then the agent need not have read anything yet.
        """
        if turn.cancel is None:
            return None
        since_s = max(turn.cancel.at_s, turn.prompt.entry.at_s)
        return turn.cancel_read or (turn.cancel if at_s - since_s >= PROOF_S else None)

    def may_be_cancelled(self, session: SeenSession, turn: SeenTurn) -> bool:
        """Return whether a turn may end as cancelled: the client stopped it in any way, or has disconnected."""
        recalled = turn.prompt.cancelled or self.foreground.of(session.id).recalled
        is_cut = turn.cancel or turn.dismissed or recalled or session.closing
        return is_cut is not None or "agent" in self.timeline.closed

    def apply(self, message: SeenMessage) -> None:
        """Apply a message to the state."""
        match message.kind:
            case "request":
                self.requests.add(message)
                self._apply_request(message)
            case "notification":
                self._apply_notification(message)
            case "result" | "error":
                if message.request is not None:
                    self._apply_answer(message, message.request)

    def _apply_request(self, message: SeenMessage) -> None:
        session = self.session(message)
        session_id = text(message.params, "sessionId")
        match message.method:
            case "initialize":
                self.agreement.record_request(message)
            case "session/load" | "session/resume" if session_id is not None:
                self.opening[session_id] = message
                if session is not None:
                    session.is_talking = False
            case "session/prompt" if session is not None:
                self._apply_prompt(session, message)
            case method if method in CLOSERS and session is not None:
                session.closing = message.entry
                session.is_talking = False
            case "session/request_permission" if session is not None and self.is_v2:
                apply_call(session, part(part(message.params, "subject"), "toolCall"), message)
            case _:
                pass

    def _apply_prompt(self, session: SeenSession, message: SeenMessage) -> None:
        if not self.is_v2:
            self._begin_turn(session, message)
        prompt = "".join(text(block, "text") or "" for block in parts(message.params, "prompt"))
        prompts = self.memory.past(session.id).prompts
        if len(prompts) < MAX_PROMPTS:
            prompts.append(prompt[:MAX_PROMPT_CHARS])

    def _begin_turn(self, session: SeenSession, message: SeenMessage) -> None:
        turn = SeenTurn(message, rivals=[each.prompt.entry for each in session.running()])
        for each in session.running():
            each.rivals.append(message.entry)
        if session.turn is None:
            session.turn = turn
        else:
            session.queued.append(turn)

    def _apply_notification(self, message: SeenMessage) -> None:
        match message.method:
            case "session/update":
                self._apply_update(message)
            case "session/cancel" if (session := self.session(message)) is not None:
                self._apply_cancel(session, message)
            case "$/cancel_request":
                self._apply_recall(message)
            case _:
                pass

    def _apply_cancel(self, session: SeenSession, message: SeenMessage) -> None:
        for turn in session.running():
            if turn.cancel is None:
                turn.cancel = message.entry
                turn.awaited = self.requests.find_open("agent", session.id)
                self.cancelling.append(turn)
        if self.is_v2 and session.turn is None and self._is_prompted(session.id):
            self.foreground.of(session.id).early_cancel = message.entry

    def _is_prompted(self, session_id: str) -> bool:
        """Return whether a version 2 session has prompts that were not refused and whose work has not ended."""
        asked = self.requests.find_open("client", session_id)
        return bool(self.foreground.of(session_id).accepted) or any(each.method == "session/prompt" for each in asked)

    def _apply_recall(self, message: SeenMessage) -> None:
        request = self.requests.cancel(message)
        if request is not None and request.method == "session/prompt" and self.is_v2:
            self.foreground.of(text(request.params, "sessionId")).recalled = message.entry

    def _apply_update(self, message: SeenMessage) -> None:
        """Apply an update of a session."""
        session = self.session(message)
        # In version 2, `Foreground` may end or begin a turn here. A turn that ended needs no answer to its cancel.
        # A turn that began inherits a cancel that was sent before it.
        if self.is_v2:
            before = session.turn if session is not None else None
            self.foreground.apply_update(message, is_replay=text(message.params, "sessionId") in self.opening)
            if before is not None and before.end is not None and before in self.cancelling:
                self.cancelling.remove(before)
            if session is not None and before is None and session.turn is not None:
                self._apply_early_cancel(session.turn, self.foreground.of(session.id))
        if session is None:
            return
        update = message.update
        kind = update.get("sessionUpdate")
        if kind == "config_option_update":
            self._keep_options(session, update)
        elif self.is_v2:
            return
        elif kind in ("tool_call", "tool_call_update"):
            self._apply_tool_call(session, update, message)
        elif kind == "agent_message_chunk":
            self._apply_text(session, update)
            session.is_talking = session.turn is not None and session.closing is None and session.id not in self.opening
        elif kind == "current_mode_update":
            session.mode_id = text(update, "currentModeId") or session.mode_id

    def _apply_early_cancel(self, turn: SeenTurn, seen: Foreground) -> None:
        turn.cancel, seen.early_cancel = seen.early_cancel, None
        if turn.cancel is not None:
            self.cancelling.append(turn)

    def _apply_text(self, session: SeenSession, update: Object) -> None:
        past = self.memory.past(session.id)
        past.spoke = True
        if session.id in self.opening:
            return
        if session.turn is not None:
            session.turn.append_text(text(part(update, "content"), "text") or "")
        elif not past.prompts:
            past.has_begun = True

    def _apply_tool_call(self, session: SeenSession, update: Object, message: SeenMessage) -> None:
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

    def _apply_answer(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Follow an answer, by the method of its request.

        Order matters: version 2 answers a prompt when it accepts it, version 1 when the turn ends.
        """
        if answer.sender == "agent":
            self._record_reading(answer, request)
        if request.method in OPENERS:
            self._apply_opening(answer, request)
        elif request.method == "session/prompt" and self.is_v2:
            self._apply_accepted(answer, request)
        elif request.method == "session/prompt":
            self._apply_prompt_end(answer, request)
        elif request.method == "session/request_permission":
            self._apply_permission(answer, request)
        elif request.method in ("tool_call/cancel", "terminal/cancel"):
            self._apply_item_cancel(answer, request)
        elif request.method.startswith("terminal/"):
            self._apply_terminal(answer, request)
        elif request.method in CLOSERS and answer.kind == "error":
            self._apply_kept(request)
        elif answer.kind == "result":
            self._apply_result(answer, request)

    def _apply_accepted(self, answer: SeenMessage, request: SeenMessage) -> None:
        self.foreground.record_accepted(answer, request)
        session_id = text(request.params, "sessionId")
        if session_id is not None and not self._is_prompted(session_id):
            self.foreground.of(session_id).early_cancel = None

    def _apply_kept(self, request: SeenMessage) -> None:
        """Reopen a session that the agent refused to close or delete. A turn may have been cut short by the attempt."""
        session = self.session(request)
        if session is not None and session.closing is request.entry and not session.running():
            session.closing = None

    def _record_reading(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Record a response to a request sent after a cancel in the same session.

        It proves that the agent has read the cancel, because a bridge keeps the order per session.
        """
        session_id = request.params.get("sessionId")
        for turn in self.cancelling:
            is_behind = turn.cancel is not None and request.entry.n > turn.cancel.n
            if turn.cancel_read is None and is_behind and turn.prompt.params.get("sessionId") == session_id:
                turn.cancel_read = answer.entry

    def _apply_result(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Record the effect of a successful answer: the agreed version, a closed or deleted session, a setting."""
        session_id = text(request.params, "sessionId")
        # `memory` keeps facts for later connections of this check. `sessions` has the sessions of this connection.
        match request.method:
            case "initialize":
                self.agreement.record_answer(answer)
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

    def _apply_opening(self, answer: SeenMessage, request: SeenMessage) -> None:
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
        ids = [text(each, "id") for each in parts(modes, "availableModes")]
        if modes and len(ids) == len(items(modes, "availableModes")):  # otherwise ACP-MODE-006 covers them
            session.modes = {each for each in ids if each is not None}
            session.mode_id = text(modes, "currentModeId")
        self._keep_options(session, answer.params)
        self.sessions[session_id] = session
        past = self.memory.past(session_id)
        past.cwd = past.cwd or cwd
        past.closed = False
        past.births += request.method == "session/new"

    def _apply_prompt_end(self, answer: SeenMessage, request: SeenMessage) -> None:
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
        """Remember the content that a replay must have. For an interrupted turn, the specification says nothing."""
        is_cut = turn.cancel or turn.rivals or turn.prompt.cancelled or session.closing
        if is_cut or text(answer.params, "stopReason") in (None, "cancelled", "refusal"):
            return
        asked = [
            words[:MAX_PROMPT_CHARS] for each in parts(turn.prompt.params, "prompt") if (words := text(each, "text"))
        ]
        calls = [each.id for each in turn.calls.values() if each.status == "completed"]
        self.memory.past(session.id).keep(asked, turn.said, calls)

    def _apply_permission(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Record the user's choice at the tool call that it is about.

        The answer also proves that the agent could read an earlier cancel of the turn that waited for it.
        """
        session = self.session(request)
        if session is None:
            return
        for turn in session.running():
            if request in turn.awaited:
                turn.cancel_read = turn.cancel_read or answer.entry
        outcome = part(answer.params, "outcome")
        if outcome.get("outcome") == "cancelled" and session.turn is not None:
            session.turn.dismissed = answer.entry
        call = session.calls.get(requested_call_id(request.params) or "")
        if call is None or outcome.get("outcome") != "selected":
            return
        kinds = {each.get("optionId"): each.get("kind") for each in parts(request.params, "options") if _is_plain(each)}
        kind = kinds.get(text(outcome, "optionId"))
        if kind in ("allow_once", "allow_always"):
            call.granted = answer.entry
        elif kind in ("reject_once", "reject_always"):
            call.rejected = answer.entry

    def _apply_item_cancel(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Record that a tool call or a terminal of version 2 is being cancelled separately."""
        session = self.session(request)
        if answer.kind == "error" or session is None:
            return
        if request.method == "tool_call/cancel":
            item = session.calls.get(text(request.params, "toolCallId") or "")
        else:
            item = self.foreground.of(session.id).terminals.get(text(request.params, "terminalId") or "")
        if item is not None:
            item.cancelling = request

    def _apply_terminal(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Follow a terminal of the client from its creation to its release."""
        if answer.kind == "error":
            return
        if request.method == "terminal/create":
            terminal_id = text(answer.params, "terminalId")
            if terminal_id is not None:
                session_id = text(request.params, "sessionId")
                limit = number(request.params, "outputByteLimit")
                command = " ".join((text(request.params, "command") or "", *texts(request.params, "args")))
                self.terminals[terminal_id] = SeenTerminal(terminal_id, answer.entry, session_id, command, limit)
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


def requested_call_id(params: Object) -> str | None:
    """Return the id of the tool call that a permission request is about, in either version."""
    subject = part(params, "subject")
    asked = part(params, "toolCall") or part(subject, "toolCall") or subject
    return text(asked, "toolCallId")


def _is_plain(option: Object) -> bool:
    return isinstance(option.get("optionId"), str)
