"""The sessions of one connection, and how they come, go and come back."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

import msgspec

from dragoman.agent.fork_point import ForkPoint, NamedMessage, find_fork_point
from dragoman.agent.history import amend, replay, restore
from dragoman.agent.hook_calls import HookCalls
from dragoman.agent.program import AgentProgram, SessionOrigin
from dragoman.agent.replay_fallback import fallback_for
from dragoman.agent.resources import AgentResources
from dragoman.agent.session import Session, SessionClient
from dragoman.agent.session_memory import ClientChoices, SessionMemory
from dragoman.agent.settings import SessionSettings
from dragoman.agent.update_sender import UpdateSender
from dragoman.errors import ConnectionClosed, ErrorCode, InvalidParams, LogFailed, RpcError, SessionBusy, SessionUnknown
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.update_lines import rename_session
from dragoman.store import Header, Log, Store, is_same_directory

FREE_TIMEOUT_S = 6.0
"""How long the end of a connection waits for the turns and the MCP servers of its sessions to stop, which takes the
most stubborn of them 4.5 s, and for logs to reach the disk."""

CLOSE_TIMEOUT_S = 6.0
"""How long it then waits for the shared MCP servers and the children, and after them for the store: for each anew."""

_log = logging.getLogger("dragoman.agent")


class AgentSessions:
    """The live sessions by id, and those in the store, which become live when they are loaded or resumed."""

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
        self._program = program
        self._hooks = HookCalls(program)
        self._live: dict[str, Session] = {}
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock for each session that is being opened, closed or deleted: the next of these waits."""

    def get(self, session_id: str) -> Session:
        """Return a live session; raises RpcError `-32002`."""
        try:
            return self._live[session_id]
        except KeyError:
            raise not_found(session_id) from None

    def find(self, session_id: str) -> Session | None:
        """Return a live session, if it is one."""
        return self._live.get(session_id)

    async def ready(self, session_id: str) -> Session:
        """Return a live session that can be written to; one whose log has failed is restored from the log.

        Raises RpcError and LogFailed.
        """
        session = self.get(session_id)
        if session.log.failure is not None:
            async with self._change(session_id):
                await self._read_again(self.get(session_id))  # it may have been closed meanwhile
        return self.get(session_id)

    async def new(
        self,
        cwd: str,
        directories: list[str],
        system_prompt: v1.SystemPrompt | None = None,
        *,
        origin: str | None = None,
    ) -> Session:
        """Begin a session; its id works in any process once this returns. Raises LogFailed."""
        session = await self._make(await self._header(cwd, directories, origin=origin))
        session.memory.choices = ClientChoices(system_prompt=system_prompt)
        await self._hooks.begin(session, "new")
        session.updates.use(await self._store.create(session.header, session.settings.encode()))
        self._add(session)
        if system_prompt is not None:
            await session.choose(session.memory.choices)
        return session

    async def bring_back(
        self,
        session_id: str,
        cwd: str,
        directories: list[str],
        system_prompt: v1.SystemPrompt | None = None,
        *,
        with_replay: bool,
    ) -> Session:
        """Make a session live, or find it live, and replay it when asked to; raises RpcError and LogFailed.

        It keeps its system prompt when no other is given.
        """
        async with self._change(session_id):
            session = self._live.get(session_id)
            if session is None:
                session = await self._open(session_id, cwd, system_prompt, with_replay=with_replay)
            else:
                _check_same_cwd(session.header, cwd)
                await self._read_again(session)
                await _instruct(session, system_prompt)
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
        """Begin a session with the history of another, or with that before a point; raises RpcError and LogFailed."""
        fork = await self._make(await self._header(cwd, directories, forked_from=session_id))
        source = self._live.get(session_id)
        if source is not None:
            await source.updates.settle()
        rename = partial(rename_session, old=session_id, new=fork.id)
        try:
            await self._store.fork(session_id, fork.header, rename, None if point is None else point.seq)
        except SessionUnknown:
            raise not_found(session_id) from None
        await self._restore(fork, await self._store.open(fork.id), "fork", system_prompt)
        self._add(fork)
        if fork.memory.choices.archived:  # the copy is a session of its own, which somebody has just begun
            await fork.choose(msgspec.structs.replace(fork.memory.choices, archived=False))
        return fork

    async def find_fork_point(self, session_id: str, wanted: NamedMessage) -> ForkPoint:
        """Find the turn that a message of a live session began; raises RpcError."""
        session = self.get(session_id)
        await session.updates.settle()
        return await find_fork_point(session.log, wanted)

    async def close(self, session_id: str) -> None:
        """Stop and free a session, keeping its history; raises RpcError `-32002` when there is none."""
        async with self._change(session_id):
            session = self._live.get(session_id)
            if session is not None:
                await self._free(session)
            elif await self._store.find(session_id) is None:
                raise not_found(session_id)

    async def delete(self, session_id: str) -> None:
        """Stop and remove a session; raises RpcError when another process has it."""
        async with self._change(session_id):
            session = self._live.get(session_id)
            if session is not None:
                with suppress(LogFailed):  # a log that cannot be written is deleted all the same
                    await self._free(session)
            try:
                await self._store.delete(session_id)
            except SessionBusy as error:
                raise busy(error) from None

    async def set_title(self, session_id: str, title: str) -> None:
        """Give a session, live or not, the title of the client; raises RpcError and LogFailed."""
        async with self._change(session_id):
            session = self._live.get(session_id)
            if session is None:
                await self._amend(session_id, title=title)
                return
            await self._read_again(session)
            await session.set_title(title)
            await session.choose(msgspec.structs.replace(session.memory.choices, titled=True))

    async def archive(self, session_id: str) -> None:
        """Stop and free a session, and leave it out of lists; raises RpcError and LogFailed."""
        async with self._change(session_id):
            session = self._live.get(session_id)
            if session is not None:
                await self._free(session)
            await self._amend(session_id, archived=True)

    async def unarchive(self, session_id: str) -> None:
        """Have a session, live or not, in lists again; raises RpcError and LogFailed."""
        async with self._change(session_id):
            session = self._live.get(session_id)
            if session is None:
                await self._amend(session_id, archived=False)
            else:
                await session.choose(msgspec.structs.replace(session.memory.choices, archived=False))

    async def is_live(self, session_id: str) -> bool:
        """Whether a session is live, on any connection; raises RpcError `-32002` when there is none."""
        if session_id in self._program.live_sessions:
            return True
        if await self._store.find(session_id) is None:
            raise not_found(session_id)
        return False

    async def close_all(self, owned_store: Store | None) -> None:
        """Stop and free all of them, and close the store if it is ours, in bounded time."""
        sessions = list(self._live.values())
        for session in sessions:
            session.cancel()
        # Each step has its own time: one that hangs or fails keeps nothing of the next ones open.
        freeing = (_bounded(self._free(each), FREE_TIMEOUT_S, f"closing the session {each.id}") for each in sessions)
        await asyncio.gather(*freeing)
        closing = _bounded(self._resources.close(), CLOSE_TIMEOUT_S, "stopping the MCP servers and the children")
        await asyncio.gather(self._hooks.shut_down(), closing)
        if owned_store is not None:
            await _bounded(owned_store.close(), CLOSE_TIMEOUT_S, "closing the store")

    def _add(self, session: Session) -> None:
        self._live[session.id] = session
        self._program.live_sessions.add(session.id)

    async def _free(self, session: Session) -> None:
        session.cancel()
        await session.slot.wait_idle()
        if self._live.pop(session.id, None) is None:
            return
        self._program.live_sessions.discard(session.id)
        try:
            await asyncio.gather(session.mcp.close(), self._hooks.close(session))
        finally:
            try:
                if session.log.failure is None:  # else that was told when it happened
                    with suppress(ConnectionClosed):  # the log has it, and the client is gone
                        session.updates.flush()
            finally:
                await session.log.close()

    async def _header(
        self, cwd: str, directories: list[str], *, forked_from: str | None = None, origin: str | None = None
    ) -> Header:
        created = (await self._store.now()).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Header(str(uuid.uuid4()), cwd, directories, created, forked_from, origin)

    async def _make(self, header: Header) -> Session:
        """Make a session, which nobody else sees yet; raises as the program's hooks do."""
        program = self._program
        settings = SessionSettings(
            program.modes,
            program.options,
            fallback=program.fallback_mode,
            boolean=self._client.knows_boolean_options,
        )
        session = Session(
            header,
            self._client,
            UpdateSender(self._connection, header.id, fallback_for(self._client)),
            settings,
            self._resources,
            timeout_s=program.permission.timeout_s,
            remember=program.permission.remember,
        )
        session.mcp.own_servers = program.servers
        await self._hooks.open(session)
        return session

    async def _amend(self, session_id: str, *, title: str | None = None, archived: bool | None = None) -> None:
        """Change the log of a session that is not live; raises RpcError and LogFailed."""
        log = await self._open_log(session_id)
        try:
            await amend(log, title=title, archived=archived)
        finally:
            await log.close()

    def _change(self, session_id: str) -> asyncio.Lock:
        return self._changing.setdefault(session_id, asyncio.Lock())

    async def _open(
        self, session_id: str, cwd: str, system_prompt: v1.SystemPrompt | None, *, with_replay: bool
    ) -> Session:
        log = await self._open_log(session_id)
        try:
            _check_same_cwd(log.header, cwd)
            session = await self._make(log.header)
        except BaseException:
            await log.close()
            raise
        await self._restore(session, log, "load" if with_replay else "resume", system_prompt)
        self._add(session)
        return session

    async def _open_log(self, session_id: str) -> Log:
        try:
            return await self._store.open(session_id)
        except SessionUnknown:
            raise not_found(session_id) from None
        except SessionBusy as error:
            raise busy(error) from None

    async def _read_again(self, session: Session) -> None:
        """Open the log of a session anew if it has failed, and restore the session from it."""
        if session.log.failure is None or session.is_busy:
            return
        await session.log.close()
        log = await self._open_log(session.id)
        session.memory = SessionMemory()
        await self._hooks.open(session)
        await self._restore(session, log, "resume")

    async def _restore(
        self, session: Session, log: Log, origin: SessionOrigin, system_prompt: v1.SystemPrompt | None = None
    ) -> None:
        try:
            send = session.updates.replay if origin == "load" else None
            await restore(session, log, self._hooks, send)
            await _instruct(session, system_prompt)
            await self._hooks.begin(session, origin)
        except BaseException:
            await log.close()
            raise

    async def _replay_live(self, session: Session) -> None:
        session.updates.hold()
        try:
            await replay(session.log, session.updates.replay)
        finally:
            session.updates.release()


async def _instruct(session: Session, system_prompt: v1.SystemPrompt | None) -> None:
    """Take the instructions of the client for the model; one that can only be read keeps them in memory."""
    if system_prompt is None or system_prompt == session.system_prompt:
        return
    choices = msgspec.structs.replace(session.memory.choices, system_prompt=system_prompt)
    if session.log.failure is None:
        await session.choose(choices)
    else:
        session.memory.choices = choices


async def _bounded(work: Awaitable[None], timeout_s: float, what: str) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        _log.warning("%s was given up after %g s", what, timeout_s)
    except Exception:  # noqa: BLE001 -- boundary: a step of the end of a connection, which has to come to the next one
        _log.warning("%s failed", what, exc_info=True)


def not_found(session_id: str) -> RpcError:
    """Return the error for an unknown session."""
    problem = f"there is no session {session_id}; the list of sessions shows which there are"
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": problem})


def busy(error: SessionBusy) -> RpcError:
    """Return the error for a session that another process has."""
    data = {"sessionId": error.session_id, "problem": str(error), "pid": error.pid, "host": error.host}
    return RpcError(ErrorCode.INVALID_REQUEST, data)


def _check_same_cwd(header: Header, cwd: str) -> None:
    if not is_same_directory(header.cwd, cwd):
        raise InvalidParams(
            "params.cwd",
            f"session {header.id} belongs to {header.cwd}; send that as its cwd",
            expected=header.cwd,
            got=cwd,
        )
