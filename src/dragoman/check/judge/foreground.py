"""The state of version 2 sessions from their updates: foreground work, messages, tool calls and display terminals.

Foreground work is stored as a turn. It starts with `running` or `requires_action`, whichever side started it, and ends
with the next `idle`. A prompt is not part of a turn, because its response only says that its message was inserted.

    update                          effect
    state_update: running           starts a turn, unless one runs
    state_update: requires_action   starts a turn, unless one runs
    state_update: idle              ends the turn, and forgets the accepted prompts
    agent messages, tool calls      belong to the running turn, and otherwise count as early output
"""

from collections.abc import Mapping

import msgspec

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage, offered, part, parts, text
from dragoman.check.judge.session import MAX_SAID_CHARS, AgentMemory, SeenSession, SeenToolCall, SeenTurn

MAX_ITEMS = 2000
"""Maximum number of messages, tool calls and terminals remembered per session, because a tap may run for weeks."""
MAX_ACCEPTED = 200

WRITERS: Mapping[str, str] = {
    "user_message": "user",
    "user_message_chunk": "user",
    "agent_message": "agent",
    "agent_message_chunk": "agent",
    "agent_thought": "thought",
    "agent_thought_chunk": "thought",
}
"""Updates of messages, and the writer of each."""
ENDED = frozenset({"completed", "failed", "cancelled"})
"""The final statuses of a tool call."""
WORKING = frozenset({"running", "requires_action"})


class SeenText(msgspec.Struct, eq=False):
    """A message of a conversation: its writer, its first update, and its text so far."""

    writer: str
    entry: ConversationEntry
    text: str = ""

    def apply(self, update: Object) -> None:
        """Apply an update. A chunk appends, content replaces, null clears, and absent content changes nothing."""
        if str(update.get("sessionUpdate")).endswith("_chunk"):
            self.text = (self.text + (text(part(update, "content"), "text") or ""))[:MAX_SAID_CHARS]
        elif "content" in update:
            texts = [text(block, "text") or "" for block in parts(update, "content")]
            self.text = "".join(texts)[:MAX_SAID_CHARS]


class SeenDisplay(msgspec.Struct, eq=False):
    """A terminal that the agent shows."""

    id: str
    entry: ConversationEntry
    command: str | None = None
    exited: ConversationEntry | None = None
    can_cancel: bool = False
    withdrawn: ConversationEntry | None = None
    """The last update after which it could no longer be cancelled."""
    cancelling: SeenMessage | None = None


class AcceptedPrompt(msgspec.Struct, eq=False):
    """A prompt whose message was inserted, and whether that message was shown."""

    message_id: str
    answer: SeenMessage
    is_shown: bool = False


class Foreground(msgspec.Struct, eq=False):
    """The state of one session, and the items that its updates have built."""

    state: str = "idle"
    changed: ConversationEntry | None = None
    """The last `state_update`."""
    messages: dict[str, SeenText] = {}
    terminals: dict[str, SeenDisplay] = {}
    accepted: list[AcceptedPrompt] = []
    """Prompts that were accepted since the session was last idle."""
    early_cancel: ConversationEntry | None = None
    """The `session/cancel` for prompts whose work is not reported yet."""
    recalled: ConversationEntry | None = None
    """The `$/cancel_request` for an unanswered prompt since the session was last idle."""
    background: list[tuple[str, str]] | None = None
    """The kinds and ids of background work in the last list. None if no list was sent."""
    background_entry: ConversationEntry | None = None
    spoken: ConversationEntry | None = None
    """The agent's last output since it was idle: a message, a thought or a tool call."""

    early: ConversationEntry | None = None
    """The first output after a prompt was accepted, while no work was reported as running."""

    @property
    def has_background(self) -> bool:
        """Return whether work may run in the background, so that output of an idle session proves nothing."""
        is_displayed = any(each.exited is None for each in self.terminals.values())
        return bool(self.background) or is_displayed

    def is_stuck(self, turn: SeenTurn) -> bool:
        """Return whether overdue work has been silent since a cancel that the agent has read.

        It may then have ended.
        """
        return turn.is_stuck and (self.spoken is None or turn.cancel is None or self.spoken.n < turn.cancel.n)

    def find_shown(self, message_id: str) -> bool:
        """Return whether a message of the user was shown."""
        message = self.messages.get(message_id)
        return message is not None and message.writer == "user"

    def record_output(self, entry: ConversationEntry) -> None:
        """Record a new message or tool call of the agent. It is early output if a prompt was accepted."""
        if self.state == "idle" and self.accepted and not self.has_background:
            self.early = self.early or entry


class ForegroundTable:
    """The foreground of each session by id, including sessions whose `session/new` is not answered yet."""

    def __init__(self, sessions: dict[str, SeenSession], memory: AgentMemory) -> None:
        self._sessions = sessions
        self._memory = memory
        self._found: dict[str, Foreground] = {}

    def of(self, session_id: str | None) -> Foreground:
        """Return the foreground of a session."""
        if session_id is None:
            return Foreground()
        if session_id not in self._found and len(self._found) >= MAX_ITEMS:
            del self._found[next(iter(self._found))]
        return self._found.setdefault(session_id, Foreground())

    def apply_update(self, message: SeenMessage, *, is_replay: bool) -> None:
        """Apply a `session/update`."""
        session_id = text(message.params, "sessionId")
        if session_id is None:
            return
        seen, update = self.of(session_id), message.update
        session = self._sessions.get(session_id)
        kind = text(update, "sessionUpdate") or ""
        if kind in WRITERS:
            self._apply_message(session_id, seen, message, is_replay=is_replay)
        elif kind == "state_update":
            self._apply_state(session, seen, message)
        elif kind in ("tool_call", "tool_call_update", "tool_call_content_chunk"):  # the first is from version 1
            seen.spoken = message.entry
            if session is not None and text(update, "toolCallId") not in session.calls:
                seen.record_output(message.entry)
            if session is not None:
                apply_call(session, update, message)
        elif kind in ("terminal_update", "terminal_output_chunk"):
            _apply_terminal(seen, update, message)

    def record_accepted(self, answer: SeenMessage, request: SeenMessage) -> None:
        """Record the response to a prompt."""
        message_id = text(answer.params, "messageId")
        session_id = text(request.params, "sessionId")
        if answer.kind == "error" or message_id is None or session_id is None:
            return
        seen = self.of(session_id)
        seen.accepted.append(AcceptedPrompt(message_id, answer, seen.find_shown(message_id)))
        del seen.accepted[:-MAX_ACCEPTED]
        asked = "".join(text(block, "text") or "" for block in parts(request.params, "prompt"))
        self._memory.past(session_id).message_ids[message_id] = asked[:MAX_SAID_CHARS]

    def _apply_message(self, session_id: str, seen: Foreground, message: SeenMessage, *, is_replay: bool) -> None:
        """Collect a message or a chunk of one.

        A user's message shows that the prompt with its id was accepted. Any other message counts as output of
        the agent, unless it is replayed.
        """
        update = message.update
        message_id, writer = text(update, "messageId"), WRITERS[str(update["sessionUpdate"])]
        if message_id is None:
            return
        if len(seen.messages) >= MAX_ITEMS:
            del seen.messages[next(iter(seen.messages))]
        seen.messages.setdefault(message_id, SeenText(writer, message.entry)).apply(update)
        if writer == "user":
            for each in seen.accepted:
                each.is_shown = each.is_shown or each.message_id == message_id
            return
        if seen.messages[message_id].entry is message.entry:
            seen.record_output(message.entry)
        seen.spoken = message.entry
        past, session = self._memory.past(session_id), self._sessions.get(session_id)
        past.spoke = past.spoke or writer == "agent"
        if writer == "agent" and not is_replay and not past.prompts:
            past.has_begun = True
        if session is not None:
            is_chunk = str(update["sessionUpdate"]).endswith("_chunk")
            if session.turn is not None:
                session.turn.message_id = message_id
            session.is_talking = is_chunk and session.turn is not None and session.closing is None and not is_replay

    def _apply_state(self, session: SeenSession | None, seen: Foreground, message: SeenMessage) -> None:
        state = text(message.update, "state") or seen.state
        _apply_background(seen, message)
        seen.state, seen.changed = state, message.entry
        seen.early = None
        if session is None:
            return
        if state in WORKING:
            if session.turn is None:
                session.turn = SeenTurn(message)
        elif state == "idle":
            self._end_turn(session, seen, message)
        session.is_talking = session.is_talking and session.turn is not None

    def _end_turn(self, session: SeenSession, seen: Foreground, message: SeenMessage) -> None:
        turn = session.turn
        if turn is not None:
            turn.end = message
            session.last, session.turn = turn, None
            self._keep(session, seen, turn, message)
        seen.accepted.clear()
        seen.spoken = seen.recalled = seen.early_cancel = None

    def _keep(self, session: SeenSession, seen: Foreground, turn: SeenTurn, idle: SeenMessage) -> None:
        """Remember the content that a replay must have. For interrupted work, the specification says nothing."""
        if turn.cancel or session.closing or text(idle.update, "stopReason") in (None, "cancelled", "refusal"):
            return
        asked = [self._memory.past(session.id).message_ids.get(each.message_id, "") for each in seen.accepted]
        began = turn.prompt.entry.n
        texts = [each.text for each in seen.messages.values() if each.writer == "agent" and each.entry.n > began]
        calls = [call.id for call in turn.calls.values() if call.status == "completed"]
        if turn.said:  # the fast path has counted text that the messages lack
            texts = turn.said
        self._memory.past(session.id).keep(asked, texts, calls)


def apply_call(session: SeenSession, update: Object, message: SeenMessage) -> None:
    """Apply an update of a tool call, or the tool call of a permission request."""
    call_id = text(update, "toolCallId")
    if call_id is None:
        return
    call = session.calls.get(call_id)
    if call is None:
        call = session.calls[call_id] = SeenToolCall(call_id, message.entry, turn=session.turn)
        if len(session.calls) > MAX_ITEMS:
            del session.calls[next(iter(session.calls))]
    if session.turn is not None:
        session.turn.calls.setdefault(call_id, call)
        session.turn.is_pausing = True
    if "status" in update:
        call.status = text(update, "status") or "pending"
        call.ran = call.ran or call.status == "in_progress"
    _apply_offer(call, update, message)


def _apply_terminal(seen: Foreground, update: Object, message: SeenMessage) -> None:
    terminal_id = text(update, "terminalId")
    if terminal_id is None:
        return
    terminal = seen.terminals.get(terminal_id)
    if terminal is None:
        terminal = seen.terminals[terminal_id] = SeenDisplay(terminal_id, message.entry)
        if len(seen.terminals) > MAX_ITEMS:
            del seen.terminals[next(iter(seen.terminals))]
    if "command" in update:
        terminal.command = text(update, "command")
    if "exitStatus" in update:
        terminal.exited = message.entry if update["exitStatus"] is not None else None
    _apply_offer(terminal, update, message)


def _apply_offer(item: SeenToolCall | SeenDisplay, update: Object, message: SeenMessage) -> None:
    """Record whether a tool call or a terminal can be cancelled separately."""
    if "capabilities" not in update:
        return
    can_cancel = offered(part(update, "capabilities"), "cancel")
    if item.can_cancel and not can_cancel:
        item.withdrawn = message.entry
    item.can_cancel = can_cancel


def _apply_background(seen: Foreground, message: SeenMessage) -> None:
    if isinstance(message.update.get("background"), list):
        seen.background = list_background(message.update)
        seen.background_entry = message.entry


def list_background(update: Object) -> list[tuple[str, str]]:
    """Return the kinds and ids of the background work listed in a `state_update`."""
    named = (("tool_call", "toolCallId"), ("terminal", "terminalId"))
    work = parts(update, "background")
    return [(kind, found) for each in work for kind, name in named if (found := text(each, name)) is not None]
