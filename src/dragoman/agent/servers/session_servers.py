"""The MCP servers of one session: started concurrently, named, watched, changed while the session runs, and stopped."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec

from dragoman.agent.servers.client_requests import Include, ToolIncludes
from dragoman.agent.servers.server_pool import ServerLease, ServerPool
from dragoman.errors import DragomanError, McpServerError
from dragoman.mcp.channel import AuthorizationRequiredError
from dragoman.mcp.client import Host
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import Definition, HttpServer, SseServer
from dragoman.mcp.info import ServerStatus
from dragoman.mcp.server import ServerConnection
from dragoman.text import visible

SILENT_WAIT_S = 0.3
"""A shorter wait is not shown to the user."""

LIST_WAIT_S = 2.0
"""How long a model request waits for lists that a server has announced as changed."""


_log = logging.getLogger("dragoman.mcp")

Verdict = Literal["ask", "allow", "deny"]


class OwnServer(Protocol):
    """One of the agent's own servers, which its sessions share, with the settings of its tools."""

    @property
    def name(self) -> str: ...
    @property
    def transport(self) -> str: ...
    @property
    def trust(self) -> bool:
        """Whether to believe the server that a tool is read-only."""
        ...

    @property
    def origin(self) -> str:
        """The place of its declaration, in a word or two, such as `agent`."""
        ...

    @property
    def removal(self) -> str:
        """How to remove it, as a clause, because a session cannot."""
        ...

    def definition(self) -> Definition:
        """Return the definition with all its secrets. Raises DragomanError if one is missing."""
        ...

    def include_of(self, tool: str) -> Include:
        """Return when a tool is offered to the model."""
        ...

    def permission_of(self, tool: str) -> Verdict | None:
        """Return whether a tool asks, runs without asking or never runs. None leaves it to the session's mode."""
        ...


class AgentMcpServer(msgspec.Struct, frozen=True):
    """One of the agent's own servers: its definition, and one setting for all its tools."""

    server: Definition
    permission: Verdict | None = None
    trust: bool = False

    @property
    def name(self) -> str:
        """The name that users see."""
        return self.server.name

    @property
    def transport(self) -> str:
        """The name of its transport."""
        return self.server.transport

    @property
    def origin(self) -> str:
        """Always `agent`."""
        return "agent"

    @property
    def removal(self) -> str:
        """How to remove it: by changing the program."""
        return "its program declares it, so change the program to remove it"

    def definition(self) -> Definition:
        """Return the definition."""
        return self.server

    def include_of(self, tool: str) -> Include:
        """Return `always` for every tool."""
        del tool
        return "always"

    def permission_of(self, tool: str) -> Verdict | None:
        """Return the setting of all tools."""
        del tool
        return self.permission


class ClientServer(msgspec.Struct, frozen=True):
    """A server that the client provided."""

    definition: Definition
    includes: ToolIncludes = ToolIncludes()


class SessionServer(msgspec.Struct):
    """A usable server of the session, with the settings of its tools. It is the client's or one of the agent's own."""

    server: ServerConnection
    origin: ClientServer | OwnServer
    lease: ServerLease | None = None
    """The lease of a shared server."""
    waited_for: tuple[int, int, int] = (0, 0, 0)
    """The last revision of the server that was waited for."""
    reported_failure: str | None = None
    """The failure that was last shown to the user."""

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def is_agents(self) -> bool:
        return not isinstance(self.origin, ClientServer)

    @property
    def verdict(self) -> Verdict | None:
        """The agent's setting for the whole server. None for a server of the client."""
        return None if isinstance(self.origin, ClientServer) else self.origin.permission_of("")

    def include(self, tool: str) -> Include:
        """Return when a tool is offered to the model."""
        return self.origin.includes.of(tool) if isinstance(self.origin, ClientServer) else self.origin.include_of(tool)


class SessionServers:
    """All servers of a session by their names. `listener` is called after each change of a server."""

    def __init__(
        self, environment: ServerEnvironment, host: Host, pool: ServerPool, listener: Callable[[], None]
    ) -> None:
        self._environment = environment
        self._host = host
        self._pool = pool
        self._listener = listener
        self._clients: dict[str, SessionServer] = {}
        self._agents: dict[str, SessionServer] = {}
        self._settings: Sequence[OwnServer] = ()
        self._unusable: dict[str, ServerStatus] = {}
        self._shadowed: Sequence[str] = ()
        self._notices: list[str] = []
        self._stopping: list[asyncio.Task[None]] = []
        self._is_closing = False

    # ── the set of servers ──────────────────────────────────────────────────────────────────────

    def members(self) -> list[SessionServer]:
        """Return the usable servers: the client's, then the agent's, except those replaced by a client's server."""
        return [*self._clients.values(), *self._agents.values()]

    def statuses(self) -> list[ServerStatus]:
        """Return the status of each server."""
        return [*(member.server.status() for member in self.members()), *self._unusable.values()]

    def shadowed(self) -> list[str]:
        """Return the names of the agent's servers that a client's server replaces."""
        return list(self._shadowed)

    def origin_of(self, name: str) -> str:
        """Return the origin of a server in a word or two, even of an unusable server of the agent."""
        own = next((settings.origin for settings in self._settings if settings.name == name), "agent")
        return "client" if name in self._clients else own

    def find(self, name: str) -> SessionServer:
        """Return a server by its name. Raises McpServerError with the reason."""
        for member in self.members():
            if member.name == name:
                return member
        if name in self._unusable:
            raise McpServerError(f"the MCP server {name} cannot be used: {self._unusable[name].reason}")
        known = ", ".join(member.name for member in self.members())
        expected = f"expected one of: {known}" if known else "it has none"
        raise McpServerError(f"there is no MCP server {name!r} in this session; {expected}")

    def set_client_servers(self, servers: Sequence[ClientServer]) -> None:
        """Replace the client's servers. Unchanged servers keep running. Once closed, remove all."""
        servers = [] if self._is_closing else servers
        before, kept = list(self._clients.values()), list[SessionServer | None]()
        for server in servers:
            member = next((member for member in before if member.origin == server), None)
            kept.append(member)
            if member is not None:
                before.remove(member)
        # Kept servers keep their names, and new servers are named after them. The order is the client's.
        self._clients = {member.name: member for member in kept if member is not None}
        members = [member or self._start(server) for member, server in zip(kept, servers, strict=True)]
        self._clients = {member.name: member for member in members}
        for member in before:
            self._run_in_background(member.server.stop())
        self._update_agent_servers()

    def set_agent_servers(self, settings: Sequence[OwnServer]) -> None:
        """Replace the agent's own servers."""
        self._settings = [] if self._is_closing else settings
        self._update_agent_servers()

    def add(self, server: ClientServer) -> SessionServer:
        """Add a server of the client."""
        member = self._start(server)
        self._update_agent_servers()
        return member

    async def remove(self, name: str) -> None:
        """Remove a server of the client. Raises McpServerError."""
        member = self.find(name)
        if not isinstance(member.origin, ClientServer):
            raise McpServerError(f"{name} belongs to the agent; {member.origin.removal}")
        del self._clients[name]
        self._update_agent_servers()
        await member.server.stop()

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the agent's setting for a server. Raises McpServerError."""
        return self.find(name).verdict

    async def close(self) -> None:
        """Stop the client's servers and release the agent's concurrently, without notices."""
        self._is_closing = True
        self.set_client_servers([])
        self.set_agent_servers([])
        await asyncio.gather(*self._stopping)

    def _start(self, server: ClientServer) -> SessionServer:
        asked_name = server.definition.name
        name = _free_name(asked_name, self._clients)
        if name != asked_name:
            self._warn(f"There are two MCP servers named {asked_name}; the second is {name} here.")
        definition = msgspec.structs.replace(server.definition, name=name)
        member = SessionServer(
            ServerConnection(definition, self._environment, self._host, lambda _: self._listener()), server
        )
        self._clients[name] = member
        member.server.start()
        return member

    def _update_agent_servers(self) -> None:
        """Lease the agent's servers that no client's server replaces, and release all others."""
        before, self._agents, self._unusable, shadowed = self._agents, {}, {}, list[str]()
        for settings in self._settings:
            if settings.name in self._clients:
                shadowed.append(settings.name)
            elif (member := before.get(settings.name)) is not None and member.origin == settings:
                self._agents[settings.name] = before.pop(settings.name)
            else:
                self._lease(settings)
        for name in sorted(set(shadowed) - set(self._shadowed)):
            self._warn(f"The client's MCP server {name} replaces the agent's server of the same name.")
        self._shadowed = sorted(shadowed)
        for member in before.values():
            if member.lease is not None:
                self._run_in_background(self._pool.release(member.lease))
        self._listener()

    def _lease(self, settings: OwnServer) -> None:
        try:
            definition = settings.definition()
        except DragomanError as error:
            self._unusable[settings.name] = ServerStatus(settings.name, settings.transport, "failed", reason=str(error))
            self._notices.append(f"The MCP server {settings.name} cannot be used: {error}")
            return
        lease = self._pool.lease(definition, self._environment, self._listener)
        self._agents[settings.name] = SessionServer(lease.server, settings, lease)

    def _warn(self, problem: str) -> None:
        """Show a text to the user with the next turn, and log it at once."""
        self._notices.append(problem)
        _log.warning("%s", visible(problem))

    def _run_in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._stopping.append(task)
        task.add_done_callback(self._stopping.remove)

    # ── the state of the servers ────────────────────────────────────────────────────────────────

    async def wait(self, timeout_s: float, show: Callable[[str], None]) -> None:
        """Wait once for each connecting server and each changed list.

        Call `show` if a server takes long to connect.
        """
        waiting = [member for member in self.members() if member.waited_for != member.server.revision]
        for member in waiting:
            member.waited_for = member.server.revision
        if waiting and await _connected(waiting, timeout_s, show):
            await _settle(waiting, min(LIST_WAIT_S, timeout_s))

    def pop_notices(self) -> list[str]:
        """Return the notices that were not yet shown to the user."""
        notices, self._notices = self._notices, []
        for member in self.members():
            server = member.server
            if server.wants_login and server.reason in AuthorizationRequiredError.ASKED:
                continue
            if server.state == "failed" and member.reported_failure != server.reason:
                member.reported_failure = server.reason
                retry = f"`/mcp restart {server.name}` retries."
                if isinstance(server.definition, HttpServer | SseServer):
                    retry = f"It is retried automatically with longer and longer pauses; {retry[:-1]} at once."
                notices.append(f"The MCP server {server.name} failed:\n{server.reason or ''}\n{retry}")
        return notices

    async def notify_roots_changed(self) -> None:
        """Notify the client's servers that the session's directories have changed."""
        await asyncio.gather(*(member.server.notify_roots_changed() for member in self._clients.values()))


def _free_name(asked_name: str, taken: dict[str, SessionServer]) -> str:
    name, number = asked_name, 1
    while name in taken:
        number += 1
        name = f"{asked_name}-{number}"
    return name


async def _connected(members: Sequence[SessionServer], timeout_s: float, show: Callable[[str], None]) -> bool:
    """Wait until no server is connecting. Return False if some still are."""
    if await _settle(members, min(SILENT_WAIT_S, timeout_s)) or not (late := _connecting(members)):
        return True
    if timeout_s > SILENT_WAIT_S:
        show(f"Waiting up to {timeout_s:g} s for MCP servers that are still connecting: {', '.join(late)}.")
        if await _settle(members, timeout_s - SILENT_WAIT_S) or not (late := _connecting(members)):
            return True
    show(f"Continuing without {', '.join(late)}. Its tools are added when it is ready.")
    return False


def _connecting(members: Sequence[SessionServer]) -> list[str]:
    return [member.name for member in members if member.server.state == "connecting"]


async def _settle(members: Sequence[SessionServer], timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            for member in members:
                await member.server.up_to_date()
    except TimeoutError:
        return False
    return True
