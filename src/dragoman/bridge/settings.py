"""The settings of a bridge: its agents, its directories, and all limits."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.wire import MAX_LINE_BYTES

MIB = 1024 * 1024

CALLBACK_PATH = "/oauth/callback"
"""The redirect path of logins at MCP servers."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_agent_name(name: str) -> bool:
    """Return whether an agent can have this name, which becomes part of URLs and file paths."""
    return _NAME.fullmatch(name) is not None


class AgentSpec(msgspec.Struct, frozen=True):
    """An agent that speaks ACP on stdio, and the name by which viewers select it."""

    name: str
    command: tuple[str, ...]
    cwd: str | None = None
    """The directory of the process. Each session has its own directory."""
    env: Mapping[str, str] = {}
    title: str | None = None
    """The display name, by default `name`."""


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of an agent's process, its answers and its sessions."""

    initialize_timeout_s: float = 60.0
    """Time for the answer to `initialize`. A cold `npx` agent needs tens of seconds, and a slower one never answers."""
    open_timeout_s: float = 120.0
    """Time without any message from an agent that opens a session. After it, the agent is not expected to answer."""
    permission_timeout_s: float = 3600.0
    """Time that a question of the agent waits while no viewer can answer it. Then it is refused."""
    server_return_s: float = 30.0
    """Time that a request for an MCP server inside a viewer waits for the viewer to reconnect."""
    idle_stop_s: float = 900.0
    """An idle agent without viewers is stopped after this time, and started again when needed."""
    stop_timeout_s: float = 2.0
    """Time for an agent to exit after its stdin was closed."""
    backoff_min_s: float = 0.5
    """Pause between a crash and the first restart."""
    backoff_max_s: float = 30.0
    """Longest pause between restarts of an agent that keeps crashing."""
    steady_s: float = 60.0
    """After this time without a crash, the next restart has the shortest pause again."""
    max_line_bytes: int = MAX_LINE_BYTES
    """Longest message of an agent."""
    max_sessions: int = 10_000
    """Open sessions of one agent. Half of them are reserved for the owner, so readers can open fewer."""


class ViewerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of viewers and of the memory for them."""

    max_message_bytes: int = MAX_LINE_BYTES
    """Longest message of a viewer. Longer ones are refused."""
    max_viewers: int = 1_000
    """Viewers of one agent at a time."""
    max_readers: int = 900
    """Viewers with a share at a time. The rest is reserved for the owner."""
    max_viewers_per_share: int = 50
    """Viewers of one share, enough for one user with many windows."""
    max_requests: int = 256
    """Unanswered requests of one viewer. A client that waits for answers has fewer."""
    stall_s: float = 30.0
    """A viewer that reads nothing for this time while messages wait is dropped. It can reconnect."""
    window_bytes: int = MIB
    """Direct messages kept for a viewer that has not read them or may request them again."""
    tail_bytes: int = 4 * MIB
    """The end of each journal that stays in memory. A viewer that is further behind is served from the disk."""
    all_tails_bytes: int = 256 * MIB
    """All these ends together, with the copies for viewers with cursors. The least recently written go first."""
    inspect_messages: int = 5_000
    """Messages that the wire inspector can show."""
    inspect_bytes: int = 8 * MIB
    """Bytes of these messages."""


class BridgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a bridge. Raises ValueError for invalid agent names."""

    agents: tuple[AgentSpec, ...]
    """The agents, at least one. The first is the default."""
    home: Path
    """Journals are stored in `home/bridge`. Only one bridge at a time can use it."""
    cwd: str
    """The directory that the page proposes for a new session."""
    store: str | None = None
    """The URL of a database for the journals, instead of files. Several bridges can share it."""
    lease_s: float | None = None
    """A bridge that cannot reach the database for this time loses its sessions. The default is the store's."""
    agent_limits: AgentLimits = AgentLimits()
    viewer_limits: ViewerLimits = ViewerLimits()

    def __post_init__(self) -> None:
        if not self.agents:
            raise ValueError("a bridge needs an agent")
        for spec in self.agents:
            if not is_agent_name(spec.name):
                raise ValueError(f"{spec.name!r} cannot be the name of an agent: use letters, digits, dots and dashes")
