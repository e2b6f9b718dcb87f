"""The handlers of the requests about sessions."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, get_args

from dragoman.agent.commands.registry import CommandRegistry
from dragoman.agent.directories import check_absolute, check_cwd, check_directories
from dragoman.agent.fork_point import FORK_KEY, read_fork_wish
from dragoman.agent.hook_calls import HookCalls
from dragoman.agent.login_question import CALLBACK
from dragoman.agent.program import CONTENT_KINDS, AgentProgram
from dragoman.agent.resources import AgentResources
from dragoman.agent.servers.client_requests import (
    CANCEL_CALL,
    CANCEL_TERMINAL,
    decode_cancelled_call,
    decode_cancelled_terminal,
    includes_of,
)
from dragoman.agent.servers.server_requests import ServerRequests
from dragoman.agent.servers.session_servers import ClientServer
from dragoman.agent.session import Session, SessionClient
from dragoman.agent.sessions import AgentSessions
from dragoman.agent.settings import MODE
from dragoman.agent.turn_runner import TurnRunner
from dragoman.errors import BadCursor, InvalidParams
from dragoman.mcp.definition import from_protocol
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.origin import ORIGIN_KEY, read_origin
from dragoman.store import ArchiveFilter, Store, Summary
from dragoman.telemetry.setup import start as start_telemetry
from dragoman.text import one_line
from dragoman.wire import IncomingRequest

MAX_TITLE = 200
"""Characters of a title that the client gives; a longer one is cut."""

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
        takes: frozenset[str],
        owned_store: Store | None = None,
    ) -> None:
        """`owned_store` is closed at the end; a store that the program shares among connections is not."""
        self._store = store
        self._owned_store = owned_store
        self._program = program
        self._hooks = HookCalls(program)
        self._takes = takes
        self._router = resources.mcp_router
        self._callbacks = resources.logins.callbacks
        self._sessions = AgentSessions(connection, store, resources, client, program)
        self._commands = CommandRegistry(program.commands)

    def register(self, routes: Routes) -> None:
        """Take over the methods."""
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
        routes.on_request(methods.SESSION_STATUS, self._tell_status)
        routes.on_request(methods.SESSION_SET_MODE, self._set_mode)
        routes.on_request(methods.SESSION_SET_CONFIG_OPTION, self._set_config_option)
        routes.on_request(methods.SESSION_PROMPT, self._prompt)
        routes.on_notification(methods.SESSION_CANCEL, self._cancel)
        routes.on_extension(CANCEL_CALL, self._cancel_call)
        routes.on_extension(CANCEL_TERMINAL, self._cancel_terminal)
        routes.on_extension(CALLBACK, self._take_callback)
        self._router.register(routes)
        ServerRequests(lambda session_id: self._sessions.get(session_id).mcp).register(routes)

    async def close(self) -> None:
        """Stop every turn and free every session, in bounded time."""
        await self._sessions.close_all(self._owned_store)

    # ── sessions come, go and come back ─────────────────────────────────────────────────────────

    async def _new_session(self, params: v1.NewSessionRequest, request: IncomingRequest) -> v1.NewSessionResponse:
        del request
        cwd, directories, servers = await asyncio.to_thread(_check_place, params)
        instructions = self._check_system_prompt(params.system_prompt)
        session = await self._sessions.new(cwd, directories, instructions, origin=read_origin(params.meta))
        meta = self._introduce(session, servers)
        return v1.NewSessionResponse(
            session_id=session.id, modes=_modes(session), config_options=_options(session), meta=meta
        )

    async def _load_session(self, params: v1.LoadSessionRequest, request: IncomingRequest) -> v1.LoadSessionResponse:
        del request
        cwd, directories, servers = await asyncio.to_thread(_check_place, params)
        instructions = self._check_system_prompt(params.system_prompt)
        session = await self._sessions.bring_back(params.session_id, cwd, directories, instructions, with_replay=True)
        session.show_notices()
        meta = self._introduce(session, servers)
        return v1.LoadSessionResponse(modes=_modes(session), config_options=_options(session), meta=meta)

    async def _resume_session(
        self, params: v1.ResumeSessionRequest, request: IncomingRequest
    ) -> v1.ResumeSessionResponse:
        del request
        cwd, directories, servers = await asyncio.to_thread(_check_place, params)
        instructions = self._check_system_prompt(params.system_prompt)
        session = await self._sessions.bring_back(params.session_id, cwd, directories, instructions, with_replay=False)
        meta = self._introduce(session, servers)
        return v1.ResumeSessionResponse(modes=_modes(session), config_options=_options(session), meta=meta)

    async def _fork_session(self, params: v1.ForkSessionRequest, request: IncomingRequest) -> v1.ForkSessionResponse:
        del request
        cwd, directories, servers = await asyncio.to_thread(_check_place, params)
        instructions = self._check_system_prompt(params.system_prompt)
        wanted = read_fork_wish(params.meta)
        point = None if wanted is None else await self._sessions.find_fork_point(params.session_id, wanted)
        session = await self._sessions.fork(params.session_id, cwd, directories, instructions, point=point)
        meta = self._introduce(session, servers)
        if point is not None:
            meta = {**(meta or {}), FORK_KEY: {"turns": point.turns}}
        return v1.ForkSessionResponse(
            session_id=session.id, modes=_modes(session), config_options=_options(session), meta=meta
        )

    async def _list_sessions(self, params: v1.ListSessionsRequest, request: IncomingRequest) -> v1.ListSessionsResponse:
        del request
        if params.cwd is not None:
            check_absolute(params.cwd)
        try:
            page = await self._store.page(params.cwd, params.cursor, archived=_archive_filter(params.archived))
        except BadCursor as error:
            raise InvalidParams("params.cursor", str(error)) from None
        return v1.ListSessionsResponse(
            sessions=[_info(summary) for summary in page.sessions], next_cursor=page.next_cursor
        )

    async def _close_session(self, params: v1.CloseSessionRequest, request: IncomingRequest) -> v1.CloseSessionResponse:
        del request
        await self._sessions.close(params.session_id)
        return v1.CloseSessionResponse()

    async def _delete_session(
        self, params: v1.DeleteSessionRequest, request: IncomingRequest
    ) -> v1.DeleteSessionResponse:
        del request
        await self._sessions.delete(params.session_id)
        return v1.DeleteSessionResponse()

    async def _set_title(
        self, params: v1.SetSessionTitleRequest, request: IncomingRequest
    ) -> v1.SetSessionTitleResponse:
        del request
        title = one_line(params.title.strip(), MAX_TITLE)
        if not title:
            raise InvalidParams("params.title", "the title is empty; give it at least one character that can be seen")
        await self._sessions.set_title(params.session_id, title)
        return v1.SetSessionTitleResponse(title=title)

    async def _archive_session(
        self, params: v1.ArchiveSessionRequest, request: IncomingRequest
    ) -> v1.ArchiveSessionResponse:
        del request
        await self._sessions.archive(params.session_id)
        return v1.ArchiveSessionResponse()

    async def _unarchive_session(
        self, params: v1.UnarchiveSessionRequest, request: IncomingRequest
    ) -> v1.UnarchiveSessionResponse:
        del request
        await self._sessions.unarchive(params.session_id)
        return v1.UnarchiveSessionResponse()

    async def _tell_status(self, params: v1.SessionStatusRequest, request: IncomingRequest) -> v1.SessionStatusResponse:
        del request
        is_live = await self._sessions.is_live(params.session_id)
        return v1.SessionStatusResponse(status="open" if is_live else "saved")

    # ── in a session ────────────────────────────────────────────────────────────────────────────

    async def _set_mode(self, params: v1.SetSessionModeRequest, request: IncomingRequest) -> v1.SetSessionModeResponse:
        del request
        session = await self._sessions.ready(params.session_id)
        await self._set(session, MODE, session.settings.check_mode(params.mode_id))
        return v1.SetSessionModeResponse()

    async def _set_config_option(
        self, params: v1.SetSessionConfigOptionRequest, request: IncomingRequest
    ) -> v1.SetSessionConfigOptionResponse:
        del request
        session = await self._sessions.ready(params.session_id)
        await self._set(session, params.config_id, session.settings.check(params))
        return v1.SetSessionConfigOptionResponse(config_options=session.settings.show())

    async def _set(self, session: Session, option: str, value: str | bool) -> None:
        await self._hooks.change(session, option, value)
        await session.set_option(option, value)

    async def _prompt(self, params: v1.PromptRequest, request: IncomingRequest) -> v1.PromptResponse:
        session = await self._sessions.ready(params.session_id)
        if not self._hooks.check(session, params.prompt):
            self._check_prompt(params.prompt)
        runner = TurnRunner(session, self._program, self._commands, params.prompt, params.meta)
        with session.slot.hold(session.id, runner):
            request.on_cancel = runner.cancel
            await start_telemetry()
            return await runner.run()

    def _check_prompt(self, prompt: Sequence[v1.ContentBlock]) -> None:
        for position, block in enumerate(prompt):
            kind = CONTENT_KINDS.get(type(block))
            if kind is not None and kind not in self._takes:
                raise InvalidParams(
                    f"params.prompt[{position}].type",
                    f"this agent takes no {kind} content, as its capabilities say; leave it out",
                    expected="content that the agent's promptCapabilities name",
                )

    def _cancel(self, params: v1.CancelNotification) -> None:
        session = self._sessions.find(params.session_id)
        if session is None:
            _log.warning("session/cancel for a session that is not live was ignored")
        else:
            session.cancel()

    async def _cancel_call(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        """Stop one tool call: the extension by which a client of version 2 reaches `tool_call/cancel`."""
        del request
        wanted = decode_cancelled_call(params)
        turn = self._sessions.get(wanted.session_id).slot.turn
        if turn is None or not turn.cancel_call(wanted.tool_call_id):
            raise InvalidParams(
                "params.toolCallId", "no call of this id runs and can be cancelled alone; session/cancel ends the turn"
            )
        return {}

    async def _cancel_terminal(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        """Stop one command: the extension by which a client of version 2 reaches `terminal/cancel`."""
        del request
        wanted = decode_cancelled_terminal(params)
        if not self._sessions.get(wanted.session_id).workspace.commands.cancel(wanted.terminal_id):
            raise InvalidParams(
                "params.terminalId", "no command runs in a terminal of this id; session/cancel ends the turn"
            )
        return {}

    async def _take_callback(self, params: Any, request: IncomingRequest) -> dict[str, Any]:
        """Take what a browser brought to the client, for the login that waits for it."""
        del request
        return {"taken": self._callbacks.take(params)}

    def _check_system_prompt(self, given: v1.SystemPrompt | None) -> v1.SystemPrompt | None:
        """Return the instructions of the client if the program takes them as they are; raises InvalidParams."""
        if given is None:
            return None
        offered = self._program.system_prompt
        if offered is None:
            raise InvalidParams("params.systemPrompt", "this agent takes no system prompt, as its capabilities say")
        modes = ["append", "override"] if offered == "override" else ["append"]
        if given.mode not in modes:
            expected = " or ".join(modes)
            problem = f"there is no mode {given.mode!r} of a system prompt; expected {expected}"
            raise InvalidParams("params.systemPrompt.mode", problem, expected=expected)
        if not given.content:
            raise InvalidParams("params.systemPrompt.content", "the system prompt is empty; leave systemPrompt out")
        for position, block in enumerate(given.content):
            if not isinstance(block, v1.TextContent):
                place = f"params.systemPrompt.content[{position}].type"
                raise InvalidParams(place, "a system prompt is text", expected="text")
        return given

    def _introduce(self, session: Session, servers: Sequence[ClientServer]) -> dict[str, Any] | None:
        """Let its servers connect, and return their states; tell the client the commands.

        That is told once the client has been told of the session: on the next tick.
        """

        def send_commands() -> None:
            session.updates.send_unlogged(self._commands.update(session))

        asyncio.get_running_loop().call_soon(send_commands)
        return session.mcp.start(servers, send_commands)


def _modes(session: Session) -> v1.SessionModeState | None:
    return session.settings.show_modes()


def _options(session: Session) -> list[v1.SessionConfigOption] | None:
    return session.settings.show() or None


def _check_place(
    params: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest,
) -> tuple[str, list[str], list[ClientServer]]:
    """Return where the session is to work, and with which servers; looks at the disk. Raises InvalidParams."""
    servers = [
        ClientServer(from_protocol(server), includes_of(server.meta, f"params.mcpServers[{position}]"))
        for position, server in enumerate(params.mcp_servers or [])
    ]
    return check_cwd(params.cwd), check_directories(params.additional_directories or []), servers


def _archive_filter(given: str | None) -> ArchiveFilter:
    """Return the filter of a list; raises InvalidParams for one that there is not."""
    match given:
        case None | "exclude":
            return "exclude"
        case "include" | "only":
            return given
        case _:
            known = ", ".join(get_args(ArchiveFilter))
            raise InvalidParams("params.archived", f"there is no filter {given!r}; expected one of {known}")


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
