"""The agent: what an ACP client meets when it starts `dragoman agent`."""

import logging
from collections.abc import Callable

from dragoman import __version__
from dragoman.agent.models.model import Model, ModelFailure
from dragoman.agent.session import Session, check_cwd
from dragoman.agent.turn import Turn
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import (
    AUTHENTICATE,
    INITIALIZE,
    SESSION_CANCEL,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_UPDATE,
)
from dragoman.protocol.routes import Routes
from dragoman.wire import IncomingRequest, Transport

PROTOCOL_VERSION = 1

_log = logging.getLogger("dragoman.agent")


class Agent:
    """Serves one client over one connection; `load_model` is called when the first session needs it."""

    def __init__(self, transport: Transport, load_model: Callable[[], Model]) -> None:
        self._load_model = load_model
        self._model: Model | None = None
        self._initialized = False
        self._sessions: dict[str, Session] = {}
        routes = Routes("agent", gate=self._check_initialized)
        routes.on_request(INITIALIZE, self._initialize)
        routes.on_request(AUTHENTICATE, self._authenticate)
        routes.on_request(SESSION_NEW, self._new_session)
        routes.on_request(SESSION_PROMPT, self._prompt)
        routes.on_notification(SESSION_CANCEL, self._cancel)
        self._connection = Connection(transport, routes)

    async def serve(self) -> None:
        """Serve until the client is gone."""
        async with self._connection as connection:
            await connection.wait_ended()

    def _check_initialized(self, request: IncomingRequest) -> None:
        if not self._initialized and request.method != INITIALIZE.name:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"{request.method} came before initialize; send initialize first")

    async def _initialize(self, params: v1.InitializeRequest, request: IncomingRequest) -> v1.InitializeResponse:
        del params, request  # there is one version that we speak, so it is the answer to any
        self._initialized = True
        return v1.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=v1.Implementation(name="dragoman", title="Dragoman", version=__version__),
            agent_capabilities=v1.AgentCapabilities(),
            auth_methods=[],
        )

    async def _authenticate(self, params: v1.AuthenticateRequest, request: IncomingRequest) -> v1.AuthenticateResponse:
        del request
        raise InvalidParams("params.methodId", f"{params.method_id!r} was not offered; this agent needs no login")

    async def _new_session(self, params: v1.NewSessionRequest, request: IncomingRequest) -> v1.NewSessionResponse:
        del request
        cwd = check_cwd(params.cwd)
        _check_mcp_servers(params.mcp_servers)
        if self._model is None:
            self._model = self._load_model()
        session = Session(cwd, self._model.start())
        self._sessions[session.id] = session
        return v1.NewSessionResponse(session_id=session.id)

    async def _prompt(self, params: v1.PromptRequest, request: IncomingRequest) -> v1.PromptResponse:
        session = self._session(params.session_id)
        _check_prompt(params.prompt)

        async def send(update: v1.SessionUpdate) -> None:
            await self._connection.notify(SESSION_UPDATE, v1.SessionNotification(session_id=session.id, update=update))

        turn = Turn(session.conversation, send)
        session.begin(turn)
        request.on_cancel = turn.cancel
        try:
            return await turn.run()
        except ModelFailure as error:
            raise RpcError(ErrorCode.INTERNAL_ERROR, f"the model failed: {error}") from error
        finally:
            session.turn = None

    def _cancel(self, params: v1.CancelNotification) -> None:
        session = self._sessions.get(params.session_id)
        if session is None:
            _log.warning("session/cancel for a session that is not here was ignored")
        else:
            session.cancel()

    def _session(self, session_id: str) -> Session:
        try:
            return self._sessions[session_id]
        except KeyError:
            problem = "no such session here; list or create one"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": problem}) from None


def _check_mcp_servers(servers: list[v1.McpServer]) -> None:
    for position, server in enumerate(servers):
        if not isinstance(server, v1.McpServerStdio):
            raise InvalidParams(
                f"params.mcpServers[{position}].type",
                "this agent takes stdio servers only, as its mcpCapabilities say",
                expected="a stdio server",
            )


def _check_prompt(prompt: list[v1.ContentBlock]) -> None:
    for position, block in enumerate(prompt):
        if not isinstance(block, v1.TextContent | v1.ResourceLink):
            raise InvalidParams(
                f"params.prompt[{position}].type",
                "this agent takes text and resource links only, as its promptCapabilities say",
                expected='"text" or "resource_link"',
            )
