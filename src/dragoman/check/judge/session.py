"""Sessions, turns, tool calls and terminals as a conversation shows them, and the memory of an agent."""

import msgspec

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import Object, SeenMessage

INVENTED = "dragoman-invented-"
"""The prefix of ids of sessions, cursors and methods that nobody issued, so that the judge recognizes them."""

ALIVE = f"_{INVENTED}alive"
"""The method of a request that shows whether an agent answers anything, after it did not answer another one in time."""

MAX_KEPT = 200
"""Items of each kind that are kept of a session: enough to see gaps in a replay."""


class PastSession(msgspec.Struct):
    """The past of a session over all connections."""

    cwd: str | None = None
    births: int = 0
    """How often its id was given to a new session."""
    prompts: list[str] = []
    spoke: bool = False
    has_begun: bool = False
    """Whether the agent spoke before anybody asked."""
    asked: list[str] = []
    """Texts of prompts whose turns have ended well, and so are part of the conversation."""
    said: list[str] = []
    """The texts of the agent in those turns, cut at tool calls."""
    calls: list[str] = []
    """Tool calls that were completed in them."""
    message_ids: dict[str, str] = {}
    """The texts of prompts by the ids of their messages, in version 2."""
    listed: bool = False
    closed: bool = False
    deleted: bool = False

    @property
    def is_shared(self) -> bool:
        """Tell whether its id is that of several sessions, so that it is not known which of them is meant."""
        return self.births > 1

    @property
    def is_lost(self) -> bool:
        """Tell whether it may be gone for a good reason: it was deleted, or one that has its id was."""
        return self.deleted or self.is_shared

    def keep(self, asked: list[str], said: list[str], calls: list[str]) -> None:
        """Remember a turn that has ended well."""
        for kept, more in ((self.asked, asked), (self.said, said), (self.calls, calls)):
            kept.extend(more[: MAX_KEPT - len(kept)])


class Memory:
    """The sessions of an agent, and the protocol versions it agreed to; one for all connections to the same agent."""

    def __init__(self) -> None:
        self.sessions: dict[str, PastSession] = {}
        self.versions: set[int] = set()
        self.taken: set[str] = set()
        """Kinds of content that the agent accepted in prompts."""

    def past(self, session_id: str) -> PastSession:
        """Return the past of a session, empty when nothing is known of it."""
        return self.sessions.setdefault(session_id, PastSession())


FINISHED = frozenset({"completed", "failed"})
MAX_SAID = 200
MAX_SAID_CHARS = 2000
"""How much text of the agent is remembered, to recognize it in a replay."""


MAX_FORMS = 20
"""Forms of one config option that are remembered: it may have other values for each value of another."""


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
    """Whether it may be cancelled alone now, in version 2."""
    withdrawn: ConversationEntry | None = None
    """The last update by which it could not be cancelled any more."""
    cancelling: SeenMessage | None = None
    """The `tool_call/cancel` that was accepted for it."""


class SeenTurn(msgspec.Struct, eq=False):
    """A prompt and its turn; in version 2 a piece of foreground work, and the `state_update` that began it."""

    prompt: SeenMessage
    cancel: ConversationEntry | None = None
    awaited: list[SeenMessage] = []
    """The agent's open requests when the turn was cancelled."""
    heard: ConversationEntry | None = None
    """The entry that proves that the agent had read the cancel by then."""
    calls: dict[str, SeenToolCall] = {}
    dismissed: ConversationEntry | None = None
    """A permission that was answered with `cancelled`."""
    rivals: list[ConversationEntry] = []
    """Prompts that were sent to the session while this one ran, or that ran when it was sent."""
    end: SeenMessage | None = None
    said: list[str] = []
    """The texts of the agent, cut at tool calls."""
    is_pausing: bool = True
    """Whether the next text of the agent begins a new piece."""
    message_id: str | None = None
    """The message that its last text belongs to, in version 2."""

    def hear(self, words: str) -> None:
        """Add a piece of the agent's text."""
        if self.is_pausing:
            if len(self.said) < MAX_SAID:
                self.said.append(words[:MAX_SAID_CHARS])
                self.is_pausing = False
        elif len(self.said[-1]) < MAX_SAID_CHARS:
            self.said[-1] += words[:MAX_SAID_CHARS]


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
    once_offered: dict[str, list[Object]] = {}
    """All options that it ever had, each in the last forms that it had: values come and go with other options."""
    closing: ConversationEntry | None = None
    """The request that closes or deletes it."""
    closed: ConversationEntry | None = None
    is_talking: bool = False
    """Whether its turn runs and has brought text, so that more text can take the fast path."""

    def keep_options(self, options: list[Object], id_field: str = "id") -> None:
        """Take the options that the agent has sent now."""
        self.options = {name: each for each in options if isinstance(name := each.get(id_field), str)}
        for name, option in self.options.items():
            forms = self.once_offered.setdefault(name, [])
            values = (option.get("type"), option.get("options"))
            if values not in [(each.get("type"), each.get("options")) for each in forms]:
                forms.append(option)
                del forms[:-MAX_FORMS]

    def running(self) -> list[SeenTurn]:
        """Return the turns that are not over, the oldest first."""
        return [self.turn, *self.queued] if self.turn is not None else list(self.queued)


class SeenTerminal(msgspec.Struct):
    """One terminal and how far it has come."""

    id: str
    created: ConversationEntry
    session_id: str | None
    max_bytes: float | None = None
    exited: ConversationEntry | None = None
    killed: ConversationEntry | None = None
    released: ConversationEntry | None = None
