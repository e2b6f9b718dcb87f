"""The phases of a session's life in the bridge.

The bridge knows a session by two things that come and go independently: its journal, which the bridge writes, and the
agent's own memory of it, which is lost when the agent ends. A viewer can always read the journal. To continue the
conversation the agent must have the session. A phase says which of the two exists. `ServedSession.is_asked` says
whether the agent is being asked for the session. Its answer decides the next phase (`ServedSession.open_at_agent`).

    OPENING       There was no journal. The agent is asked for the session for the first time, and its updates are
                  journalled. The session is deleted if the agent refuses.
    JOURNAL_ONLY  The journal of an earlier run is open, and the agent has not opened the session in this run. A load
                  compares the agent's replay with the journal, because the agent may know more, or less.
    LIVE          The agent has the session.
    ASLEEP        The agent had it and has ended. It is asked again for the next request that needs it. If it can only
                  load, its replay is dropped, because the journal has it. Without viewers the session leaves memory.
    CLOSED        A viewer closed it, and so did the agent. A viewer has to open it before it can be prompted. Once no
                  viewer has it open it leaves memory, and the next request for it begins with its journal.
    REFUSED       The agent refused to load it. Its journal can be read, and the next load asks again.
    GONE          The agent refused to open it again, or cannot. Its journal can be read. Without viewers the session
                  leaves memory.
    DELETED       It is no longer a session. Late answers change nothing.

    session/new ────────────────────► LIVE
    unknown id ─► OPENING ──opened──► LIVE ──agent ended──► ASLEEP ──opened──► LIVE
    journal ─► JOURNAL_ONLY ─opened─► LIVE ──closed──► CLOSED ──opened by a viewer──► ASLEEP
               JOURNAL_ONLY ─refused─► REFUSED ──opened──► LIVE
                                       ASLEEP ──refused──► GONE

A login that the agent requires is not a phase. It is a reason beside the phase (`ServedSession.login`).
"""

from enum import Enum, auto


class SessionPhase(Enum):
    """The phases of a session's life."""

    OPENING = auto()
    JOURNAL_ONLY = auto()
    LIVE = auto()
    ASLEEP = auto()
    CLOSED = auto()
    REFUSED = auto()
    GONE = auto()
    DELETED = auto()


CLOSABLE = frozenset({SessionPhase.JOURNAL_ONLY, SessionPhase.LIVE, SessionPhase.ASLEEP})

WAKEABLE = CLOSABLE | {SessionPhase.CLOSED}
"""Phases in which the agent may be asked to open the session again. LIVE is one of them: a request may come while the
agent is being stopped, and is for its next life."""

RELEASABLE = frozenset(
    {
        SessionPhase.CLOSED,
        SessionPhase.JOURNAL_ONLY,
        SessionPhase.ASLEEP,
        SessionPhase.REFUSED,
        SessionPhase.GONE,
    }
)
"""Phases in which only the journal is left of a session, and is enough to open it again."""
