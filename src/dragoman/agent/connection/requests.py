"""Handles the `session/*` requests of one client.

Each handler checks the params, lets `sessions.AgentSessions` do the work, and builds the response. A request that opens
a session (`new`, `load`, `resume`, `fork`) checks its directories and servers first, then creates or reads the log. Its
response does not wait for the MCP servers, which connect in the background. `session/prompt` runs a `TurnRunner`, and
the slot of the session admits one turn at a time.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, get_args

from dragoman.agent.commands.registry import CommandRegistry
from dragoman.agent.program import CONTENT_KINDS, AgentProgram
from dragoman.agent.servers.agent_resources import AgentResources
from dragoman.agent.servers.client_requests import (
    CANCEL_CALL,
    CANCEL_TERMINAL,
    decode_cancelled_call,
    decode_cancelled_terminal,
    includes_of,
)
from dragoman.agent.servers.login_question import CALLBACK
from dragoman.agent.servers.server_requests import ServerRequests
from dragoman.agent.servers.session_servers import ClientServer
from dragoman.agent.sessions.directories import check_absolute, check_cwd, check_directories
from dragoman.agent.sessions.fork_point import FORK_KEY, read_fork_request
from dragoman.agent.sessions.session import Session, SessionClient
from dragoman.agent.sessions.sessions import AgentSessions
from dragoman.agent.sessions.settings import MODE
from dragoman.agent.turns.turn_runner import TurnRunner
from dragoman.errors import InvalidCursorError, InvalidParamsError
from dragoman.mcp.definition import from_protocol
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.session_origin import ORIGIN_KEY, read_origin
from dragoman.store import ArchiveFilter, Store, Summary
from dragoman.telemetry.setup import wait_loaded as wait_telemetry_loaded
from dragoman.text import one_line
from dragoman.wire import IncomingRequest

MAX_TITLE = 200
"""The most characters of a title from the client. A longer title is cut."""

_log = logging.getLogger("dragoman.agent")


class SessionHandlers:
    """Handles `session/*` for one client."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        resources: AgentResources,
        client: SessionClient,
        program: AgentProgram,
        *,
        content_types: frozenset[str],
        owned_store: Store | None = None,
    ) -> None:
        """Create the handlers. `owned_store` is closed at the end, unlike a store that connections share."""
        self._store = store
        self._owned_store = owned_store
        self._program = program
        self._content_types = content_types
        self._router = resources.mcp_router
        self._callbacks = resources.logins.callbacks
        self._sessions = AgentSessions(connection, store, resources, client, program)
        self._commands = CommandRegistry(program.commands, program.session_commands)
        self.notice = ""
        """A notice that the first session shows with its first prompt."""

    def register(self, routes: Routes) -> None:
        """Register the handlers of the methods."""
        routes.on_request(methods.SESSION_NEW, self._new_session)
        routes.on_request(methods.SESSION_LOAD, self._load_session)
        routes.on_request(methods.SESSION_RESUME, self._resume_session)
        routes.on_request(methods.SESSION_FORK, self._fork_session)
        routes.on_request(methods.SESSION_LIST, self._list_sessions)
        routes.on_request(methods.SESSION_CLOSE, self._close_session)
        routes.on_request(methods.SESSION_DELETE, self._delete_session)
        routes.on_request(methods.SESSION_SET_TITLE, self._set_title)
        routes.on_request(methods.SESSION_ARCHIVE, self._archive_session)
        routes.on_request(methods.SESSION_UNARCHIVE, self._unarchive_session)
        routes.on_request(methods.SESSION_STATUS, self._session_status)
        routes.on_request(methods.SESSION_SET_MODE, self._set_mode)
        routes.on_request(methods.SESSION_SET_CONFIG_OPTION, self._set_config_option)
        routes.on_incoming_request(methods.SESSION_PROMPT, self._prompt)
        routes.on_notification(methods.SESSION_CANCEL, self._cancel)
        routes.on_extension(CANCEL_CALL, self._cancel_call)
        routes.on_extension(CANCEL_TERMINAL, self._cancel_terminal)
        routes.on_extension(CALLBACK, self._receive_callback)
        self._router.register(routes)
        ServerRequests(lambda session_id: self._sessions.get(session_id).mcp).register(routes)

    async def close(self) -> None:
        """Stop every turn and close every session, in bounded time."""
        await self._sessions.close_all(self._owned_store)

    # ── opening, listing and closing sessions ───────────────────────────────────────────────────────

    async def _new_session(self, params: v1.NewSessionRequest) -> v1.NewSessionResponse:
        cwd, directories, servers = await asyncio.to_thread(_check_setup, params)
        instructions = self._check_system_prompt(params.system_prompt)
        session = await self._sessions.new(cwd, directories, instructions, origin=read_origin(params.meta))
        meta = self._start_servers(session, servers)
        return v1.NewSessionResponse(
            session_id=session.id, modes=_modes(session), config_options=_options(session), meta=meta
        )

    async def _load_session(self, params: v1.LoadSessionRequest) -> v1.LoadSessionResponse:
        cwd, directories, servers = await asyncio.to_thread(_check_setup, params)
        instructions = self._check_system_prompt(params.system_prompt)
        session = await self._sessions.reopen(params.session_id, cwd, directories, instructions, with_replay=True)
        session.show_notices()
        meta = self._start_servers(session, servers)
        return v1.LoadSessionResponse(modes=_modes(session), config_options=_options(session), meta=meta)

    async def _resume_session(self, params: v1.ResumeSessionRequest) -> v1.ResumeSessionResponse:
        cwd, directories, servers = await asyncio.to_thread(_check_setup, params)
        instructions = self._check_system_prompt(params.system_prompt)
        session = await self._sessions.reopen(params.session_id, cwd, directories, instructions, with_replay=False)
        meta = self._start_servers(session, servers)
        return v1.ResumeSessionResponse(modes=_modes(session), config_options=_options(session), meta=meta)

    async def _fork_session(self, params: v1.ForkSessionRequest) -> v1.ForkSessionResponse:
        cwd, directories, servers = await asyncio.to_thread(_check_setup, params)
        instructions = self._check_system_prompt(params.system_prompt)
        fork = read_fork_request(params.meta)
        point = None if fork is None else await self._sessions.find_fork_point(params.session_id, fork)
        session = await self._sessions.fork(params.session_id, cwd, directories, instructions, point=point)
        meta = self._start_servers(session, servers)
        if point is not None:
            meta = {**(meta or {}), FORK_KEY: {"turns": point.turns}}
        return v1.ForkSessionResponse(
            session_id=session.id, modes=_modes(session), config_options=_options(session), meta=meta
        )

    async def _list_sessions(self, params: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
        if params.cwd is not None:
            check_absolute(params.cwd)
        try:
            page = await self._store.page(params.cwd, params.cursor, archived=_archive_filter(params.archived))
        except InvalidCursorError as error:
            raise InvalidParamsError("params.cursor", str(error)) from None
        return v1.ListSessionsResponse(
            sessions=[_info(summary) for summary in page.sessions], next_cursor=page.next_cursor
        )

    async def _close_session(self, params: v1.CloseSessionRequest) -> v1.CloseSessionResponse:
        await self._sessions.close(params.session_id)
        return v1.CloseSessionResponse()

    async def _delete_session(self, params: v1.DeleteSessionRequest) -> v1.DeleteSessionResponse:
        await self._sessions.delete(params.session_id)
        return v1.DeleteSessionResponse()

    async def _set_title(self, params: v1.SetSessionTitleRequest) -> v1.SetSessionTitleResponse:
        title = one_line(params.title.strip(), MAX_TITLE)
        if not title:
            raise InvalidParamsError("params.title", "the title is empty; use at least one visible character")
        await self._sessions.set_title(params.session_id, title)
        return v1.SetSessionTitleResponse(title=title)

    async def _archive_session(self, params: v1.ArchiveSessionRequest) -> v1.ArchiveSessionResponse:
        await self._sessions.archive(params.session_id)
        return v1.ArchiveSessionResponse()

    async def _unarchive_session(self, params: v1.UnarchiveSessionRequest) -> v1.UnarchiveSessionResponse:
        await self._sessions.unarchive(params.session_id)
        return v1.UnarchiveSessionResponse()

    async def _session_status(self, params: v1.SessionStatusRequest) -> v1.SessionStatusResponse:
        is_live = await self._sessions.is_live(params.session_id)
        return v1.SessionStatusResponse(status="open" if is_live else "saved")

    # ── requests in a session ───────────────────────────────────────────────────────────────────────

    async def _set_mode(self, params: v1.SetSessionModeRequest) -> v1.SetSessionModeResponse:
        session = await self._sessions.ready(params.session_id)
        await self._set(session, MODE, session.settings.check_mode(params.mode_id))
        return v1.SetSessionModeResponse()

    async def _set_config_option(self, params: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
        session = await self._sessions.ready(params.session_id)
        await self._set(session, params.config_id, session.settings.check(params))
        return v1.SetSessionConfigOptionResponse(config_options=session.settings.show())

    async def _set(self, session: Session, option: str, value: str | bool) -> None:
        await self._program.change(session, option, value)
        await session.set_option(option, value)

    async def _prompt(self, params: v1.PromptRequest, request: IncomingRequest) -> v1.PromptResponse:
        session = await self._sessions.ready(params.session_id)
        if not self._program.check(session, params.prompt):
            self._check_prompt(params.prompt)
        runner = TurnRunner(session, self._program, self._commands, params.prompt, params.meta)
        with session.slot.hold(session.id, runner):
            request.on_cancel = runner.cancel
            await wait_telemetry_loaded()
            try:
                return await runner.run()
            finally:
                session.rest()

    def _check_prompt(self, prompt: Sequence[v1.ContentBlock]) -> None:
        for position, block in enumerate(prompt):
            kind = CONTENT_KINDS.get(type(block))
            if kind is not None and kind not in self._content_types:
                raise InvalidParamsError(
                    f"params.prompt[{position}].type",
                    f"this agent does not accept {kind} content (see its capabilities); leave it out",
                    expected="content that the agent's promptCapabilities name",
                )

    def _cancel(self, params: v1.CancelNotification) -> None:
        session = self._sessions.find(params.session_id)
        if session is None:
            _log.warning("session/cancel for a session that is not live was ignored")
        else:
            session.cancel()

    async def _cancel_call(self, params: Any) -> dict[str, Any]:
        """Cancel one tool call. Clients of version 2 reach this extension by `tool_call/cancel`."""
        cancelled = decode_cancelled_call(params)
        turn = self._sessions.get(cancelled.session_id).slot.turn
        if turn is None or not turn.cancel_call(cancelled.tool_call_id):
            raise InvalidParamsError(
                "params.toolCallId", "no running call with this id can be cancelled; session/cancel ends the turn"
            )
        return {}

    async def _cancel_terminal(self, params: Any) -> dict[str, Any]:
        """Cancel one command. Clients of version 2 reach this extension by `terminal/cancel`."""
        cancelled = decode_cancelled_terminal(params)
        if not self._sessions.get(cancelled.session_id).workspace.cancel_command(cancelled.terminal_id):
            raise InvalidParamsError(
                "params.terminalId", "no command is running in a terminal with this id; session/cancel ends the turn"
            )
        return {}

    async def _receive_callback(self, params: Any) -> dict[str, Any]:
        """Receive a browser callback that the client forwards, for the login that waits for it."""
        return {"taken": self._callbacks.receive(params)}

    def _check_system_prompt(self, system_prompt: v1.SystemPrompt | None) -> v1.SystemPrompt | None:
        """Return the client's instructions if the program supports their mode. Raises InvalidParamsError."""
        if system_prompt is None:
            return None
        offered = self._program.system_prompt
        if offered is None:
            raise InvalidParamsError(
                "params.systemPrompt", "this agent does not accept a system prompt (see its capabilities)"
            )
        modes = ["append", "override"] if offered == "override" else ["append"]
        if system_prompt.mode not in modes:
            expected = " or ".join(modes)
            problem = f"unknown system prompt mode {system_prompt.mode!r}; expected {expected}"
            raise InvalidParamsError("params.systemPrompt.mode", problem, expected=expected)
        if not system_prompt.content:
            raise InvalidParamsError(
                "params.systemPrompt.content", "the system prompt is empty; leave systemPrompt out"
            )
        for position, block in enumerate(system_prompt.content):
            if not isinstance(block, v1.TextContent):
                place = f"params.systemPrompt.content[{position}].type"
                raise InvalidParamsError(place, "a system prompt is text", expected="text")
        return system_prompt

    def _start_servers(self, session: Session, servers: Sequence[ClientServer]) -> dict[str, Any] | None:
        """Start the session's servers and return their states for the response. Send the commands on the next tick.

        The response introduces the session to the client, so the commands must follow it.
        """

        def send_commands() -> None:
            session.updates.send_unlogged(self._commands.update(session))

        if self.notice:
            session.notice_later(self.notice)
            self.notice = ""
        session.show_commands = send_commands
        asyncio.get_running_loop().call_soon(send_commands)
        return session.mcp.start(servers, send_commands)


def _modes(session: Session) -> v1.SessionModeState | None:
    return session.settings.show_modes()


def _options(session: Session) -> list[v1.SessionConfigOption] | None:
    return session.settings.show() or None


def _check_setup(
    params: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest,
) -> tuple[str, list[str], list[ClientServer]]:
    """Check the directories and read the servers of a session. Accesses the disk. Raises InvalidParamsError."""
    servers = [
        ClientServer(from_protocol(server), includes_of(server.meta, f"params.mcpServers[{position}]"))
        for position, server in enumerate(params.mcp_servers or [])
    ]
    return check_cwd(params.cwd), check_directories(params.additional_directories or []), servers


def _archive_filter(value: str | None) -> ArchiveFilter:
    """Return the archive filter of a list request. Raises InvalidParamsError for an unknown one."""
    match value:
        case None | "exclude":
            return "exclude"
        case "include" | "only":
            return value
        case _:
            known = ", ".join(get_args(ArchiveFilter))
            raise InvalidParamsError("params.archived", f"unknown filter {value!r}; expected one of {known}")


def _info_meta(summary: Summary) -> dict[str, Any]:
    meta: dict[str, Any] = {"dragoman/messages": summary.message_count}
    return meta if summary.origin is None else {**meta, ORIGIN_KEY: summary.origin}


def _info(summary: Summary) -> v1.SessionInfo:
    return v1.SessionInfo(
        session_id=summary.id,
        cwd=summary.cwd,
        additional_directories=summary.additional_directories,
        title=None if summary.title is None else one_line(summary.title),
        updated_at=summary.updated_at,
        archived=summary.is_archived,
        meta=_info_meta(summary),
    )
