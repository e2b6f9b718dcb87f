"""Opening sessions: new ones, and those that there were before."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.cli.chatting.background import Background
from dragoman.cli.last_session import find_last_session
from dragoman.client import Session
from dragoman.client.servers import McpServers
from dragoman.protocol import v1

MAX_LISTED = 20


class Openings:
    """Opens sessions in one directory, with the same MCP servers for each."""

    def __init__(self, background: Background, cwd: Path, mcp: Sequence[Path]) -> None:
        self._background = background
        self.cwd = cwd
        self._servers: McpServers = list(mcp)

    def new(self) -> Session:
        """Open a new one."""
        return self._background.call(self._background.agent.new_session(self.cwd, mcp_servers=self._servers))

    def reopen(self, session_id: str) -> Session:
        """Open one that there was before: with its history, or without where the agent cannot replay it."""
        agent = self._background.agent
        opening = agent.reopen_session(session_id, self.cwd, replay=True, mcp_servers=self._servers)
        return self._background.call(opening)

    def newest(self) -> Session:
        """Open the last one of the directory; raises NothingToContinue."""
        return self.reopen(self._background.call(find_last_session(self._background.agent, self.cwd)))

    def listed(self) -> list[v1.SessionInfo]:
        """Return the last sessions of the directory, the newest first."""
        return self._background.call(self._list())

    async def _list(self) -> list[v1.SessionInfo]:
        found = [info async for info in self._background.agent.list_sessions(self.cwd)]
        found.sort(key=lambda info: info.updated_at or "", reverse=True)
        return found[:MAX_LISTED]
