"""The resources that all sessions of one connection share: the home, the children, the pool of MCP servers."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.agent.approvals import ApprovalFile, ProjectApprovals, SharedApprovals
from dragoman.agent.server_logins import ServerLogins
from dragoman.agent.server_pool import ServerPool
from dragoman.mcp.channel import McpMessageRouter

if TYPE_CHECKING:
    from dragoman.agent.workspace.active_files import ActiveFiles
    from dragoman.proc import Supervisor
    from dragoman.store import SharesApprovals


class AgentResources:
    """What sessions use and none of them owns; closed with the connection."""

    def __init__(
        self, home: Path, protected_file: str | None = None, *, shared_approvals: "SharesApprovals | None" = None
    ) -> None:
        self.home = home
        self.pool = ServerPool()
        self.mcp_router = McpMessageRouter()
        self.logins = ServerLogins()
        self._protected_file = protected_file
        self._shared_approvals = shared_approvals
        self._supervisor: Supervisor | None = None
        self._starting = asyncio.Lock()

    def active_files(self) -> "ActiveFiles":
        """Return the files that are asked about whenever they are to be written."""
        from dragoman.agent.workspace.active_files import ActiveFiles

        return ActiveFiles(str(self.home), self._protected_file)

    def find_approvals(self, cwd: str) -> ProjectApprovals:
        """Return the decisions that hold for good in a project: where the sessions are, if that is shared."""
        if self._shared_approvals is not None:
            return SharedApprovals(self._shared_approvals, cwd)
        return ApprovalFile(self.home, cwd)

    async def supervise(self) -> "Supervisor":
        """Return the supervisor of all sessions' children."""
        from dragoman.proc import Supervisor

        async with self._starting:
            if self._supervisor is None:
                self._supervisor = await Supervisor().__aenter__()
            return self._supervisor

    async def close(self) -> None:
        """Stop the shared servers, then all children."""
        try:
            await self.pool.close()
        finally:  # also when the servers took too long: their processes are children, too
            if self._supervisor is not None:
                await self._supervisor.__aexit__(None, None, None)
