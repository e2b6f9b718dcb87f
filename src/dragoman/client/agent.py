"""A connected agent: its name, its capabilities and its sessions.

`AgentConnection` is what `connect` yields. Each method first checks the agent's capabilities, so that a request the
agent cannot handle is never sent. Two ways of opening a session differ. For `session/new` and `session/fork` the agent
chooses the id, so updates may arrive before the id is known: `Sessions.opening` keeps them. For `session/load` and
`session/resume` the id is known, so the session is registered before the request is sent.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, Protocol

from dragoman.client.connection.capability_check import CapabilityCheck, StrPath, absolute
from dragoman.client.connection.link import Link
from dragoman.client.problem import NotOfferedError, PromptRunningError
from dragoman.client.services.functions import FunctionHost
from dragoman.client.services.servers import McpServers, as_servers
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.sessions import Sessions
from dragoman.errors import ErrorCode, InvalidResultError, RemoteError
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
from dragoman.protocol.void_message import VOID
from dragoman.text import one_line

ArchiveFilter = Literal["exclude", "include", "only"]
"""Which sessions a list contains: the unarchived ones, all, or only the archived ones."""


class AnySession(Protocol):
    """A `Session` or a `SyncSession`, identified by its id."""

    @property
    def id(self) -> str: ...


class AgentConnection:
    """An agent at the other end of a connection, as `connect` yields it.

    Each method that sends a request can raise these errors: RemoteError if the agent answers with an error,
    InvalidResultError for an invalid answer, LoginRequiredError if the agent needs a login first, and ProcessDiedError
    if it has died. RequestNotSentError is raised before sending if the agent or the protocol does not allow the
    request.
    """

    def __init__(
        self, link: Link, sessions: Sessions, functions: FunctionHost, answer: v1.InitializeResponse, version: int
    ) -> None:
        self.info = answer.agent_info
        """The agent's name and version, if it sent them."""
        self.protocol_version = version
        """The version of ACP that the agent speaks. This class works the same for both versions."""
        self.capabilities = answer.agent_capabilities
        self.auth_methods: Sequence[v1.AuthMethod] = tuple(answer.auth_methods)
        self.link = link
        self.check = CapabilityCheck(self.capabilities, self.name)
        self._sessions = sessions
        self._functions = functions

    def __repr__(self) -> str:
        return f"<AgentConnection {one_line(self.name)}, {len(self.open_sessions)} sessions open>"

    @property
    def withdraws(self) -> bool:
        """Whether the agent can withdraw its messages. Then a turn may contain `MessageWithdrawn`."""
        return VOID in (self.capabilities.meta or {})

    @property
    def name(self) -> str:
        """The agent's name and version, or else the program's name."""
        return f"{self.info.name} {self.info.version}" if self.info else self.link.command[0]

    @property
    def auth(self) -> v1.AuthStatusResponse | None:
        """The agent's last report of its login, from `auth_status` or a notification. None if it sent none."""
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
        """Open a new session in `cwd`, by default the current directory.

        A relative `cwd` is relative to the current directory of this process. The agent receives the absolute path.

        MCP servers are commands, URLs or files. `tools` are Python functions that the agent can call. Raises
        UnusableFunctionError for a function that cannot be a tool. A text as `system_prompt` is appended to the agent's
        own instructions, and a `v1.SystemPrompt` may replace them. `meta` is the `_meta` of the request, for
        extensions.
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
        """Open an earlier session with `session/load`. Its `history` has everything that the agent replays."""
        self.check.method(SESSION_LOAD)
        return await self._open_existing(
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
        """Open an earlier session with `session/resume`, without a replay."""
        self.check.method(SESSION_RESUME)
        return await self._open_existing(
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
        """Open an earlier session with a method that the agent supports. If it supports both, `replay` selects.

        Some agents advertise a method and then answer that they lack it. The other method is tried then.
        """
        methods = [SESSION_LOAD, SESSION_RESUME] if replay else [SESSION_RESUME, SESSION_LOAD]
        advertised = [method for method in methods if self.check.has_method(method)]
        if not advertised:
            self.check.method(SESSION_LOAD)
        return await self._open_existing(
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
        session: AnySession | str,
        cwd: StrPath | None = None,
        *,
        mcp_servers: McpServers | None = None,
        additional_directories: Iterable[StrPath] | None = None,
        system_prompt: str | v1.SystemPrompt | None = None,
    ) -> Session:
        """Open a copy of a session. If the session is open here, the copy gets its directories and MCP servers."""
        self.check.method(SESSION_FORK)
        known = session if isinstance(session, Session) else self._sessions.get(_id(session))
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
        """Yield the agent's sessions, all of them or those of one directory. Request one page at a time.

        `archived` selects whether archived sessions are included. An agent that cannot archive has none.
        """
        self.check.method(SESSION_LIST)
        # Agents that cannot archive do not know the parameter, so it is not sent to them.
        filter_ = None if archived == "exclude" else archived
        if filter_ is not None and not self.check.has_method(SESSION_ARCHIVE):
            if filter_ == "only":
                return
            filter_ = None
        directory = None if cwd is None else absolute(cwd)
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await self.link.call(
                SESSION_LIST, v1.ListSessionsRequest(cwd=directory, cursor=cursor, archived=filter_)
            )
            for info in page.sessions:
                yield info
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise InvalidResultError(
                    SESSION_LIST.name, "it sent the same cursor twice, so the list would never end"
                )
            seen.add(cursor)

    async def close(self, session: AnySession | str) -> None:
        """Close a session at the agent. It can be loaded again later."""
        self.check.method(SESSION_CLOSE)
        await self.link.call(SESSION_CLOSE, v1.CloseSessionRequest(session_id=_id(session)))
        await self._end(session)

    async def delete(self, session: AnySession | str) -> None:
        """Delete a session at the agent for good."""
        self.check.method(SESSION_DELETE)
        await self.link.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=_id(session)))
        await self._end(session)

    async def set_title(self, session: AnySession | str, title: str) -> str:
        """Set the title of an open or stored session. Return the title that the agent stored."""
        self.check.method(SESSION_SET_TITLE)
        request = v1.SetSessionTitleRequest(session_id=_id(session), title=title)
        kept = (await self.link.call(SESSION_SET_TITLE, request)).title
        known = self._sessions.get(_id(session))
        if known is not None:
            known.title = kept
        return kept

    async def archive(self, session: AnySession | str) -> None:
        """Close a session at the agent and remove it from its list."""
        self.check.method(SESSION_ARCHIVE)
        await self.link.call(SESSION_ARCHIVE, v1.ArchiveSessionRequest(session_id=_id(session)))
        await self._end(session)

    async def unarchive(self, session: AnySession | str) -> None:
        """Put an archived session back into the agent's list, without opening it."""
        self.check.method(SESSION_UNARCHIVE)
        await self.link.call(SESSION_UNARCHIVE, v1.UnarchiveSessionRequest(session_id=_id(session)))

    async def status(self, session: AnySession | str) -> Literal["open", "saved"]:
        """Return whether the agent has a session in memory (`open`) or would have to load it (`saved`)."""
        self.check.method(SESSION_STATUS)
        answer = await self.link.call(SESSION_STATUS, v1.SessionStatusRequest(session_id=_id(session)))
        return "open" if answer.status == "open" else "saved"

    async def auth_status(self) -> v1.AuthStatusResponse:
        """Return the agent's login: whether a new session needs one, and the known accounts."""
        self.check.method(AUTH_STATUS)
        self.link.auth = await self.link.call(AUTH_STATUS, v1.AuthStatusRequest())
        return self.link.auth

    async def authenticate(self, method_id: str) -> None:
        """Log in with one of the agent's `auth_methods`."""
        offered = [method.id for method in self.auth_methods]
        if method_id not in offered:
            raise NotOfferedError("way to log in", method_id, offered)
        await self.link.call(AUTHENTICATE, v1.AuthenticateRequest(method_id=method_id))

    async def logout(self) -> None:
        """Log out at the agent."""
        self.check.method(LOGOUT)
        await self.link.call(LOGOUT, v1.LogoutRequest())

    async def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send an extension request, whose name begins with `_`, and return its result as plain JSON."""
        if not name.startswith("_"):
            raise NotOfferedError("extension", name, ["names that begin with `_`"])
        return await self.link.call_extension(name, params)

    async def _open_existing(
        self,
        methods: Sequence[Method[Any, Any]],
        session_id: str,
        cwd: str,
        *,
        mcp_servers: McpServers,
        tools: Iterable[ToolFunction],
        additional_directories: Iterable[StrPath],
        system_prompt: str | v1.SystemPrompt | None,
    ) -> Session:
        """Open an earlier session with the first of these methods that the agent knows."""
        directories = self.check.directories(additional_directories)
        async with self._functions.offering(tools, self.capabilities) as functions:
            params = {
                "session_id": session_id,
                "cwd": cwd,
                "mcp_servers": [*self._servers(mcp_servers, cwd), *functions.servers],
                "additional_directories": directories,
                "system_prompt": self.check.system_prompt(system_prompt),
            }
            *others, last = methods
            for method in others:
                try:
                    return await self._reopen(method, method.params(**params), functions.stop)
                except RemoteError as error:
                    if error.code != ErrorCode.METHOD_NOT_FOUND:
                        raise
            return await self._reopen(last, last.params(**params), functions.stop)

    async def _reopen(
        self,
        method: Method[Any, Any],
        request: v1.LoadSessionRequest | v1.ResumeSessionRequest,
        on_detach: Callable[[], object] | None,
    ) -> Session:
        session = self._add(request.session_id, request)
        try:
            with session.replaying() if method is SESSION_LOAD else nullcontext():
                answer: v1.LoadSessionResponse | v1.ResumeSessionResponse = await self.link.call(method, request)
        except BaseException:
            self._sessions.remove(session)
            raise
        session.on_detach = on_detach
        session.set_up(answer.modes, answer.config_options)
        return session

    def _servers(self, servers: McpServers, cwd: str) -> list[v1.McpServer]:
        return as_servers(servers, self.capabilities, agent=self.name, cwd=cwd)

    def _adopt(
        self,
        method: str,
        answer: v1.NewSessionResponse | v1.ForkSessionResponse,
        request: v1.NewSessionRequest | v1.ForkSessionRequest,
    ) -> Session:
        if self._sessions.get(answer.session_id) is not None:
            raise InvalidResultError(
                method, f"it returned the id of a session that is already open: {answer.session_id}"
            )
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
            raise PromptRunningError(session_id)
        session = Session(
            self,
            session_id,
            request.cwd,
            additional_directories=request.additional_directories,
            mcp_servers=request.mcp_servers,
        )
        self._sessions.add(session)
        return session

    async def _end(self, session: AnySession | str) -> None:
        known = self._sessions.get(_id(session))
        if known is not None:
            await self._sessions.end(known)


def _directory(cwd: StrPath | None) -> str:
    return os.getcwd() if cwd is None else absolute(cwd)  # noqa: PTH109 -- Path.cwd() only wraps it


def _id(session: AnySession | str) -> str:
    return session if isinstance(session, str) else session.id
