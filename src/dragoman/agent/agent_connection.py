"""One connection of an agent: the end that an ACP client meets.

`initialize` is answered before anything else is imported: sessions and their store come with the first request that
needs them.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from dragoman.agent.program import AuthReporter, NoLogin
from dragoman.errors import ErrorCode, InvalidParams, MethodNotFound, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.message_name import MESSAGE_KEY
from dragoman.protocol.negotiation import AnsweringTransport, speaks_v2
from dragoman.protocol.notice import CALLS, TERMINALS, VOID
from dragoman.wire import IncomingRequest, Transport

if TYPE_CHECKING:
    from dragoman.agent.program import Authenticator, ExtensionFunction, Extensions, SystemPromptMode
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
        archive=v1.SessionArchiveCapabilities(),
        status=v1.SessionStatusCapabilities(),
        title=v1.SessionTitleCapabilities(),
        additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
    ),
    meta={
        "dragoman/mcp": {name: f"_dragoman/mcp/{name}" for name in ("add", "remove", "list", "restart")},
        CALLS: {"cancel": "_dragoman/tool_call/cancel"},
        TERMINALS: {"cancel": "_dragoman/terminal/cancel"},
        VOID: True,
        "dragoman/fork": {"before": True},
        MESSAGE_KEY: True,
    },
)
"""The capabilities of every agent of the kit; those for content and for logging out are the program's."""


class ConnectedProgram(Protocol):
    """The parts of a program that are needed before the first session."""

    info: v1.Implementation
    system_prompt: "SystemPromptMode | None"
    extensions: "Extensions"

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
        self._auth: Authenticator = NoLogin()
        self._told_status: v1.AuthStatusResponse | None = None
        """The state of the login that the client was told last; None for a client that has never asked."""
        self._takes: frozenset[str] = frozenset()
        self._request: v1.InitializeRequest | None = None
        self._handlers: SessionHandlers | None = None
        routes = Routes("agent", gate=self._check_initialized, on_demand=self._route_sessions)
        routes.on_request(methods.INITIALIZE, self._initialize)
        routes.on_request(methods.AUTHENTICATE, self._authenticate)
        routes.on_request(methods.LOGOUT, self._log_out)
        routes.on_request(methods.AUTH_STATUS, self._tell_status)
        for name, function in program.extensions.functions.items():
            routes.on_extension(name, _extension(function))
        self._connection = Connection(AnsweringTransport(transport) if speaks_v2() else transport, routes)

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
        self._auth = self._program.find_auth() or NoLogin()
        self._takes = frozenset(self._program.find_takes())
        return v1.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,  # of a client of version 2 the transport makes one of 1, and of this 2
            agent_info=self._program.info,
            agent_capabilities=self._capabilities(),
            auth_methods=self._auth.offer(params.client_capabilities),
        )

    async def _authenticate(self, params: v1.AuthenticateRequest, request: IncomingRequest) -> v1.AuthenticateResponse:
        del request
        self._auth.authenticate(params.method_id)
        await self._tell_changed_status()
        return v1.AuthenticateResponse()

    async def _log_out(self, params: v1.LogoutRequest, request: IncomingRequest) -> v1.LogoutResponse:
        del params
        if not self._auth.can_log_out:
            raise MethodNotFound(request.method)
        self._auth.log_out()
        await self._tell_changed_status()
        return v1.LogoutResponse()

    async def _tell_status(self, params: v1.AuthStatusRequest, request: IncomingRequest) -> v1.AuthStatusResponse:
        del params, request
        self._told_status = self._status()
        return self._told_status

    async def _tell_changed_status(self) -> None:
        """Tell a client that has asked for the state of the login that it is another one now."""
        status = self._status()
        if self._told_status is not None and status != self._told_status:
            self._told_status = status
            update = v1.AuthStatusUpdateNotification(state=status.state, accounts=status.accounts, meta=status.meta)
            await self._connection.notify(methods.AUTH_STATUS_UPDATE, update)

    def _status(self) -> v1.AuthStatusResponse:
        return self._auth.status() if isinstance(self._auth, AuthReporter) else v1.AuthStatusResponse(state="unknown")

    def _capabilities(self) -> v1.AgentCapabilities:
        prompt = v1.PromptCapabilities(
            image="image" in self._takes, audio="audio" in self._takes, embedded_context=True
        )
        capabilities = msgspec.structs.replace(
            CAPABILITIES,
            prompt_capabilities=prompt,
            meta={**(CAPABILITIES.meta or {}), **self._program.extensions.meta},
            session_capabilities=msgspec.structs.replace(
                CAPABILITIES.session_capabilities, system_prompt=_system_prompt(self._program.system_prompt)
            ),
        )
        logout = v1.LogoutCapabilities() if self._auth.can_log_out else None
        auth = v1.AgentAuthCapabilities(status=v1.AuthStatusCapabilities(), logout=logout)
        return msgspec.structs.replace(capabilities, auth=auth)

    def _route_sessions(self, routes: Routes) -> None:
        request = self._request or v1.InitializeRequest(protocol_version=PROTOCOL_VERSION)
        self._handlers = self._make_handlers(self._connection, request, self._takes)
        self._handlers.register(routes)


def _extension(function: "ExtensionFunction") -> Callable[[Any, IncomingRequest], Any]:
    async def answer(params: Any, request: IncomingRequest) -> Any:
        if not isinstance(params, dict):
            raise InvalidParams("params", f"{request.method} takes an object", expected="an object")
        return await function(cast("dict[str, Any]", params))

    return answer


def _system_prompt(mode: "SystemPromptMode | None") -> v1.SessionSystemPromptCapabilities | None:
    if mode is None:
        return None
    override = v1.SessionSystemPromptOverrideCapabilities() if mode == "override" else None
    others = v1.SessionSystemPromptModeCapabilities(override=override) if override else None
    return v1.SessionSystemPromptCapabilities(mode=others)
