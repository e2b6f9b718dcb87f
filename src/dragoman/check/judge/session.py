"""Sessions, turns, tool calls and terminals as a conversation shows them, and the memory of an agent."""

import msgspec

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage

INVENTED = "dragoman-invented-"
"""The prefix of ids of sessions, cursors and methods that no agent issued, so that the judge recognises them."""

ALIVE = f"_{INVENTED}alive"
"""The method of a liveness request, sent after an agent did not answer another request in time."""

MAX_KEPT = 200
"""Maximum number of items of each kind kept per session, enough to find gaps in a replay."""


class PastSession(msgspec.Struct):
    """The past of a session across all connections."""

    cwd: str | None = None
    births: int = 0
    """How often its id was issued for a new session."""
    prompts: list[str] = []
    spoke: bool = False
    has_begun: bool = False
    """Whether the agent sent a message before any prompt."""
    asked: list[str] = []
    """Texts of prompts whose turns ended normally, so that they are part of the conversation."""
    said: list[str] = []
    """The agent's texts in those turns, split at tool calls."""
    calls: list[str] = []
    """Tool calls that were completed in those turns."""
    message_ids: dict[str, str] = {}
    """The texts of prompts by their message ids, in version 2."""
    listed: bool = False
    closed: bool = False
    deleted: bool = False

    @property
    def is_shared(self) -> bool:
        """Return whether several sessions share its id, so that it is unknown which of them is meant."""
        return self.births > 1

    @property
    def is_lost(self) -> bool:
        """Return whether it may be gone for a valid reason: it was deleted, or another session with its id was."""
        return self.deleted or self.is_shared

    def keep(self, asked: list[str], said: list[str], calls: list[str]) -> None:
        """Remember a turn that ended normally."""
        for kept, more in ((self.asked, asked), (self.said, said), (self.calls, calls)):
            kept.extend(more[: MAX_KEPT - len(kept)])


class AgentMemory:
    """The sessions of an agent and its protocol versions. All connections to the same agent share one memory."""

    def __init__(self) -> None:
        self.sessions: dict[str, PastSession] = {}
        self.versions: set[int] = set()
        self.accepted_content: set[str] = set()
        """Content types that the agent accepted in prompts."""

    def past(self, session_id: str) -> PastSession:
        """Return the past of a session. It is empty if nothing is known."""
        return self.sessions.setdefault(session_id, PastSession())


FINISHED = frozenset({"completed", "failed"})
UNFINISHED = frozenset({"pending", "in_progress"})
MAX_SAID = 200
MAX_SAID_CHARS = 2000
"""Maximum length of an agent's text remembered to recognise it in a replay."""


MAX_FORMS = 20
"""Maximum number of forms remembered per config option, because it may have other values for each value of another."""


class SeenToolCall(msgspec.Struct, eq=False):
    """A tool call, and the answers to permission requests for it."""

    id: str
    entry: ConversationEntry
    status: str = "pending"
    turn: "SeenTurn | None" = None
    granted: ConversationEntry | None = None
    rejected: ConversationEntry | None = None
    ran: bool = False
    can_cancel: bool = False
    """Whether it can currently be cancelled separately, in version 2."""
    withdrawn: ConversationEntry | None = None
    """The last update after which it could no longer be cancelled."""
    cancelling: SeenMessage | None = None
    """The accepted `tool_call/cancel` for it."""


class SeenTurn(msgspec.Struct, eq=False):
    """A prompt and its turn. In version 2, a piece of foreground work and the `state_update` that started it."""

    prompt: SeenMessage
    cancel: ConversationEntry | None = None
    awaited: list[SeenMessage] = []
    """The agent's open requests when the turn was cancelled."""
    cancel_read: ConversationEntry | None = None
    """The entry that proves that the agent had read the cancel by then."""
    calls: dict[str, SeenToolCall] = {}
    overdue: ConversationEntry | None = None
    """The event that the turn had not ended in time, before it was cancelled."""
    dismissed: ConversationEntry | None = None
    """A permission request that was answered with `cancelled`."""
    rivals: list[ConversationEntry] = []
    """Prompts that were sent to the session while this one ran, or that ran when this one was sent."""
    end: SeenMessage | None = None
    said: list[str] = []
    """The agent's texts, split at tool calls."""
    is_pausing: bool = True
    """Whether the agent's next text starts a new piece."""
    message_id: str | None = None
    """The message that its last text belongs to, in version 2."""

    @property
    def is_stuck(self) -> bool:
        """Return whether it has ended neither in time nor after a cancel that the agent has read."""
        return self.overdue is not None and self.cancel is not None and self.cancel_read is not None

    def append_text(self, text: str) -> None:
        """Append a piece of the agent's text."""
        if self.is_pausing:
            if len(self.said) < MAX_SAID:
                self.said.append(text[:MAX_SAID_CHARS])
                self.is_pausing = False
        elif len(self.said[-1]) < MAX_SAID_CHARS:
            self.said[-1] += text[:MAX_SAID_CHARS]


class SeenSession(msgspec.Struct, eq=False):
    """A session that was opened on this connection."""

    id: str
    opened: SeenMessage
    cwd: str | None = None
    roots: list[str] = []
    turn: SeenTurn | None = None
    queued: list[SeenTurn] = []
    last: SeenTurn | None = None
    """The turn that ended last."""
    calls: dict[str, SeenToolCall] = {}
    modes: set[str] | None = None
    mode_id: str | None = None
    options: dict[str, Object] = {}
    past_options: dict[str, list[Object]] = {}
    """All options that it ever had, each with its last forms. Values may depend on other options."""
    closing: ConversationEntry | None = None
    """The request that closes or deletes it."""
    closed: ConversationEntry | None = None
    is_talking: bool = False
    """Whether its turn runs and has sent text, so that more text can take the fast path."""

    def keep_options(self, options: list[Object], id_field: str = "id") -> None:
        """Set the options that the agent sent last."""
        self.options = {name: each for each in options if isinstance(name := each.get(id_field), str)}
        for name, option in self.options.items():
            forms = self.past_options.setdefault(name, [])
            values = (option.get("type"), option.get("options"))
            if values not in [(each.get("type"), each.get("options")) for each in forms]:
                forms.append(option)
                del forms[:-MAX_FORMS]

    def running(self) -> list[SeenTurn]:
        """Return the running turns, the oldest first."""
        return [self.turn, *self.queued] if self.turn is not None else list(self.queued)


class SeenTerminal(msgspec.Struct):
    """A terminal and its progress."""

    id: str
    created: ConversationEntry
    session_id: str | None
    command: str = ""
    """The command with its arguments."""
    max_bytes: float | None = None
    exited: ConversationEntry | None = None
    killed: ConversationEntry | None = None
    released: ConversationEntry | None = None

    @property
    def sleep_s(self) -> float:
        """How long the command sleeps, or 0 if it does something else."""
        name, _, seconds = self.command.partition(" ")
        return float(seconds) if name == "sleep" and seconds.isdigit() else 0.0

    def prints_more_than(self, output: str) -> bool:
        """Return whether an output is only the end of the command's known output."""
        name, _, printed = self.command.partition(" ")
        end = output.rstrip("\r\n")
        return name == "echo" and 0 < len(end) < len(printed) and printed.endswith(end) and self.exited is not None
