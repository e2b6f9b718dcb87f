"""One connection of an agent to an ACP client.

`initialize` is answered before anything else is imported. The sessions and their store are imported with the first
request that needs them.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dragoman.agent.program import AgentProgram, AuthReporter, NoAuth
from dragoman.errors import ErrorCode, InvalidParamsError, MethodNotFoundError, RpcError
from dragoman.protocol import methods, v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.extensions import CALLS, TERMINALS
from dragoman.protocol.message_name import MESSAGE_KEY
from dragoman.protocol.negotiation import AnsweringTransport, speaks_v2
from dragoman.protocol.void_message import VOID
from dragoman.wire import IncomingRequest, Transport

if TYPE_CHECKING:
    from dragoman.agent.connection.requests import SessionHandlers
    from dragoman.agent.program import Authenticator, ExtensionFunction, SystemPromptMode

PROTOCOL_VERSION = 1

_log = logging.getLogger("dragoman.agent")

_MISNAMED_CAPABILITIES = (
    "The client sent its capabilities as `capabilities`, which ACP 1 calls `clientCapabilities`, so none of them is "
    "used. Rename the field in the initialize request."
)

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
"""The capabilities of every agent of the kit. The program adds its content types and whether it can log out."""


class _CapabilityMembers(msgspec.Struct, frozen=True):
    """The two names that `initialize` has for the client's capabilities, depending on the protocol version."""

    capabilities: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    client_capabilities: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        name="clientCapabilities", default=msgspec.UNSET
    )

    @property
    def are_misnamed(self) -> bool:
        return self.capabilities is not msgspec.UNSET and self.client_capabilities is msgspec.UNSET


class ServedConnection:
    """Serves one client. `make_handlers` is called for the first request about sessions."""

    def __init__(
        self,
        transport: Transport,
        program: AgentProgram,
        make_handlers: "Callable[[Connection, v1.InitializeRequest, frozenset[str]], SessionHandlers]",
    ) -> None:
        self._program = program
        self._make_handlers = make_handlers
        self._auth: Authenticator = NoAuth()
        self._sent_status: v1.AuthStatusResponse | None = None
        """The login state that the client received last. None if it never asked."""
        self._content_types: frozenset[str] = frozenset()
        self._request: v1.InitializeRequest | None = None
        self._notice = ""
        """A mistake in the client's `initialize`, to be shown in its first session."""
        self._handlers: SessionHandlers | None = None
        routes = Routes("agent", gate=self._check_initialized, on_demand=self._route_sessions)
        routes.on_incoming_request(methods.INITIALIZE, self._initialize)
        routes.on_request(methods.AUTHENTICATE, self._authenticate)
        routes.on_request(methods.LOGOUT, self._log_out)
        routes.on_request(methods.AUTH_STATUS, self._auth_status)
        for name, function in program.extensions.items():
            routes.on_extension(name, _extension(name, function))
        self._connection = Connection(AnsweringTransport(transport) if speaks_v2() else transport, routes)

    async def serve(self) -> None:
        """Serve until the client disconnects."""
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
        self._request = params
        members = msgspec.json.decode(request.params, type=_CapabilityMembers)
        if params.protocol_version == 1 and members.are_misnamed:
            self._notice = _MISNAMED_CAPABILITIES
            _log.warning("%s", self._notice)
        self._auth = self._program.find_auth() or NoAuth()
        self._content_types = frozenset(self._program.find_content_types())
        return v1.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,  # for a version 2 client, the transport translates it
            agent_info=self._program.info,
            agent_capabilities=self._capabilities(),
            auth_methods=self._auth.offer(params.client_capabilities),
        )

    async def _authenticate(self, params: v1.AuthenticateRequest) -> v1.AuthenticateResponse:
        self._auth.authenticate(params.method_id)
        await self._notify_changed_status()
        return v1.AuthenticateResponse()

    async def _log_out(self, _params: v1.LogoutRequest) -> v1.LogoutResponse:
        if not self._auth.can_log_out:
            raise MethodNotFoundError(methods.LOGOUT.name)
        self._auth.log_out()
        await self._notify_changed_status()
        return v1.LogoutResponse()

    async def _auth_status(self, _params: v1.AuthStatusRequest) -> v1.AuthStatusResponse:
        self._sent_status = self._status()
        return self._sent_status

    async def _notify_changed_status(self) -> None:
        """Notify a client of a changed login state, if it has asked for the state before."""
        status = self._status()
        if self._sent_status is not None and status != self._sent_status:
            self._sent_status = status
            update = v1.AuthStatusUpdateNotification(state=status.state, accounts=status.accounts, meta=status.meta)
            await self._connection.notify(methods.AUTH_STATUS_UPDATE, update)

    def _status(self) -> v1.AuthStatusResponse:
        return self._auth.status() if isinstance(self._auth, AuthReporter) else v1.AuthStatusResponse(state="unknown")

    def _capabilities(self) -> v1.AgentCapabilities:
        prompt = v1.PromptCapabilities(
            image="image" in self._content_types, audio="audio" in self._content_types, embedded_context=True
        )
        capabilities = msgspec.structs.replace(
            CAPABILITIES,
            prompt_capabilities=prompt,
            meta={**(CAPABILITIES.meta or {}), **self._program.meta},
            session_capabilities=msgspec.structs.replace(
                CAPABILITIES.session_capabilities, system_prompt=_system_prompt(self._program.system_prompt)
            ),
        )
        logout = v1.LogoutCapabilities() if self._auth.can_log_out else None
        auth = v1.AgentAuthCapabilities(status=v1.AuthStatusCapabilities(), logout=logout)
        return msgspec.structs.replace(capabilities, auth=auth)

    def _route_sessions(self, routes: Routes) -> None:
        request = self._request or v1.InitializeRequest(protocol_version=PROTOCOL_VERSION)
        self._handlers = self._make_handlers(self._connection, request, self._content_types)
        self._handlers.notice = self._notice
        self._handlers.register(routes)


def _extension(name: str, function: "ExtensionFunction") -> Callable[[Any], Any]:
    async def answer(params: Any) -> Any:
        if not isinstance(params, dict):
            raise InvalidParamsError("params", f"{name} takes an object", expected="an object")
        return await function(cast("dict[str, Any]", params))

    return answer


def _system_prompt(mode: "SystemPromptMode | None") -> v1.SessionSystemPromptCapabilities | None:
    if mode is None:
        return None
    override = v1.SessionSystemPromptOverrideCapabilities() if mode == "override" else None
    others = v1.SessionSystemPromptModeCapabilities(override=override) if override else None
    return v1.SessionSystemPromptCapabilities(mode=others)
