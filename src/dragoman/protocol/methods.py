"""The methods of ACP version 1: the side that handles each, its types, and the capability that it requires."""

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec

from dragoman.protocol import v1

Side = Literal["agent", "client", "both", "protocol", "proxy"]
Kind = Literal["request", "notification"]
P = TypeVar("P")
R = TypeVar("R")


class Method(msgspec.Struct, Generic[P, R], frozen=True, eq=False):
    """One method. `side` handles it, and `capability` is the dotted path that must be advertised for its use."""

    name: str
    side: Side
    kind: Kind
    params: Any
    result: Any = None
    capability: str | None = None
    stable: bool = True


def _request(
    name: str, side: Side, params: type[P], result: type[R], capability: str | None = None, *, stable: bool = True
) -> Method[P, R]:
    return Method(name, side, "request", params, result, capability, stable)


def _notification(
    name: str, side: Side, params: type[P], capability: str | None = None, *, stable: bool = True
) -> Method[P, None]:
    return Method(name, side, "notification", params, None, capability, stable)


_SESSION = "agentCapabilities.sessionCapabilities"
_PROVIDERS = "agentCapabilities.providers"
_MCP_OVER_ACP = "agentCapabilities.mcpCapabilities.acp"
_FS = "clientCapabilities.fs"
_TERMINAL = "clientCapabilities.terminal"
_ELICITATION = "clientCapabilities.elicitation"

INITIALIZE = _request("initialize", "agent", v1.InitializeRequest, v1.InitializeResponse)
AUTHENTICATE = _request("authenticate", "agent", v1.AuthenticateRequest, v1.AuthenticateResponse)
LOGOUT = _request("logout", "agent", v1.LogoutRequest, v1.LogoutResponse, "agentCapabilities.auth.logout")
SESSION_NEW = _request("session/new", "agent", v1.NewSessionRequest, v1.NewSessionResponse)
SESSION_LOAD = _request(
    "session/load", "agent", v1.LoadSessionRequest, v1.LoadSessionResponse, "agentCapabilities.loadSession"
)
SESSION_LIST = _request("session/list", "agent", v1.ListSessionsRequest, v1.ListSessionsResponse, f"{_SESSION}.list")
SESSION_DELETE = _request(
    "session/delete", "agent", v1.DeleteSessionRequest, v1.DeleteSessionResponse, f"{_SESSION}.delete"
)
SESSION_FORK = _request(
    "session/fork", "agent", v1.ForkSessionRequest, v1.ForkSessionResponse, f"{_SESSION}.fork", stable=False
)
SESSION_RESUME = _request(
    "session/resume", "agent", v1.ResumeSessionRequest, v1.ResumeSessionResponse, f"{_SESSION}.resume"
)
SESSION_CLOSE = _request("session/close", "agent", v1.CloseSessionRequest, v1.CloseSessionResponse, f"{_SESSION}.close")
SESSION_SET_MODE = _request("session/set_mode", "agent", v1.SetSessionModeRequest, v1.SetSessionModeResponse)
SESSION_SET_CONFIG_OPTION: Method[v1.SetSessionConfigOptionRequest, v1.SetSessionConfigOptionResponse] = Method(
    "session/set_config_option", "agent", "request", v1.SetSessionConfigOptionRequest, v1.SetSessionConfigOptionResponse
)
SESSION_PROMPT = _request("session/prompt", "agent", v1.PromptRequest, v1.PromptResponse)
SESSION_CANCEL = _notification("session/cancel", "agent", v1.CancelNotification)
PROVIDERS_LIST = _request(
    "providers/list", "agent", v1.ListProvidersRequest, v1.ListProvidersResponse, _PROVIDERS, stable=False
)
PROVIDERS_SET = _request(
    "providers/set", "agent", v1.SetProviderRequest, v1.SetProviderResponse, _PROVIDERS, stable=False
)
PROVIDERS_DISABLE = _request(
    "providers/disable", "agent", v1.DisableProviderRequest, v1.DisableProviderResponse, _PROVIDERS, stable=False
)
AUTH_STATUS = _request(
    "auth/status", "agent", v1.AuthStatusRequest, v1.AuthStatusResponse, "agentCapabilities.auth.status", stable=False
)
SESSION_ARCHIVE = _request(
    "session/archive",
    "agent",
    v1.ArchiveSessionRequest,
    v1.ArchiveSessionResponse,
    f"{_SESSION}.archive",
    stable=False,
)
SESSION_UNARCHIVE = _request(
    "session/unarchive",
    "agent",
    v1.UnarchiveSessionRequest,
    v1.UnarchiveSessionResponse,
    f"{_SESSION}.archive",
    stable=False,
)
SESSION_STATUS = _request(
    "session/status", "agent", v1.SessionStatusRequest, v1.SessionStatusResponse, f"{_SESSION}.status", stable=False
)
SESSION_SET_TITLE = _request(
    "session/set_title",
    "agent",
    v1.SetSessionTitleRequest,
    v1.SetSessionTitleResponse,
    f"{_SESSION}.title",
    stable=False,
)

SESSION_REQUEST_PERMISSION = _request(
    "session/request_permission", "client", v1.RequestPermissionRequest, v1.RequestPermissionResponse
)
SESSION_UPDATE = _notification("session/update", "client", v1.SessionNotification)
FS_READ_TEXT_FILE = _request(
    "fs/read_text_file", "client", v1.ReadTextFileRequest, v1.ReadTextFileResponse, f"{_FS}.readTextFile"
)
FS_WRITE_TEXT_FILE = _request(
    "fs/write_text_file", "client", v1.WriteTextFileRequest, v1.WriteTextFileResponse, f"{_FS}.writeTextFile"
)
TERMINAL_CREATE = _request("terminal/create", "client", v1.CreateTerminalRequest, v1.CreateTerminalResponse, _TERMINAL)
TERMINAL_OUTPUT = _request("terminal/output", "client", v1.TerminalOutputRequest, v1.TerminalOutputResponse, _TERMINAL)
TERMINAL_RELEASE = _request(
    "terminal/release", "client", v1.ReleaseTerminalRequest, v1.ReleaseTerminalResponse, _TERMINAL
)
TERMINAL_WAIT_FOR_EXIT = _request(
    "terminal/wait_for_exit", "client", v1.WaitForTerminalExitRequest, v1.WaitForTerminalExitResponse, _TERMINAL
)
TERMINAL_KILL = _request("terminal/kill", "client", v1.KillTerminalRequest, v1.KillTerminalResponse, _TERMINAL)
ELICITATION_CREATE: Method[v1.CreateElicitationRequest, v1.CreateElicitationResponse] = Method(
    "elicitation/create", "client", "request", v1.CreateElicitationRequest, v1.CreateElicitationResponse, _ELICITATION
)
ELICITATION_COMPLETE = _notification(
    "elicitation/complete", "client", v1.CompleteElicitationNotification, f"{_ELICITATION}.url"
)
AUTH_STATUS_UPDATE = _notification(
    "auth/status_update", "client", v1.AuthStatusUpdateNotification, "agentCapabilities.auth.status", stable=False
)
MCP_MESSAGE: Method[v1.MessageMcpRequest, v1.MessageMcpResponse] = Method(
    "mcp/message", "client", "request", v1.MessageMcpRequest, v1.MessageMcpResponse, _MCP_OVER_ACP, stable=False
)
MCP_NOTIFICATION = _notification("mcp/message", "agent", v1.MessageMcpNotification, _MCP_OVER_ACP, stable=False)

PROXY_INITIALIZE = _request(
    "proxy/initialize", "proxy", v1.InitializeProxyRequest, v1.InitializeProxyResponse, stable=False
)
PROXY_SUCCESSOR: Method[v1.ProxySuccessorRequest, v1.ProxySuccessorResponse] = Method(
    "proxy/successor", "proxy", "request", v1.ProxySuccessorRequest, v1.ProxySuccessorResponse, stable=False
)
PROXY_SUCCESSOR_NOTIFICATION = _notification("proxy/successor", "proxy", v1.ProxySuccessorNotification, stable=False)

CANCEL_REQUEST = _notification("$/cancel_request", "protocol", v1.CancelRequestNotification)

_ALL: list[Method[Any, Any]] = [each for each in globals().values() if isinstance(each, Method)]

REQUESTS: Mapping[str, Method[Any, Any]] = {each.name: each for each in _ALL if each.kind == "request"}
"""The requests by name."""

NOTIFICATIONS: Mapping[str, Method[Any, Any]] = {each.name: each for each in _ALL if each.kind == "notification"}
"""The notifications by name."""

METHODS: Mapping[str, Method[Any, Any]] = {**NOTIFICATIONS, **REQUESTS}
"""All methods by name. `mcp/message` and `proxy/successor` are both kinds, and listed as requests."""
