"""The settings of a bridge: its agents, the directory of their journals, and every limit."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

MIB = 1024 * 1024

CALLBACK_PATH = "/oauth/callback"
"""The address to which browsers come back from logins at MCP servers."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_agent_name(name: str) -> bool:
    """Tell whether an agent can have this name, which is part of an address and of a path."""
    return _NAME.fullmatch(name) is not None


class AgentSpec(msgspec.Struct, frozen=True):
    """An agent that speaks ACP on its stdio, and the name by which viewers choose it."""

    name: str
    command: tuple[str, ...]
    cwd: str | None = None
    """The directory of the process itself; sessions name their own directories."""
    env: Mapping[str, str] = {}
    title: str | None = None
    """The name that people see instead."""


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of an agent's process, its answers and its sessions."""

    initialize_timeout_s: float = 60.0
    """A cold `npx` agent takes tens of seconds to its first answer; an agent that takes longer than this never will."""
    open_timeout_s: float = 120.0
    """An agent that is to open a session and sends nothing at all for this long will hardly answer."""
    permission_timeout_s: float = 3600.0
    """A question of the agent waits for so long while no viewer is there that could answer it; then it is refused."""
    server_return_s: float = 30.0
    """A request for an MCP server inside a viewer that is gone waits for so long for it to come back."""
    idle_stop_s: float = 900.0
    """An agent that does nothing and has no viewer is stopped after this; it is started again when needed."""
    stop_timeout_s: float = 2.0
    """For an agent to end by itself once its stdin is closed."""
    backoff_min_s: float = 0.5
    """Between a crash and the first restart."""
    backoff_max_s: float = 30.0
    """Between restarts of an agent that keeps crashing."""
    steady_s: float = 60.0
    """An agent that lived this long is restarted after the shortest wait again."""
    max_line_bytes: int = 64 * MIB
    """Longest message of an agent: images and files travel inside messages."""
    max_sessions: int = 10_000
    """Sessions of one agent that are open at a time."""


class ViewerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of viewers, and of the memory that is kept for them."""

    max_message_bytes: int = 16 * MIB
    """Longest message of a viewer; longer ones are refused."""
    max_viewers: int = 1_000
    """Viewers of one agent at a time."""
    max_requests: int = 256
    """Unanswered requests of one viewer; no client that waits for answers has that many."""
    stall_s: float = 30.0
    """A viewer that takes nothing for this long while something waits for it is dropped; it can come back."""
    window_bytes: int = MIB
    """Direct messages kept for a viewer that has not taken them, or may ask for them again."""
    tail_bytes: int = 4 * MIB
    """The end of each journal that stays in memory; a viewer that is further behind is served from the disk."""
    all_tails_bytes: int = 256 * MIB
    """All such ends together, with the copies for viewers that want cursors: those not written for longest go first."""
    inspect_messages: int = 5_000
    """Messages that the wire inspector looks back on."""
    inspect_bytes: int = 8 * MIB
    """And how many bytes of them."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a bridge; raises ValueError for names that no agent can have."""

    agents: tuple[AgentSpec, ...]
    """At least one; the first is the default."""
    home: Path
    """Journals are kept in `home/bridge`, and one bridge at a time may have it."""
    cwd: str
    """The directory that the page proposes for a new session."""
    store: str | None = None
    """The address of a database, in which journals are kept in place of files: other bridges may use it too."""
    lease_s: float | None = None
    """A bridge that did not reach the database for so long has lost its sessions; the default is that of the store."""
    agent_limits: AgentLimits = AgentLimits()
    viewer_limits: ViewerLimits = ViewerLimits()

    def __post_init__(self) -> None:
        if not self.agents:
            raise ValueError("a bridge needs an agent")
        for spec in self.agents:
            if not is_agent_name(spec.name):
                raise ValueError(f"{spec.name!r} cannot be the name of an agent: use letters, digits, dots and dashes")
