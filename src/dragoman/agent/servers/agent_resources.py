"""The resources that all sessions of one connection share: home, child processes and the pool of MCP servers."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dragoman.agent.servers.server_logins import ServerLogins
from dragoman.agent.servers.server_pool import ServerPool
from dragoman.agent.sessions.approvals import ApprovalFile, ProjectApprovals, SharedApprovals
from dragoman.mcp.channel import McpMessageRouter

if TYPE_CHECKING:
    from dragoman.proc import Supervisor
    from dragoman.sandbox.active_files import ActiveFiles
    from dragoman.store import SharesApprovals


class AgentResources:
    """Resources that sessions use but do not own. They are closed with the connection."""

    def __init__(
        self, home: Path, protected_file: str | None = None, *, shared_approvals: "SharesApprovals | None" = None
    ) -> None:
        self.home = home
        self.pool = ServerPool()
        self.mcp_router = McpMessageRouter()
        self.logins = ServerLogins()
        self._protected_file = protected_file
        self._shared_approvals = shared_approvals
        self._approvals: WeakValueDictionary[str, ProjectApprovals] = WeakValueDictionary()
        """The decisions of the projects that have live sessions."""
        self._supervisor: Supervisor | None = None
        self._starting = asyncio.Lock()

    def active_files(self) -> "ActiveFiles":
        """Return the files whose writing always asks for permission."""
        from dragoman.sandbox.active_files import ActiveFiles

        return ActiveFiles(str(self.home), self._protected_file)

    def find_approvals(self, cwd: str) -> ProjectApprovals:
        """Return the permanent decisions of a project. They are in the shared store if there is one."""
        found = self._approvals.get(cwd)
        if found is None:
            shared = self._shared_approvals
            found = ApprovalFile(self.home, cwd) if shared is None else SharedApprovals(shared, cwd)
            self._approvals[cwd] = found
        return found

    async def supervise(self) -> "Supervisor":
        """Return the supervisor of all sessions' child processes."""
        from dragoman.proc import Supervisor

        async with self._starting:
            if self._supervisor is None:
                self._supervisor = await Supervisor().__aenter__()
            return self._supervisor

    async def close(self) -> None:
        """Stop the shared servers, then all child processes."""
        try:
            await self.pool.close()
        finally:  # even after a timeout, because servers are child processes
            if self._supervisor is not None:
                await self._supervisor.__aexit__(None, None, None)
