"""The agent: the end of the connection that an ACP client meets when it starts `dragoman agent`.

`initialize` is answered before anything else is imported: sessions, their store and their models come with the
first request that needs them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman import __version__
from dragoman.errors import ErrorCode, InvalidParams, MethodNotFound, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.notice import VOID
from dragoman.wire import IncomingRequest, Transport

if TYPE_CHECKING:
    from dragoman.assistant.auth import Auth
    from dragoman.assistant.handlers import SessionHandlers
    from dragoman.assistant.setup import AgentSetup
    from dragoman.store import Store

PROTOCOL_VERSION = 1

CAPABILITIES = v1.AgentCapabilities(
    load_session=True,
    mcp_capabilities=v1.McpCapabilities(http=True, sse=True, acp=True),
    session_capabilities=v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        delete=v1.SessionDeleteCapabilities(),
        fork=v1.SessionForkCapabilities(),
        additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
    ),
    meta={"dragoman/mcp": {"add": "_dragoman/mcp/add", "remove": "_dragoman/mcp/remove"}, VOID: True},
)
"""The capabilities that hold for any model."""


class ConfiguredModel(msgspec.Struct, frozen=True):
    """The facts about the first model that are known before the first session."""

    auth: "Auth | None" = None
    """The login that it needs, if it needs one."""
    takes: frozenset[str] = frozenset()
    """The kinds of content that it can be given beyond text, as in `Model.takes`."""


class Agent:
    """Serves one client over one connection; store and setup are made when the first session needs them.

    `find_model` is asked at `initialize`, so it has to be quick: nothing heavy is imported for it. A session may have
    another model, by a project's agent file or by choice; a prompt that this one cannot be given is then refused.
    """

    def __init__(
        self,
        transport: Transport,
        open_store: "Callable[[], Store]",
        make_setup: "Callable[[], AgentSetup]",
        find_model: Callable[[], ConfiguredModel] = ConfiguredModel,
    ) -> None:
        self._open_store = open_store
        self._make_setup = make_setup
        self._find_model = find_model
        self._auth: Auth | None = None
        self._client: v1.ClientCapabilities | None = None
        self._handlers: SessionHandlers | None = None
        routes = Routes("agent", gate=self._check_initialized, on_demand=self._route_sessions)
        routes.on_request(methods.INITIALIZE, self._initialize)
        routes.on_request(methods.AUTHENTICATE, self._authenticate)
        routes.on_request(methods.LOGOUT, self._log_out)
        self._connection = Connection(transport, routes)

    async def serve(self) -> None:
        """Serve until the client is gone."""
        async with self._connection as connection:
            try:
                await connection.wait_ended()
            finally:
                if self._handlers is not None:
                    await self._handlers.close()

    def _check_initialized(self, request: IncomingRequest) -> None:
        if self._client is None and request.method != methods.INITIALIZE.name:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"{request.method} came before initialize; send initialize first")

    async def _initialize(self, params: v1.InitializeRequest, request: IncomingRequest) -> v1.InitializeResponse:
        del request
        self._client = params.client_capabilities
        model = self._find_model()
        self._auth = model.auth
        return v1.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,  # the only one that we speak, so it is the answer to any
            agent_info=v1.Implementation(name="dragoman", title="Dragoman", version=__version__),
            agent_capabilities=self._capabilities(model),
            auth_methods=self._auth.offer(params.client_capabilities) if self._auth else [],
        )

    async def _authenticate(self, params: v1.AuthenticateRequest, request: IncomingRequest) -> v1.AuthenticateResponse:
        del request
        if self._auth is None:
            raise InvalidParams("params.methodId", f"{params.method_id!r} was not offered; this agent needs no login")
        self._auth.authenticate(params.method_id)
        return v1.AuthenticateResponse()

    async def _log_out(self, params: v1.LogoutRequest, request: IncomingRequest) -> v1.LogoutResponse:
        del params
        if self._auth is None or not self._auth.can_log_out:
            raise MethodNotFound(request.method)
        self._auth.log_out()
        return v1.LogoutResponse()

    def _capabilities(self, model: ConfiguredModel) -> v1.AgentCapabilities:
        prompt = v1.PromptCapabilities(
            image="image" in model.takes, audio="audio" in model.takes, embedded_context=True
        )
        capabilities = msgspec.structs.replace(CAPABILITIES, prompt_capabilities=prompt)
        if model.auth is None or not model.auth.can_log_out:
            return capabilities
        auth = v1.AgentAuthCapabilities(logout=v1.LogoutCapabilities())
        return msgspec.structs.replace(capabilities, auth=auth)

    def _route_sessions(self, routes: Routes) -> None:
        from dragoman.assistant.handlers import SessionHandlers

        client = self._client or v1.ClientCapabilities()
        self._handlers = SessionHandlers(self._connection, self._open_store(), self._make_setup(), client, self._auth)
        self._handlers.register(routes)
