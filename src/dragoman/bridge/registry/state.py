"""The life of a session in the bridge, as one state machine.

The bridge knows a session by two things that come and go independently: its journal, which the bridge writes, and the
agent's own memory of it, which is lost when the agent ends. A viewer can always read the journal; to go on with the
conversation the agent must have the session. The phases say which of the two there is, and which request is under way
to get the other.

    OPENING       There was no journal. The agent was asked to load or resume the session for the first time; its
                  updates are journalled. The session is deleted if the agent refuses.
    JOURNAL_ONLY  The journal of an earlier run was opened, and the agent was not asked, because its viewers only read
                  or named another directory, or it failed. It is asked for the next request that needs it.
    REPLAYING     From JOURNAL_ONLY: the agent was asked to load the session. Its replay is kept apart, because the
                  agent may know more than the journal, or less.
    LIVE          The agent has the session.
    ASLEEP        The agent had it and has ended, or could not be asked. It is woken for the next request that needs it.
    WAKING        A request needs it: the bridge waits for the agent to start, or for an answer that is overdue.
    REOPENING     From WAKING: the agent was asked to resume the session, or to load it, whose replay is dropped
                  because the journal has it.
    CLOSED        A viewer closed it; the agent has put it away. A viewer has to open it before it can go on.
    REFUSED       The agent refused to load it. Its journal can be read, and the next load asks again.
    GONE          The agent refused to take it up again, or cannot. Its journal can be read.
    DELETED       It is no session any more. Answers that come late change nothing.

    session/new ─────────────────────────────► LIVE ◄──────────────┐
    unknown id ───► OPENING ────RESTORED───────►│ ▲                │
                                                │ └─RESTORED─┐     │
    journal ──► JOURNAL_ONLY ──REPLAY──► REPLAYING ──────────┘     │
                     │  ▲                 │  │                     │
                     │  └────FAILED───────┘  └─REFUSE─► REFUSED    │
                     └─WAKE──► WAKING ──ASK──► REOPENING ─RESTORED─┤
                                ▲  ▲  ◄─SILENCE──┘  │              │
                              WAKE │                └─REFUSE─► GONE│
    LIVE ──AGENT_ENDED──► ASLEEP ──┘ (FAILED leads back to ASLEEP) │
    LIVE ──CLOSE──► CLOSED ──OPEN──► ASLEEP                        │
    session/new with a known id ───────────────────RESTORED────────┘

That the agent wants somebody to log in is no phase: it is a reason beside ASLEEP or JOURNAL_ONLY (`SessionLife.login`).
An event that the table does not have is an error of the bridge and raises WrongTransition.
"""

from enum import Enum, auto

from dragoman.errors import DragomanError


class SessionPhase(Enum):
    """The phases of a session's life."""

    OPENING = auto()
    JOURNAL_ONLY = auto()
    REPLAYING = auto()
    LIVE = auto()
    ASLEEP = auto()
    WAKING = auto()
    REOPENING = auto()
    CLOSED = auto()
    REFUSED = auto()
    GONE = auto()
    DELETED = auto()


class LifeEvent(Enum):
    """The events that change a phase."""

    WAKE = auto()
    """A request needs the agent to have the session."""
    ASK = auto()
    """The agent is asked to take the session up again; its replay, if there is one, is dropped."""
    REPLAY = auto()
    """The agent is asked to load the session; its replay is kept apart."""
    RESTORED = auto()
    """The agent has the session."""
    SILENCE = auto()
    """The agent is overdue with its answer; viewers that waited were refused."""
    FAILED = auto()
    """No answer, or one that leaves room for another attempt."""
    REFUSE = auto()
    """The agent does not have the session, and asking again the same way is useless."""
    AGENT_ENDED = auto()
    """The agent's process is gone."""
    CLOSE = auto()
    """The agent has answered session/close."""
    OPEN = auto()
    """A viewer that may do more than read opens the session."""


_P, _E = SessionPhase, LifeEvent

TRANSITIONS: dict[SessionPhase, dict[LifeEvent, SessionPhase]] = {
    _P.OPENING: {
        _E.RESTORED: _P.LIVE,
        _E.AGENT_ENDED: _P.OPENING,  # the request for it waits for the agent's next life
        _E.CLOSE: _P.OPENING,  # the answer to the request that opens it decides
    },
    _P.JOURNAL_ONLY: {
        _E.WAKE: _P.WAKING,
        _E.REPLAY: _P.REPLAYING,
        _E.RESTORED: _P.LIVE,
        _E.CLOSE: _P.CLOSED,
    },
    _P.REPLAYING: {
        _E.RESTORED: _P.LIVE,
        _E.FAILED: _P.JOURNAL_ONLY,
        _E.REFUSE: _P.REFUSED,
        _E.CLOSE: _P.REPLAYING,
    },
    _P.LIVE: {
        _E.WAKE: _P.WAKING,  # the agent is being stopped, and the request is for its next life
        _E.RESTORED: _P.LIVE,
        _E.AGENT_ENDED: _P.ASLEEP,
        _E.CLOSE: _P.CLOSED,
    },
    _P.ASLEEP: {
        _E.WAKE: _P.WAKING,
        _E.RESTORED: _P.LIVE,
        _E.CLOSE: _P.CLOSED,
    },
    _P.WAKING: {
        _E.ASK: _P.REOPENING,
        _E.RESTORED: _P.LIVE,  # an overdue answer
        _E.SILENCE: _P.WAKING,
        _E.FAILED: _P.ASLEEP,
        _E.REFUSE: _P.GONE,
        _E.CLOSE: _P.WAKING,
    },
    _P.REOPENING: {
        _E.ASK: _P.REOPENING,  # by session/load, because session/resume is not there after all
        _E.RESTORED: _P.LIVE,
        _E.SILENCE: _P.WAKING,
        _E.FAILED: _P.ASLEEP,
        _E.REFUSE: _P.GONE,
        _E.CLOSE: _P.REOPENING,
    },
    _P.CLOSED: {
        _E.WAKE: _P.WAKING,
        _E.OPEN: _P.ASLEEP,
        _E.RESTORED: _P.LIVE,
        _E.CLOSE: _P.CLOSED,
    },
    _P.REFUSED: {
        _E.REPLAY: _P.REPLAYING,
        _E.RESTORED: _P.LIVE,
        _E.CLOSE: _P.REFUSED,
    },
    _P.GONE: {
        _E.RESTORED: _P.LIVE,
        _E.CLOSE: _P.GONE,
    },
    _P.DELETED: dict.fromkeys(LifeEvent, _P.DELETED),
}
"""The phase that follows each phase after an event."""

_AT_AGENT = frozenset({_P.OPENING, _P.REOPENING, _P.LIVE})
_ASKED_FOR = frozenset({_P.OPENING, _P.REPLAYING, _P.WAKING, _P.REOPENING, _P.LIVE})
_UNREACHABLE = frozenset({_P.REFUSED, _P.GONE})
_RESTING = frozenset({_P.JOURNAL_ONLY, _P.REFUSED})


class WrongTransition(DragomanError):
    """An event came that a session's phase does not have: an error of the bridge."""

    def __init__(self, session_id: str, phase: SessionPhase, event: LifeEvent) -> None:
        self.session_id = session_id
        self.phase = phase
        self.event = event
        super().__init__(f"session {session_id} is {phase.name}, which has no {event.name}; please report this")


class SessionLife:
    """The phase of one session, with the words for people that go with it."""

    def __init__(self, session_id: str, phase: SessionPhase) -> None:
        self.phase = phase
        self.loss: str | None = None
        """The reason why the agent does not have it, in REFUSED and GONE."""
        self.login: str | None = None
        """The request to log in, since the agent last refused for that reason."""
        self._session_id = session_id

    @property
    def is_at_agent(self) -> bool:
        """Whether the agent has the session, or was asked to."""
        return self.phase in _AT_AGENT

    @property
    def is_usable(self) -> bool:
        """Whether requests can be passed to the agent at once."""
        return self.phase in (_P.LIVE, _P.OPENING)

    @property
    def is_asked_for(self) -> bool:
        """Whether the agent has the session, or is to have it."""
        return self.phase in _ASKED_FOR

    @property
    def is_unreachable(self) -> bool:
        """Whether the agent refused it: only its journal is left."""
        return self.phase in _UNREACHABLE

    @property
    def is_resting(self) -> bool:
        """Whether only its journal is open, and the agent may be asked to load it."""
        return self.phase in _RESTING

    @property
    def is_deleted(self) -> bool:
        """Whether it is no session any more."""
        return self.phase is _P.DELETED

    def can(self, event: LifeEvent) -> bool:
        """Tell whether an event is possible now."""
        return event in TRANSITIONS[self.phase]

    def take(self, event: LifeEvent, loss: str | None = None) -> None:
        """Go to the phase that follows an event; raises WrongTransition."""
        following = TRANSITIONS[self.phase].get(event)
        if following is None:
            raise WrongTransition(self._session_id, self.phase, event)
        self.phase = following
        self.loss = (loss or self.loss) if self.is_unreachable else None
        if following is _P.LIVE:
            self.login = None

    def delete(self) -> None:
        """End it for good."""
        self.phase = _P.DELETED
