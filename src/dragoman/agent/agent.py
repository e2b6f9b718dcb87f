"""The agent: what an ACP client meets when it starts `dragoman agent`.

`initialize` is answered before anything else is imported: sessions, their store and their models come with the
first request that needs them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.routes import Routes
from dragoman.wire import IncomingRequest, Transport

if TYPE_CHECKING:
    from dragoman.agent.handlers import SessionHandlers
    from dragoman.agent.setup import Setup
    from dragoman.store import Store

PROTOCOL_VERSION = 1

CAPABILITIES = v1.AgentCapabilities(
    load_session=True,
    prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
    session_capabilities=v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        delete=v1.SessionDeleteCapabilities(),
        fork=v1.SessionForkCapabilities(),
        additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
    ),
)
"""What works, and nothing else."""


class Agent:
    """Serves one client over one connection; store and setup are made when the first session needs them."""

    def __init__(
        self, transport: Transport, open_store: "Callable[[], Store]", make_setup: "Callable[[], Setup]"
    ) -> None:
        self._open_store = open_store
        self._make_setup = make_setup
        self._client: v1.InitializeRequest | None = None
        self._handlers: SessionHandlers | None = None
        routes = Routes("agent", gate=self._check_initialized, on_demand=self._route_sessions)
        routes.on_request(methods.INITIALIZE, self._initialize)
        routes.on_request(methods.AUTHENTICATE, self._authenticate)
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
        self._client = params
        return v1.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,  # the only one that we speak, so it is the answer to any
            agent_info=v1.Implementation(name="dragoman", title="Dragoman", version=__version__),
            agent_capabilities=CAPABILITIES,
            auth_methods=[],
        )

    async def _authenticate(self, params: v1.AuthenticateRequest, request: IncomingRequest) -> v1.AuthenticateResponse:
        del request
        raise InvalidParams("params.methodId", f"{params.method_id!r} was not offered; this agent needs no login")

    def _route_sessions(self, routes: Routes) -> None:
        from dragoman.agent.handlers import SessionHandlers

        client = self._client.client_capabilities if self._client else v1.ClientCapabilities()
        self._handlers = SessionHandlers(self._connection, self._open_store(), self._make_setup(), client)
        self._handlers.register(routes)
