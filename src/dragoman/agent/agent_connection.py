"""One connection of an agent: the end that an ACP client meets.

`initialize` is answered before anything else is imported: sessions and their store come with the first request that
needs them.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman.errors import ErrorCode, InvalidParams, MethodNotFound, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.notice import VOID
from dragoman.wire import IncomingRequest, Transport

if TYPE_CHECKING:
    from dragoman.agent.program import Authenticator
    from dragoman.agent.requests import SessionHandlers

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
"""The capabilities of every agent of the kit; those for content and for logging out are the program's."""


class ConnectedProgram(Protocol):
    """The parts of a program that are needed before the first session."""

    info: v1.Implementation

    @property
    def find_auth(self) -> "Callable[[], Authenticator | None]":
        """Is called at `initialize`, so it has to be quick."""
        ...

    @property
    def find_takes(self) -> Callable[[], Collection[str]]:
        """Is called at `initialize` as well."""
        ...


class AgentConnection:
    """Serves one client; `make_handlers` is called when the first session is asked for."""

    def __init__(
        self,
        transport: Transport,
        program: ConnectedProgram,
        make_handlers: "Callable[[Connection, v1.InitializeRequest, frozenset[str]], SessionHandlers]",
    ) -> None:
        self._program = program
        self._make_handlers = make_handlers
        self._auth: Authenticator | None = None
        self._takes: frozenset[str] = frozenset()
        self._request: v1.InitializeRequest | None = None
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
        if self._request is None and request.method != methods.INITIALIZE.name:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"{request.method} came before initialize; send initialize first")

    async def _initialize(self, params: v1.InitializeRequest, request: IncomingRequest) -> v1.InitializeResponse:
        del request
        self._request = params
        self._auth = self._program.find_auth()
        self._takes = frozenset(self._program.find_takes())
        return v1.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,  # the only one that we speak, so it is the answer to any
            agent_info=self._program.info,
            agent_capabilities=self._capabilities(),
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

    def _capabilities(self) -> v1.AgentCapabilities:
        prompt = v1.PromptCapabilities(
            image="image" in self._takes, audio="audio" in self._takes, embedded_context=True
        )
        capabilities = msgspec.structs.replace(CAPABILITIES, prompt_capabilities=prompt)
        if self._auth is None or not self._auth.can_log_out:
            return capabilities
        auth = v1.AgentAuthCapabilities(logout=v1.LogoutCapabilities())
        return msgspec.structs.replace(capabilities, auth=auth)

    def _route_sessions(self, routes: Routes) -> None:
        request = self._request or v1.InitializeRequest(protocol_version=PROTOCOL_VERSION)
        self._handlers = self._make_handlers(self._connection, request, self._takes)
        self._handlers.register(routes)
