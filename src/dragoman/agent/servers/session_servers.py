"""The servers of one session: started side by side, told apart, watched, changed while it runs, and stopped."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec

from dragoman.agent.server_pool import ServerLease, ServerPool
from dragoman.agent.servers.client_requests import Include, ToolIncludes
from dragoman.errors import DragomanError, ServerFailure
from dragoman.mcp.channel import NeedsAuthorisation
from dragoman.mcp.client import Host
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import Definition, HttpServer, SseServer
from dragoman.mcp.info import ServerStatus
from dragoman.mcp.server import ServerConnection
from dragoman.text import visible

SILENT_WAIT_S = 0.3
"""A shorter wait than this is not worth a word."""

LIST_WAIT_S = 2.0
"""How long a request to the model waits for lists that a server has announced to be changed."""


_log = logging.getLogger("dragoman.mcp")

Verdict = Literal["ask", "allow", "deny"]


class OwnServer(Protocol):
    """A server of the agent's own, which its sessions share, with the settings of its tools."""

    @property
    def name(self) -> str: ...
    @property
    def transport(self) -> str: ...
    @property
    def trust(self) -> bool:
        """Whether its word is believed that a tool only reads."""
        ...

    @property
    def origin(self) -> str:
        """Where it is declared, in a word or two, such as `agent`."""
        ...

    @property
    def removal(self) -> str:
        """How it can be removed, in words, since a session cannot do it."""
        ...

    def definition(self) -> Definition:
        """Return its definition with all secrets in it; raises DragomanError when one is missing."""
        ...

    def include_of(self, tool: str) -> Include:
        """Return when a tool goes to the model."""
        ...

    def permission_of(self, tool: str) -> Verdict | None:
        """Return whether a tool asks, runs unasked or never runs; None leaves that to the session's mode."""
        ...


class AgentMcpServer(msgspec.Struct, frozen=True):
    """A server of the agent's own: its definition, and one setting for all of its tools."""

    server: Definition
    permission: Verdict | None = None
    trust: bool = False

    @property
    def name(self) -> str:
        """The name that people see."""
        return self.server.name

    @property
    def transport(self) -> str:
        """The name of its transport."""
        return self.server.transport

    @property
    def origin(self) -> str:
        """The agent."""
        return "agent"

    @property
    def removal(self) -> str:
        """Nobody but the program."""
        return "its program declares it, so only a change of the program removes it"

    def definition(self) -> Definition:
        """Return the definition."""
        return self.server

    def include_of(self, tool: str) -> Include:
        """Return that every tool is always there."""
        del tool
        return "always"

    def permission_of(self, tool: str) -> Verdict | None:
        """Return the setting of all tools."""
        del tool
        return self.permission


class ClientServer(msgspec.Struct, frozen=True):
    """A server of the client, as it was given."""

    definition: Definition
    includes: ToolIncludes = ToolIncludes()


class SessionServer(msgspec.Struct):
    """A server that the session can use, with the settings of its tools: from the client or the agent's own."""

    server: ServerConnection
    origin: ClientServer | OwnServer
    lease: ServerLease | None = None
    """There when it is shared."""
    waited_for: tuple[int, int] = (0, 0)
    """The last revision of the server that was waited for."""
    told_of: str | None = None
    """The failure that the person was told of."""

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def is_agents(self) -> bool:
        return not isinstance(self.origin, ClientServer)

    @property
    def verdict(self) -> Verdict | None:
        """The agent's setting for all of it; None for a server of the client."""
        return None if isinstance(self.origin, ClientServer) else self.origin.permission_of("")

    def include(self, tool: str) -> Include:
        """Say when a tool is put in front of the model."""
        return self.origin.includes.of(tool) if isinstance(self.origin, ClientServer) else self.origin.include_of(tool)


class SessionServers:
    """All of them, by the names that people see; `listener` is called after every change of one of them."""

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
        self._shadowed: set[str] = set()
        self._notices: list[str] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closing = False

    # ── which there are ─────────────────────────────────────────────────────────────────────────

    def members(self) -> list[SessionServer]:
        """Return the servers that can be used: the client's, then the agent's that are not in their shadow."""
        return [*self._clients.values(), *self._agents.values()]

    def statuses(self) -> list[ServerStatus]:
        """Say how each of them is."""
        return [*(member.server.status() for member in self.members()), *self._unusable.values()]

    def shadowed(self) -> list[str]:
        """Return the names of the agent's servers that a server of the client stands in for."""
        return sorted(self._shadowed)

    def origin_of(self, name: str) -> str:
        """Return where a server comes from, in a word or two; also one of the agent that cannot be used."""
        own = next((settings.origin for settings in self._settings if settings.name == name), "agent")
        return "client" if name in self._clients else own

    def find(self, name: str) -> SessionServer:
        """Return one by its name; raises ServerFailure in words."""
        for member in self.members():
            if member.name == name:
                return member
        if name in self._unusable:
            raise ServerFailure(f"the MCP server {name} cannot be used: {self._unusable[name].reason}")
        known = ", ".join(member.name for member in self.members()) or "none"
        raise ServerFailure(f"there is no MCP server {name!r} in this session; there are: {known}")

    def use_clients(self, given: Sequence[ClientServer]) -> None:
        """Have exactly these of the client, or none once closed; those that were there before, unchanged, go on."""
        given = [] if self._is_closing else given
        before, kept = list(self._clients.values()), list[SessionServer | None]()
        for wanted in given:
            member = next((member for member in before if member.origin == wanted), None)
            kept.append(member)
            if member is not None:
                before.remove(member)
        # Those that go on keep their names, so the new ones get theirs after them; the order is the client's.
        self._clients = {member.name: member for member in kept if member is not None}
        members = [member or self._start(wanted) for member, wanted in zip(kept, given, strict=True)]
        self._clients = {member.name: member for member in members}
        for member in before:
            self._leave(member.server.stop())
        self._settle_agents()

    def use_agents(self, settings: Sequence[OwnServer]) -> None:
        """Have exactly these of the agent's own."""
        self._settings = [] if self._is_closing else settings
        self._settle_agents()

    def add(self, given: ClientServer) -> SessionServer:
        """Gain a server of the client."""
        member = self._start(given)
        self._settle_agents()
        return member

    async def remove(self, name: str) -> None:
        """Lose a server of the client; raises ServerFailure."""
        member = self.find(name)
        if not isinstance(member.origin, ClientServer):
            raise ServerFailure(f"{name} is the agent's own; {member.origin.removal}")
        del self._clients[name]
        self._settle_agents()
        await member.server.stop()

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the agent's setting for a server; raises ServerFailure."""
        return self.find(name).verdict

    async def close(self) -> None:
        """Stop the client's servers and release the agent's, side by side, without notices."""
        self._is_closing = True
        self.use_clients([])
        self.use_agents([])
        await asyncio.gather(*self._leaving)

    def _start(self, given: ClientServer) -> SessionServer:
        wanted = given.definition.name
        name = _free_name(wanted, self._clients)
        if name != wanted:
            self._warn(f"There are two MCP servers named {wanted}; the second is {name} here.")
        definition = msgspec.structs.replace(given.definition, name=name)
        member = SessionServer(
            ServerConnection(definition, self._environment, self._host, lambda _: self._listener()), given
        )
        self._clients[name] = member
        member.server.start()
        return member

    def _settle_agents(self) -> None:
        """Have the agent's servers that are wanted and not in a shadow, and no others."""
        before, self._agents, self._unusable, shadowed = self._agents, {}, {}, set[str]()
        for settings in self._settings:
            if settings.name in self._clients:
                shadowed.add(settings.name)
            elif (member := before.get(settings.name)) is not None and member.origin == settings:
                self._agents[settings.name] = before.pop(settings.name)
            else:
                self._lease(settings)
        for name in sorted(shadowed - self._shadowed):
            self._warn(f"The client's MCP server {name} stands in for the agent's of that name.")
        self._shadowed = shadowed
        for member in before.values():
            if member.lease is not None:
                self._leave(self._pool.release(member.lease))
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

    def _warn(self, words: str) -> None:
        """Tell the person with the next turn, and whoever reads our stderr at once."""
        self._notices.append(words)
        _log.warning("%s", visible(words))

    def _leave(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    # ── how they are ────────────────────────────────────────────────────────────────────────────

    async def wait(self, timeout_s: float, show: Callable[[str], None]) -> None:
        """Wait for servers that are connecting, and for lists that have changed: for each once.

        It says so when a server takes long to connect.
        """
        waiting = [member for member in self.members() if member.waited_for != member.server.revision]
        for member in waiting:
            member.waited_for = member.server.revision
        if waiting and await _connected(waiting, timeout_s, show):
            await _settle(waiting, min(LIST_WAIT_S, timeout_s))

    def take_notices(self) -> list[str]:
        """Return the notices that the person was not shown yet."""
        notices, self._notices = self._notices, []
        for member in self.members():
            server = member.server
            if server.wants_login and server.reason in NeedsAuthorisation.ASKED:
                continue
            if server.state == "failed" and member.told_of != server.reason:
                member.told_of = server.reason
                retry = f"`/mcp restart {server.name}` retries."
                if isinstance(server.definition, HttpServer | SseServer):
                    retry = f"It is tried again by itself, in growing pauses; {retry[:-1]} at once."
                notices.append(f"The MCP server {server.name} failed:\n{server.reason or ''}\n{retry}")
        return notices

    async def tell_roots(self) -> None:
        """Tell all of them that the session's directories have changed."""
        await asyncio.gather(*(member.server.tell_roots() for member in self._clients.values()))


def _free_name(wanted: str, taken: dict[str, SessionServer]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


async def _connected(members: Sequence[SessionServer], timeout_s: float, show: Callable[[str], None]) -> bool:
    """Wait until none of them is connecting; False when some still are."""
    if await _settle(members, min(SILENT_WAIT_S, timeout_s)) or not (late := _connecting(members)):
        return True
    if timeout_s > SILENT_WAIT_S:
        show(f"Waiting up to {timeout_s:g} s for MCP servers that are still connecting: {', '.join(late)}.")
        if await _settle(members, timeout_s - SILENT_WAIT_S) or not (late := _connecting(members)):
            return True
    show(f"Going on without {', '.join(late)}; its tools join when it is ready.")
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
