"""A connected agent: its name, its capabilities and its sessions."""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

from dragoman.client.capability_check import CapabilityCheck, StrPath, absolute
from dragoman.client.functions import FunctionHost
from dragoman.client.link import Link
from dragoman.client.problem import NotOffered, PromptRunning
from dragoman.client.servers import McpServers, as_servers
from dragoman.client.session import Session
from dragoman.client.sessions import Sessions
from dragoman.errors import ErrorCode, InvalidResult, RemoteError
from dragoman.mcp.serving.function_server import ToolFunction
from dragoman.protocol import v1
from dragoman.protocol.methods import (
    AUTH_STATUS,
    AUTHENTICATE,
    LOGOUT,
    SESSION_ARCHIVE,
    SESSION_CLOSE,
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_LIST,
    SESSION_LOAD,
    SESSION_NEW,
    SESSION_RESUME,
    SESSION_SET_TITLE,
    SESSION_STATUS,
    SESSION_UNARCHIVE,
    Method,
)
from dragoman.protocol.notice import VOID
from dragoman.text import one_line

ArchiveFilter = Literal["exclude", "include", "only"]
"""Which sessions are listed: those that are not archived, all, or those that are."""


class RemoteAgent:
    """An agent at the other end of a connection; made by `connect`.

    Everything here that sends something raises RemoteError when the agent answers with an error, InvalidResult when
    its answer makes no sense, NeedsLogin when it wants a login first, ProcessDied when it has died, and one of the
    kinds of Refused, before anything is sent, when the agent or the protocol does not allow it.
    """

    def __init__(
        self, link: Link, sessions: Sessions, functions: FunctionHost, answer: v1.InitializeResponse, version: int
    ) -> None:
        self.info = answer.agent_info
        """Its name and version, if it says."""
        self.protocol_version = version
        """The version of ACP that it speaks; everything here is the same for both."""
        self.capabilities = answer.agent_capabilities
        self.auth_methods: Sequence[v1.AuthMethod] = tuple(answer.auth_methods)
        self.link = link
        self.check = CapabilityCheck(self.capabilities, self.name)
        self._sessions = sessions
        self._functions = functions

    def __repr__(self) -> str:
        return f"<RemoteAgent {one_line(self.name)}, {len(self.open_sessions)} sessions open>"

    @property
    def withdraws(self) -> bool:
        """Whether it says so when a message of it is void: then there is a `Withdrawn`."""
        return VOID in (self.capabilities.meta or {})

    @property
    def name(self) -> str:
        """How to call it in a sentence."""
        return f"{self.info.name} {self.info.version}" if self.info else self.link.command[0]

    @property
    def auth(self) -> v1.AuthStatusResponse | None:
        """Its login as it last told it, by `auth_status` or by itself; None when it did not."""
        return self.link.auth

    @property
    def open_sessions(self) -> tuple[Session, ...]:
        """The sessions that are open on this connection."""
        return self._sessions.list_open()

    async def new_session(
        self,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Session:
        """Open a new session that works in `cwd`, by default the current directory.

        A relative `cwd` is taken from the current directory of this process; the agent gets it absolute.

        MCP servers are given as commands, addresses or files, as in `servers`. `tools` are Python functions that the
        agent can call in it; raises UnusableFunction for one that cannot be a tool. `system_prompt` are instructions
        for its model: a text is added to its own instructions, a `v1.SystemPrompt` may replace them.
        `meta` is the `_meta` of the request, for extensions.
        """
        directory = _directory(cwd)
        async with self._functions.offering(tools, self.capabilities) as functions:
            request = v1.NewSessionRequest(
                cwd=directory,
                mcp_servers=[*self._servers(mcp_servers, directory), *functions.servers],
                additional_directories=self.check.directories(additional_directories),
                system_prompt=self.check.system_prompt(system_prompt),
                meta=None if meta is None else dict(meta),
            )
            with self._sessions.opening():
                answer = await self.link.call(SESSION_NEW, request)
                session = self._adopt(SESSION_NEW.name, answer, request)
                session.on_detach = functions.stop
                return session

    async def load_session(
        self,
        session_id: str,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> Session:
        """Open a session that there was before; all that the agent replays is in its `history`."""
        self.check.method(SESSION_LOAD)
        return await self._take_up(
            [SESSION_LOAD],
            session_id,
            _directory(cwd),
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
        )

    async def resume_session(
        self,
        session_id: str,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> Session:
        """Open a session that there was before, without a replay."""
        self.check.method(SESSION_RESUME)
        return await self._take_up(
            [SESSION_RESUME],
            session_id,
            _directory(cwd),
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
        )

    async def reopen_session(
        self,
        session_id: str,
        cwd: StrPath | None = None,
        *,
        replay: bool = False,
        mcp_servers: McpServers = (),
        tools: Iterable[ToolFunction] = (),
        additional_directories: Iterable[StrPath] = (),
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> Session:
        """Open a session that there was before in whichever way the agent can; `replay` says which if it can both.

        An agent may advertise a way and answer that it has no such method: then the other way is tried.
        """
        ways = [SESSION_LOAD, SESSION_RESUME] if replay else [SESSION_RESUME, SESSION_LOAD]
        advertised = [way for way in ways if self.check.has_method(way)]
        if not advertised:
            self.check.method(SESSION_LOAD)
        return await self._take_up(
            advertised,
            session_id,
            _directory(cwd),
            mcp_servers=mcp_servers,
            tools=tools,
            additional_directories=additional_directories,
            system_prompt=system_prompt,
        )

    async def fork(
        self,
        session: Session | str,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers | None = None,
        additional_directories: Iterable[StrPath] | None = None,
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> Session:
        """Open a copy of a session; of one that is open here, with the directories and servers that it has."""
        self.check.method(SESSION_FORK)
        known = session if isinstance(session, Session) else self._sessions.get(session)
        if additional_directories is None:
            additional_directories = known.additional_directories if known else ()
        if mcp_servers is None:
            mcp_servers = known.mcp_servers if known else ()
        directory = known.cwd if known and cwd is None else _directory(cwd)
        request = v1.ForkSessionRequest(
            session_id=_id(session),
            cwd=directory,
            mcp_servers=self._servers(mcp_servers, directory),
            additional_directories=self.check.directories(additional_directories),
            system_prompt=self.check.system_prompt(system_prompt),
        )
        with self._sessions.opening():
            answer = await self.link.call(SESSION_FORK, request)
            return self._adopt(SESSION_FORK.name, answer, request)

    async def list_sessions(
        self, cwd: StrPath | None = None, *, archived: ArchiveFilter = "exclude"
    ) -> AsyncGenerator[v1.SessionInfo]:
        """Yield the agent's sessions, all or those of one directory, asking for page after page.

        `archived` says whether archived ones are among them; an agent that cannot archive has none.
        """
        self.check.method(SESSION_LIST)
        wanted = None if archived == "exclude" else archived
        if wanted is not None and not self.check.has_method(SESSION_ARCHIVE):
            if wanted == "only":
                return
            wanted = None
        directory = None if cwd is None else absolute(cwd)
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await self.link.call(
                SESSION_LIST, v1.ListSessionsRequest(cwd=directory, cursor=cursor, archived=wanted)
            )
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise InvalidResult(SESSION_LIST.name, "it gave the same cursor twice: the list would never end")
            seen.add(cursor)

    async def close(self, session: Session | str) -> None:
        """Let the agent put a session away, to be loaded again later."""
        self.check.method(SESSION_CLOSE)
        await self.link.call(SESSION_CLOSE, v1.CloseSessionRequest(session_id=_id(session)))
        await self._end(session)

    async def delete(self, session: Session | str) -> None:
        """Let the agent forget a session for good."""
        self.check.method(SESSION_DELETE)
        await self.link.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=_id(session)))
        await self._end(session)

    async def set_title(self, session: Session | str, title: str) -> str:
        """Give a session, open or not, a title, and return the one that the agent has kept."""
        self.check.method(SESSION_SET_TITLE)
        request = v1.SetSessionTitleRequest(session_id=_id(session), title=title)
        kept = (await self.link.call(SESSION_SET_TITLE, request)).title
        known = self._sessions.get(_id(session))
        if known is not None:
            known.title = kept
        return kept

    async def archive(self, session: Session | str) -> None:
        """Let the agent put a session away, and leave it out of lists."""
        self.check.method(SESSION_ARCHIVE)
        await self.link.call(SESSION_ARCHIVE, v1.ArchiveSessionRequest(session_id=_id(session)))
        await self._end(session)

    async def unarchive(self, session: Session | str) -> None:
        """Have a session in lists again; it is not opened."""
        self.check.method(SESSION_UNARCHIVE)
        await self.link.call(SESSION_UNARCHIVE, v1.UnarchiveSessionRequest(session_id=_id(session)))

    async def status(self, session: Session | str) -> Literal["open", "saved"]:
        """Ask whether the agent has a session in memory (`open`), or would have to load it (`saved`)."""
        self.check.method(SESSION_STATUS)
        answer = await self.link.call(SESSION_STATUS, v1.SessionStatusRequest(session_id=_id(session)))
        return "open" if answer.status == "open" else "saved"

    async def auth_status(self) -> v1.AuthStatusResponse:
        """Ask whether sessions can be begun without a login, and which accounts the agent has."""
        self.check.method(AUTH_STATUS)
        self.link.auth = await self.link.call(AUTH_STATUS, v1.AuthStatusRequest())
        return self.link.auth

    async def authenticate(self, method_id: str) -> None:
        """Log in, by one of the agent's `auth_methods`."""
        offered = [method.id for method in self.auth_methods]
        if method_id not in offered:
            raise NotOffered("way to log in", method_id, offered)
        await self.link.call(AUTHENTICATE, v1.AuthenticateRequest(method_id=method_id))

    async def logout(self) -> None:
        """Log out."""
        self.check.method(LOGOUT)
        await self.link.call(LOGOUT, v1.LogoutRequest())

    async def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send a request beyond the protocol, whose name begins with `_`, and return its result as plain JSON."""
        if not name.startswith("_"):
            raise NotOffered("extension", name, ["names that begin with `_`"])
        return await self.link.call_extension(name, params)

    async def _take_up(
        self,
        ways: Sequence[Method[Any, Any]],
        session_id: str,
        cwd: str,
        *,
        mcp_servers: McpServers,
        tools: Iterable[ToolFunction],
        additional_directories: Iterable[StrPath],
        system_prompt: str | v1.SystemPrompt | None,
    ) -> Session:
        """Open a session by the first of these methods that the agent has."""
        directories = self.check.directories(additional_directories)
        async with self._functions.offering(tools, self.capabilities) as functions:
            wanted = {
                "session_id": session_id,
                "cwd": cwd,
                "mcp_servers": [*self._servers(mcp_servers, cwd), *functions.servers],
                "additional_directories": directories,
                "system_prompt": self.check.system_prompt(system_prompt),
            }
            *others, last = ways
            for way in others:
                try:
                    return await self._reopen(way, way.params(**wanted), functions.stop)
                except RemoteError as error:
                    if error.code != ErrorCode.METHOD_NOT_FOUND:
                        raise
            return await self._reopen(last, last.params(**wanted), functions.stop)

    async def _reopen(
        self,
        way: Method[Any, Any],
        request: v1.LoadSessionRequest | v1.ResumeSessionRequest,
        on_detach: Callable[[], object] | None,
    ) -> Session:
        session = self._add(request.session_id, request)
        try:
            with session.replaying() if way is SESSION_LOAD else nullcontext():
                answer: v1.LoadSessionResponse | v1.ResumeSessionResponse = await self.link.call(way, request)
        except BaseException:
            self._sessions.remove(session)
            raise
        session.on_detach = on_detach
        session.set_up(answer.modes, answer.config_options)
        return session

    def _servers(self, given: McpServers, cwd: str) -> list[v1.McpServer]:
        return as_servers(given, self.capabilities, agent=self.name, cwd=cwd)

    def _adopt(
        self,
        method: str,
        answer: v1.NewSessionResponse | v1.ForkSessionResponse,
        request: v1.NewSessionRequest | v1.ForkSessionRequest,
    ) -> Session:
        if self._sessions.get(answer.session_id) is not None:
            raise InvalidResult(method, f"it gave the id of a session that is open already: {answer.session_id}")
        session = self._add(answer.session_id, request)
        session.set_up(answer.modes, answer.config_options)
        return session

    def _add(
        self,
        session_id: str,
        request: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest,
    ) -> Session:
        before = self._sessions.get(session_id)
        if before is not None and before.is_busy:
            raise PromptRunning(session_id)
        session = Session(
            self,
            session_id,
            request.cwd,
            additional_directories=request.additional_directories,
            mcp_servers=request.mcp_servers,
        )
        self._sessions.add(session)
        return session

    async def _end(self, session: Session | str) -> None:
        known = self._sessions.get(_id(session))
        if known is not None:
            await self._sessions.end(known)


def _directory(cwd: StrPath | None) -> str:
    return os.getcwd() if cwd is None else absolute(cwd)  # noqa: PTH109 -- Path.cwd() only wraps it


def _id(session: Session | str) -> str:
    return session if isinstance(session, str) else session.id
