"""MCP in one session: its servers, their tools, and the status updates for the client."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.agent.connection.update_sender import UpdateSender
from dragoman.agent.servers.agent_resources import AgentResources
from dragoman.agent.servers.host import HostedSession, SessionHost
from dragoman.agent.servers.mcp_tool import McpTool, McpToolList
from dragoman.agent.servers.session_resources import SessionResources
from dragoman.agent.servers.session_servers import ClientServer, OwnServer, SessionServers
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import identity
from dragoman.mcp.info import PromptInfo, ServerStatus
from dragoman.mcp.server import ServerConnection
from dragoman.protocol import v1

SERVERS_KEY = "dragoman/mcp"
"""The `_meta` key of the states of a session's MCP servers."""


class ServerStatusSender:
    """Sends changed server states once per tick, and the commands when the prompts of the servers have changed.

    It sends nothing before `open`, because the first states are part of the response that introduces the session.
    """

    def __init__(self, updates: UpdateSender) -> None:
        self._updates = updates
        self._servers: SessionServers | None = None
        self._send_commands: Callable[[], None] | None = None
        self._sent: list[ServerStatus] = []
        self._sent_prompts: list[tuple[str, PromptInfo]] = []
        self._scheduled = False

    def open(self, servers: "SessionServers", send_commands: Callable[[], None]) -> None:
        """Send the states of these servers from now on."""
        self._servers = servers
        self._send_commands = send_commands

    def close(self) -> None:
        """Send nothing more."""
        self._servers = None

    def meta(self) -> dict[str, Any] | None:
        """Return the states for the `_meta` of a response and count them as sent. Return None without servers."""
        self._sent = [] if self._servers is None else self._servers.statuses()
        return {SERVERS_KEY: msgspec.to_builtins(self._sent)} if self._sent else None

    def schedule(self) -> None:
        """Schedule a status update after a server has changed."""
        if self._servers is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._servers is None:
            return
        before = self._sent
        meta = self.meta()
        if self._sent != before:
            self._updates.send_unlogged(v1.SessionInfoUpdate(meta=meta or {SERVERS_KEY: []}))
        prompts = [(member.name, prompt) for member in self._servers.members() for prompt in member.server.prompts]
        if prompts != self._sent_prompts and self._send_commands is not None:
            self._sent_prompts = prompts
            self._send_commands()


WAIT_S = 10.0
"""How long the first prompt waits for connecting servers. A package runner may take longer."""

RESTART_WAIT_S = 5.0
"""How long a later model request waits for a server that restarts."""

CALL_TIMEOUT_S = 600.0
"""How long a tool call may take: as long as a command."""


class SessionMcp:
    """The MCP servers of one session, with the program's settings for all of them."""

    def __init__(self, session: HostedSession, cwd: str, resources: AgentResources) -> None:
        self.own_servers: Sequence[OwnServer] = ()
        """The agent's own servers in this session. Use `use_own_servers` to change them in a live session."""
        self.wait_s = WAIT_S
        self.call_timeout_s: float | None = CALL_TIMEOUT_S
        self.session = session
        self._logins = resources.logins
        host = SessionHost(session)
        environment = ServerEnvironment(
            cwd, resources.supervise, session.updates.connection, resources.mcp_router, resources.logins
        )
        self._status = ServerStatusSender(session.updates)
        self.servers = SessionServers(environment, host, resources.pool, self._changed)
        self.resources = SessionResources(self.servers)
        """The resources of the servers."""
        self._tools = McpToolList(host)

    def start(self, clients: Sequence[ClientServer], send_commands: Callable[[], None]) -> dict[str, Any] | None:
        """Start to connect the servers. Return their states for the response that introduces the session."""
        self._status.open(self.servers, send_commands)
        self._logins.join(self)
        self.servers.set_client_servers(clients)
        self.servers.set_agent_servers(self.own_servers)
        return self.meta()

    def use_own_servers(self, servers: Sequence[OwnServer]) -> None:
        """Replace the agent's own servers of this session."""
        self.own_servers = servers
        self.servers.set_agent_servers(servers)

    def meta(self) -> dict[str, Any] | None:
        """Return the states of the servers for the `_meta` of a response. Return None without servers."""
        return self._status.meta()

    def tools(self, taken: Iterable[str] = ()) -> Sequence[McpTool]:
        """Return the tools of the ready servers. The names in `taken` are already in use."""
        return self._tools.all(self.servers.members(), taken, self.call_timeout_s)

    async def wait(self, show: Callable[[str], None]) -> None:
        """Wait once for each connecting server. Call `show` if this takes long."""
        await self.servers.wait(self.wait_s, show)

    async def catch_up(self, show: Callable[[str], None]) -> None:
        """Wait briefly for restarts and changed lists, so that the next model request has the current tools."""
        await self.servers.wait(min(RESTART_WAIT_S, self.wait_s), show)

    def identify(self, server: str) -> str:
        """Return the identity of a server for approvals. Raises McpServerError."""
        return identity(self.servers.find(server).server.definition)

    def at_address(self, url: str) -> list[ServerConnection]:
        """Return the servers at this address."""
        servers = [member.server for member in self.servers.members()]
        return [server for server in servers if getattr(server.definition, "url", None) == url]

    async def restart(self, name: str) -> ServerConnection:
        """Restart a server, which may ask for a login again. Raises McpServerError."""
        server = self.servers.find(name).server
        self._logins.allow(server)
        await server.restart()
        return server

    async def settled(self, server: ServerConnection) -> None:
        """Wait until a server is ready or failed, and until the user has answered its login question."""
        await server.settled()
        await self._logins.ended(server)
        await server.settled()

    def _changed(self) -> None:
        self._status.schedule()
        self._logins.update(self, [member.server for member in self.servers.members()])

    async def close(self) -> None:
        """Stop the client's servers and release the agent's servers."""
        self._status.close()
        await self._logins.leave(self)
        await self.servers.close()
