"""What the agent does for each request about sessions."""

import logging
from collections.abc import Callable

from dragoman.agent.models.model import Model
from dragoman.agent.session import Session, check_cwd, check_directories
from dragoman.agent.sessions import Sessions
from dragoman.agent.turn import Turn
from dragoman.errors import BadCursor, ErrorCode, InvalidParams, ModelFailure, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.routes import Routes
from dragoman.store import Store, Summary
from dragoman.wire import IncomingRequest

_log = logging.getLogger("dragoman.agent")


class SessionHandlers:
    """Handles `session/*` for one client."""

    def __init__(
        self, connection: Connection, store: Store, load_model: Callable[[], Model], *, knows_boolean: bool
    ) -> None:
        self._store = store
        self._knows_boolean = knows_boolean
        self._sessions = Sessions(connection, store, load_model)

    def register(self, routes: Routes) -> None:
        """Take over the methods."""
        routes.on_request(methods.SESSION_NEW, self._new_session)
        routes.on_request(methods.SESSION_LOAD, self._load_session)
        routes.on_request(methods.SESSION_RESUME, self._resume_session)
        routes.on_request(methods.SESSION_FORK, self._fork_session)
        routes.on_request(methods.SESSION_LIST, self._list_sessions)
        routes.on_request(methods.SESSION_CLOSE, self._close_session)
        routes.on_request(methods.SESSION_DELETE, self._delete_session)
        routes.on_request(methods.SESSION_SET_MODE, self._set_mode)
        routes.on_request(methods.SESSION_SET_CONFIG_OPTION, self._set_config_option)
        routes.on_request(methods.SESSION_PROMPT, self._prompt)
        routes.on_notification(methods.SESSION_CANCEL, self._cancel)

    async def close(self) -> None:
        """Stop every turn and free every session, in bounded time."""
        await self._sessions.close_all()

    # ── sessions come, go and come back ─────────────────────────────────────────────────────────

    async def _new_session(self, params: v1.NewSessionRequest, request: IncomingRequest) -> v1.NewSessionResponse:
        del request
        cwd, directories = _check_place(params)
        session = self._sessions.new(cwd, directories)
        return v1.NewSessionResponse(
            session_id=session.id, modes=session.settings.modes(), config_options=self._options(session)
        )

    async def _load_session(self, params: v1.LoadSessionRequest, request: IncomingRequest) -> v1.LoadSessionResponse:
        del request
        cwd, directories = _check_place(params)
        session = await self._sessions.bring_back(params.session_id, cwd, directories, with_replay=True)
        await session.show_notices()
        return v1.LoadSessionResponse(modes=session.settings.modes(), config_options=self._options(session))

    async def _resume_session(
        self, params: v1.ResumeSessionRequest, request: IncomingRequest
    ) -> v1.ResumeSessionResponse:
        del request
        cwd, directories = _check_place(params)
        session = await self._sessions.bring_back(params.session_id, cwd, directories, with_replay=False)
        return v1.ResumeSessionResponse(modes=session.settings.modes(), config_options=self._options(session))

    async def _fork_session(self, params: v1.ForkSessionRequest, request: IncomingRequest) -> v1.ForkSessionResponse:
        del request
        cwd, directories = _check_place(params)
        session = await self._sessions.fork(params.session_id, cwd, directories)
        return v1.ForkSessionResponse(
            session_id=session.id, modes=session.settings.modes(), config_options=self._options(session)
        )

    async def _list_sessions(self, params: v1.ListSessionsRequest, request: IncomingRequest) -> v1.ListSessionsResponse:
        del request
        try:
            page = await self._store.page(params.cwd, params.cursor)
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

    # ── in a session ────────────────────────────────────────────────────────────────────────────

    async def _set_mode(self, params: v1.SetSessionModeRequest, request: IncomingRequest) -> v1.SetSessionModeResponse:
        del request
        session = self._sessions.get(params.session_id)
        session.settings.set_mode(params.mode_id)
        await self._announce_settings(session)
        return v1.SetSessionModeResponse()

    async def _set_config_option(
        self, params: v1.SetSessionConfigOptionRequest, request: IncomingRequest
    ) -> v1.SetSessionConfigOptionResponse:
        del request
        session = self._sessions.get(params.session_id)
        session.settings.set_option(params, boolean=self._knows_boolean)
        await self._announce_settings(session)
        return v1.SetSessionConfigOptionResponse(config_options=self._options(session))

    async def _announce_settings(self, session: Session) -> None:
        """Log what is set, and tell it in both ways, whichever of them the client used."""
        session.record_settings()
        await session.outlet.send(v1.CurrentModeUpdate(current_mode_id=session.settings.mode))
        await session.outlet.send(v1.ConfigOptionUpdate(config_options=self._options(session)))

    async def _prompt(self, params: v1.PromptRequest, request: IncomingRequest) -> v1.PromptResponse:
        session = self._sessions.get(params.session_id)
        _check_prompt(params.prompt)
        turn = Turn(session, self._store)
        with session.turn(turn.cancel):
            request.on_cancel = turn.cancel
            try:
                return await turn.run(params.prompt)
            except ModelFailure as error:
                raise RpcError(ErrorCode.INTERNAL_ERROR, f"the model failed: {error}") from error

    def _cancel(self, params: v1.CancelNotification) -> None:
        session = self._sessions.find(params.session_id)
        if session is None:
            _log.warning("session/cancel for a session that is not live was ignored")
        else:
            session.cancel()

    def _options(self, session: Session) -> list[v1.SessionConfigOption]:
        return session.settings.options(boolean=self._knows_boolean)


def _check_place(
    params: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest,
) -> tuple[str, list[str]]:
    """Return where the session is to work; raises InvalidParams."""
    for position, server in enumerate(params.mcp_servers or []):
        if not isinstance(server, v1.McpServerStdio):
            raise InvalidParams(
                f"params.mcpServers[{position}].type",
                "this agent takes stdio servers only, as its mcpCapabilities say",
                expected="a stdio server",
            )
    return check_cwd(params.cwd), check_directories(params.additional_directories or [])


def _check_prompt(prompt: list[v1.ContentBlock]) -> None:
    for position, block in enumerate(prompt):
        if not isinstance(block, v1.TextContent | v1.ResourceLink):
            raise InvalidParams(
                f"params.prompt[{position}].type",
                "this agent takes text and resource links only, as its promptCapabilities say",
                expected='"text" or "resource_link"',
            )


def _info(summary: Summary) -> v1.SessionInfo:
    return v1.SessionInfo(
        session_id=summary.id,
        cwd=summary.cwd,
        additional_directories=summary.additional_directories,
        title=summary.title,
        updated_at=summary.updated_at,
        meta={"dragoman/messages": summary.message_count},
    )
