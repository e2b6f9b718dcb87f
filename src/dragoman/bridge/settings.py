"""What a bridge is told: the agents it fronts, where it keeps their journals, and every limit."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

MIB = 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_agent_name(name: str) -> bool:
    """Tell whether an agent can have this name, which is part of an address and of a path."""
    return _NAME.fullmatch(name) is not None


class AgentSpec(msgspec.Struct, frozen=True):
    """An agent that speaks ACP on its stdio, and the name by which viewers choose it."""

    name: str
    command: tuple[str, ...]
    cwd: str | None = None
    """Where the process itself runs; sessions name their own directories."""
    env: Mapping[str, str] = {}
    title: str | None = None
    """What people see instead of the name."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that a bridge can be told; each limit says what it is for."""

    agents: tuple[AgentSpec, ...]
    """At least one; the first is the default."""
    home: Path
    """Journals are kept in `home/bridge`, and one bridge at a time may have it."""
    cwd: str
    """The directory that the page proposes for a new session."""

    permission_timeout_s: float = 3600.0
    """How long an agent's question waits while nobody is there who could answer it; then it is refused."""
    idle_stop_s: float = 900.0
    """An agent that nobody looks at and that does nothing is stopped after this; it comes back when needed."""
    initialize_timeout_s: float = 60.0
    """A cold `npx` agent takes tens of seconds to its first answer; one that takes longer than this never will."""
    open_timeout_s: float = 120.0
    """An agent that is to open a session and neither answers nor says anything for this long will hardly do so."""
    stop_timeout_s: float = 2.0
    """For an agent to end by itself once its stdin is closed."""
    backoff_min_s: float = 0.5
    """Between a crash and the first restart."""
    backoff_max_s: float = 30.0
    """Between restarts of an agent that keeps crashing."""
    steady_s: float = 60.0
    """An agent that lived this long starts anew with the shortest wait."""

    max_message_bytes: int = 16 * MIB
    """Longest message of a viewer; longer ones are refused."""
    max_line_bytes: int = 64 * MIB
    """Longest message of an agent: images and files travel inside messages."""
    max_viewers: int = 1_000
    """Viewers of one agent at a time."""
    max_sessions: int = 10_000
    """Sessions of one agent that are open at a time."""
    max_requests: int = 256
    """Unanswered requests of one viewer; nobody who waits for answers has that many."""
    viewer_stall_s: float = 30.0
    """A viewer that takes nothing for this long while something waits for it is dropped; it can come back."""
    viewer_window_bytes: int = MIB
    """Direct messages kept for a viewer that has not taken them, or may ask for them again."""
    tail_bytes: int = 4 * MIB
    """The end of each journal that stays in memory; whoever is further behind is served from the disk."""
    all_tails_bytes: int = 256 * MIB
    """All such ends together, with the copies for viewers that want cursors: those not written for longest go first."""
    inspect_messages: int = 5_000
    """Messages that the wire inspector looks back on."""
    inspect_bytes: int = 8 * MIB
    """And how many bytes of them."""

    def __post_init__(self) -> None:
        if not self.agents:
            raise ValueError("a bridge needs an agent")
        for spec in self.agents:
            if not is_agent_name(spec.name):
                raise ValueError(f"{spec.name!r} cannot be the name of an agent: use letters, digits, dots and dashes")
