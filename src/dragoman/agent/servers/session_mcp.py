"""MCP in one session: its servers, their tools, and what its client and its person are told of them."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.agent.resources import AgentResources
from dragoman.agent.servers.host import HostedSession, SessionHost
from dragoman.agent.servers.mcp_tool import McpTool, McpToolList
from dragoman.agent.servers.session_resources import SessionResources
from dragoman.agent.servers.session_servers import ClientServer, OwnServer, SessionServers
from dragoman.agent.update_sender import UpdateSender
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import identity
from dragoman.mcp.info import PromptInfo, ServerStatus
from dragoman.mcp.server import ServerConnection
from dragoman.protocol import v1

SERVERS_KEY = "dragoman/mcp"
"""Under this key of a `_meta` stands how the MCP servers of a session are."""


class ServerStatusSender:
    """Sends the states of the servers, and the commands when the servers' prompts have changed, once a tick.

    It is quiet until `open`, because the first states are part of the answer that introduces the session.
    """

    def __init__(self, updates: UpdateSender) -> None:
        self._updates = updates
        self._servers: SessionServers | None = None
        self._send_commands: Callable[[], None] | None = None
        self._told: list[ServerStatus] = []
        self._told_prompts: list[tuple[str, PromptInfo]] = []
        self._scheduled = False

    def open(self, servers: "SessionServers", send_commands: Callable[[], None]) -> None:
        """Tell of these servers from now on."""
        self._servers = servers
        self._send_commands = send_commands

    def close(self) -> None:
        """Tell nothing more."""
        self._servers = None

    def meta(self) -> dict[str, Any] | None:
        """Return the states for the `_meta` of an answer, which then counts as told; None without servers."""
        self._told = [] if self._servers is None else self._servers.statuses()
        return {SERVERS_KEY: msgspec.to_builtins(self._told)} if self._told else None

    def changed(self) -> None:
        """Take note that a server has changed."""
        if self._servers is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._servers is None:
            return
        told = self._told
        meta = self.meta()
        if self._told != told:
            self._updates.send_unlogged(v1.SessionInfoUpdate(meta=meta or {SERVERS_KEY: []}))
        prompts = [(member.name, prompt) for member in self._servers.members() for prompt in member.server.prompts]
        if prompts != self._told_prompts and self._send_commands is not None:
            self._told_prompts = prompts
            self._send_commands()


WAIT_S = 10.0
"""How long the first prompt waits for servers that are still connecting; a package runner may take longer."""

RESTART_WAIT_S = 5.0
"""How long a later request to the model waits for a server that is restarted."""

CALL_TIMEOUT_S = 600.0
"""How long a tool may take: as long as a command may."""


class SessionMcp:
    """The servers of one session, with the settings of the program for all of them."""

    def __init__(self, session: HostedSession, cwd: str, resources: AgentResources) -> None:
        self.own_servers: Sequence[OwnServer] = ()
        """The agent's own servers in this session; `use_own_servers` changes them once it is live."""
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
        """Let these servers connect, and return their states for the answer that introduces the session."""
        self._status.open(self.servers, send_commands)
        self._logins.join(self)
        self.servers.use_clients(clients)
        self.servers.use_agents(self.own_servers)
        return self.meta()

    def use_own_servers(self, servers: Sequence[OwnServer]) -> None:
        """Have exactly these of the agent from now on."""
        self.own_servers = servers
        self.servers.use_agents(servers)

    def meta(self) -> dict[str, Any] | None:
        """Return the states of the servers, for the `_meta` of an answer; None without servers."""
        return self._status.meta()

    def tools(self, taken: Iterable[str] = ()) -> Sequence[McpTool]:
        """Return the tools of the servers that are ready; the names in `taken` belong to others."""
        return self._tools.all(self.servers.members(), taken, self.call_timeout_s)

    async def wait(self, show: Callable[[str], None]) -> None:
        """Wait for servers that are connecting, each time once, saying so when it takes long."""
        await self.servers.wait(self.wait_s, show)

    async def catch_up(self, show: Callable[[str], None]) -> None:
        """Wait a moment for restarts and changed lists, so that the next request to a model has the tools of now."""
        await self.servers.wait(min(RESTART_WAIT_S, self.wait_s), show)

    def identify(self, server: str) -> str:
        """Return the identity of a server, for approvals; raises ServerFailure."""
        return identity(self.servers.find(server).server.definition)

    def at_address(self, url: str) -> list[ServerConnection]:
        """Return the servers at this address."""
        servers = [member.server for member in self.servers.members()]
        return [server for server in servers if getattr(server.definition, "url", None) == url]

    async def restart(self, name: str) -> ServerConnection:
        """Start a server again, which may ask for a login again; raises ServerFailure."""
        server = self.servers.find(name).server
        self._logins.allow(server)
        await server.restart()
        return server

    def _changed(self) -> None:
        self._status.changed()
        self._logins.look(self, [member.server for member in self.servers.members()])

    async def close(self) -> None:
        """Stop the client's servers and release the agent's."""
        self._status.close()
        await self._logins.leave(self)
        await self.servers.close()
