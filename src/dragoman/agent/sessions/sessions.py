"""The sessions of one connection: creating, opening, forking, closing and deleting them.

One lock per session orders opening, closing and deleting. A session whose log has failed is restored from the log
before its next use. Closing a connection runs in bounded steps, so that one that hangs does not block the others.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

import msgspec

from dragoman.agent.connection.update_sender import UpdateSender
from dragoman.agent.program import AgentProgram, SessionOrigin
from dragoman.agent.servers.agent_resources import AgentResources
from dragoman.agent.sessions.fork_point import ForkPoint, NamedMessage, find_fork_point
from dragoman.agent.sessions.history import amend, fallback_for, replay, restore
from dragoman.agent.sessions.session import Session, SessionClient
from dragoman.agent.sessions.session_memory import ClientChoices, SessionMemory
from dragoman.agent.sessions.settings import SessionSettings
from dragoman.errors import (
    ConnectionClosedError,
    ErrorCode,
    InvalidParamsError,
    LogError,
    RpcError,
    SessionBusyError,
    SessionNotFoundError,
)
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.update_lines import rename_session
from dragoman.store import Header, History, Store, is_same_directory

FREE_TIMEOUT_S = 6.0
"""How long the end of a connection waits for the turns and MCP servers of its sessions to stop, and for the logs to
reach the disk. The slowest server takes 4.5 s to stop."""

CLOSE_TIMEOUT_S = 6.0
"""How long it then waits for the shared MCP servers and child processes, and after that for the store."""

_log = logging.getLogger("dragoman.agent")


class AgentSessions:
    """The live sessions by ID. Stored sessions become live when they are loaded or resumed."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        resources: AgentResources,
        client: SessionClient,
        program: AgentProgram,
    ) -> None:
        self._connection = connection
        self._store = store
        self._resources = resources
        self._client = client
        self._fallback = fallback_for(client)
        self._program = program
        self._live: dict[str, Session] = {}
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock per session that is being opened, closed or deleted, so that these steps do not overlap."""

    def get(self, session_id: str) -> Session:
        """Return a live session. Raises RpcError `-32002`."""
        try:
            return self._live[session_id]
        except KeyError:
            raise not_found(session_id) from None

    def find(self, session_id: str) -> Session | None:
        """Return a live session, or None."""
        return self._live.get(session_id)

    async def ready(self, session_id: str) -> Session:
        """Return a live session whose log works. If the log has failed, restore the session from it first.

        Raises RpcError and LogError.
        """
        session = self.get(session_id)
        if session.log.failure is not None:
            async with self._lock(session_id):
                await self._reload(self.get(session_id))  # it may have been closed during the wait
        return self.get(session_id)

    async def new(
        self,
        cwd: str,
        directories: list[str],
        system_prompt: v1.SystemPrompt | None = None,
        *,
        origin: str | None = None,
    ) -> Session:
        """Create a session. When this returns, its ID is valid in any process. Raises LogError."""
        session = await self._create(await self._header(cwd, directories, origin=origin))
        session.memory.choices = ClientChoices(system_prompt=system_prompt)
        await self._program.begin(session, "new")
        session.updates.use_log(await self._store.create(session.header, session.settings.encode()))
        self._add(session)
        if system_prompt is not None:
            await session.save_choices(session.memory.choices)
        return session

    async def reopen(
        self,
        session_id: str,
        cwd: str,
        directories: list[str],
        system_prompt: v1.SystemPrompt | None = None,
        *,
        with_replay: bool,
    ) -> Session:
        """Make a session live unless it is, and replay it on request. Raises RpcError and LogError.

        It keeps its system prompt unless a new one is given.
        """
        async with self._lock(session_id):
            session = self._live.get(session_id)
            if session is None:
                session = await self._open(session_id, cwd, system_prompt, with_replay=with_replay)
            else:
                _check_same_cwd(session.header, cwd)
                await self._reload(session)
                await _set_system_prompt(session, system_prompt)
                if with_replay:
                    await self._replay_live(session)
        await session.set_directories(directories)
        return session

    async def fork(
        self,
        session_id: str,
        cwd: str,
        directories: list[str],
        system_prompt: v1.SystemPrompt | None = None,
        *,
        point: ForkPoint | None = None,
    ) -> Session:
        """Create a session with the history of another, all of it or up to `point`. Raises RpcError and LogError."""
        fork = await self._create(await self._header(cwd, directories, forked_from=session_id))
        source = self._live.get(session_id)
        if source is not None:
            await source.updates.settle()
        rename = partial(rename_session, old=session_id, new=fork.id)
        try:
            await self._store.fork(session_id, fork.header, rename, None if point is None else point.seq)
        except SessionNotFoundError:
            raise not_found(session_id) from None
        await self._restore(fork, await self._store.open(fork.id), "fork", system_prompt)
        self._add(fork)
        if fork.memory.choices.archived:  # the copy is a new session, so it is not archived
            await fork.save_choices(msgspec.structs.replace(fork.memory.choices, archived=False))
        return fork

    async def find_fork_point(self, session_id: str, message: NamedMessage) -> ForkPoint:
        """Find the turn that a message of a live session began. Raises RpcError."""
        session = self.get(session_id)
        await session.updates.settle()
        return await find_fork_point(session.log, message)

    async def close(self, session_id: str) -> None:
        """Stop and close a session and keep its history. Raises RpcError `-32002` if it does not exist."""
        async with self._lock(session_id):
            session = self._live.get(session_id)
            if session is not None:
                await self._stop(session)
            elif await self._store.find(session_id) is None:
                raise not_found(session_id)

    async def delete(self, session_id: str) -> None:
        """Stop and delete a session. Raises RpcError if another process has it open."""
        async with self._lock(session_id):
            session = self._live.get(session_id)
            if session is not None:
                with suppress(LogError):  # a log that cannot be written is still deleted
                    await self._stop(session)
            try:
                await self._store.delete(session_id)
            except SessionBusyError as error:
                raise busy(error) from None

    async def set_title(self, session_id: str, title: str) -> None:
        """Set the client's title for a live or stored session. Raises RpcError and LogError."""
        async with self._lock(session_id):
            session = self._live.get(session_id)
            if session is None:
                await self._amend(session_id, title=title)
                return
            await self._reload(session)
            await session.set_title(title)
            await session.save_choices(msgspec.structs.replace(session.memory.choices, titled=True))

    async def archive(self, session_id: str) -> None:
        """Stop and close a session, and hide it from lists. Raises RpcError and LogError."""
        async with self._lock(session_id):
            session = self._live.get(session_id)
            if session is not None:
                await self._stop(session)
            await self._amend(session_id, archived=True)

    async def unarchive(self, session_id: str) -> None:
        """Show a live or stored session in lists again. Raises RpcError and LogError."""
        async with self._lock(session_id):
            session = self._live.get(session_id)
            if session is None:
                await self._amend(session_id, archived=False)
            else:
                await session.save_choices(msgspec.structs.replace(session.memory.choices, archived=False))

    async def is_live(self, session_id: str) -> bool:
        """Return whether a session is live on any connection. Raises RpcError `-32002` if it does not exist."""
        if session_id in self._program.live_sessions:
            return True
        if await self._store.find(session_id) is None:
            raise not_found(session_id)
        return False

    async def close_all(self, owned_store: Store | None) -> None:
        """Stop and close all sessions, and close the store if we own it, in bounded time."""
        sessions = list(self._live.values())
        for session in sessions:
            session.cancel()
        # Each step has its own time limit, so that a step that hangs or fails does not block the next ones.
        freeing = (_bounded(self._stop(each), FREE_TIMEOUT_S, f"closing the session {each.id}") for each in sessions)
        await asyncio.gather(*freeing)
        closing = _bounded(self._resources.close(), CLOSE_TIMEOUT_S, "stopping the MCP servers and the children")
        await asyncio.gather(self._program.shut_down(), closing)
        if owned_store is not None:
            await _bounded(owned_store.close(), CLOSE_TIMEOUT_S, "closing the store")

    def _add(self, session: Session) -> None:
        self._live[session.id] = session
        self._program.live_sessions.add(session.id)

    async def _stop(self, session: Session) -> None:
        session.cancel()
        await session.slot.wait_idle()
        if self._live.pop(session.id, None) is None:
            return
        self._program.live_sessions.discard(session.id)
        try:
            await asyncio.gather(session.mcp.close(), self._program.close(session))
        finally:
            try:
                if session.log.failure is None:  # otherwise the failure was already shown
                    with suppress(ConnectionClosedError):  # the log is complete, and the client is gone
                        session.updates.flush()
            finally:
                await session.log.close()

    async def _header(
        self, cwd: str, directories: list[str], *, forked_from: str | None = None, origin: str | None = None
    ) -> Header:
        created = (await self._store.now()).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Header(str(uuid.uuid4()), cwd, directories, created, forked_from, origin)

    async def _create(self, header: Header) -> Session:
        """Create a session object that is not registered yet. Raises as the program's hooks do."""
        program = self._program
        settings = SessionSettings(
            program.modes,
            program.options,
            fallback=program.fallback_mode,
            boolean=self._client.supports_boolean_options,
        )
        session = Session(
            header,
            self._client,
            UpdateSender(self._connection, header.id, self._fallback),
            settings,
            self._resources,
            timeout_s=program.permission.timeout_s,
            remember=program.permission.remember,
        )
        session.mcp.own_servers = program.servers
        await self._program.open(session)
        return session

    async def _amend(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> None:
        """Change the log of a session that is not live. Raises RpcError and LogError."""
        log = await self._open_log(session_id)
        try:
            await amend(log, title=title, archived=archived)
        finally:
            await log.close()

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._changing.setdefault(session_id, asyncio.Lock())

    async def _open(
        self, session_id: str, cwd: str, system_prompt: v1.SystemPrompt | None, *, with_replay: bool
    ) -> Session:
        log = await self._open_log(session_id)
        try:
            _check_same_cwd(log.header, cwd)
            session = await self._create(log.header)
        except BaseException:
            await log.close()
            raise
        await self._restore(session, log, "load" if with_replay else "resume", system_prompt)
        self._add(session)
        return session

    async def _open_log(self, session_id: str) -> History:
        try:
            return await self._store.open(session_id)
        except SessionNotFoundError:
            raise not_found(session_id) from None
        except SessionBusyError as error:
            raise busy(error) from None

    async def _reload(self, session: Session) -> None:
        """If the log of a session has failed, open it again and restore the session from it."""
        if session.log.failure is None or session.is_busy:
            return
        await session.log.close()
        log = await self._open_log(session.id)
        session.memory = SessionMemory()
        await self._program.open(session)
        await self._restore(session, log, "resume")

    async def _restore(
        self, session: Session, log: History, origin: SessionOrigin, system_prompt: v1.SystemPrompt | None = None
    ) -> None:
        try:
            send = session.updates.replay if origin == "load" else None
            await restore(session, log, self._program, send)
            await _set_system_prompt(session, system_prompt)
            await self._program.begin(session, origin)
        except BaseException:
            await log.close()
            raise

    async def _replay_live(self, session: Session) -> None:
        session.updates.hold()
        try:
            await replay(session.log, session.updates.replay)
        finally:
            session.updates.release()


async def _set_system_prompt(session: Session, system_prompt: v1.SystemPrompt | None) -> None:
    """Set the client's instructions for the model. If the log is read-only, keep them in memory only."""
    if system_prompt is None or system_prompt == session.system_prompt:
        return
    choices = msgspec.structs.replace(session.memory.choices, system_prompt=system_prompt)
    if session.log.failure is None:
        await session.save_choices(choices)
    else:
        session.memory.choices = choices


async def _bounded(work: Awaitable[None], timeout_s: float, what: str) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        _log.warning("%s was abandoned after %g s", what, timeout_s)
    except Exception:  # noqa: BLE001 -- boundary: one step of closing must not stop the next
        _log.warning("%s failed", what, exc_info=True)


def not_found(session_id: str) -> RpcError:
    """Return the error for an unknown session."""
    problem = f"there is no session {session_id}; run `dragoman sessions` to list them"
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": problem})


def busy(error: SessionBusyError) -> RpcError:
    """Return the error for a session that another process has open."""
    data = {"sessionId": error.session_id, "problem": str(error), "pid": error.pid, "host": error.host}
    return RpcError(ErrorCode.INVALID_REQUEST, data)


def _check_same_cwd(header: Header, cwd: str) -> None:
    if not is_same_directory(header.cwd, cwd):
        raise InvalidParamsError(
            "params.cwd",
            f"session {header.id} belongs to {header.cwd}; send that as its cwd",
            expected=header.cwd,
            got=cwd,
        )
