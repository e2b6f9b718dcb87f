"""The methods of ACP version 2, a draft: the side that handles each, its types, and the capability that it requires.

A capability of version 2 is an object or absent. `capabilities.session` covers all methods that every agent with
sessions has. `auth/login` and `auth/logout` are advertised by auth methods, not by a capability.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.protocol import v2
from dragoman.protocol.methods import Kind, Method, Side

_SESSION = "agent.capabilities.session"
_AUTH = "agent.capabilities.auth"
_PROVIDERS = "agent.capabilities.providers"
_ELICITATION = "client.capabilities.elicitation"

_STABLE_REQUESTS: tuple[tuple[str, Side, Any, Any, str | None], ...] = (
    ("initialize", "agent", v2.InitializeRequest, v2.InitializeResponse, None),
    ("auth/login", "agent", v2.LoginAuthRequest, v2.LoginAuthResponse, None),
    ("auth/logout", "agent", v2.LogoutAuthRequest, v2.LogoutAuthResponse, None),
    ("session/new", "agent", v2.NewSessionRequest, v2.NewSessionResponse, _SESSION),
    ("session/list", "agent", v2.ListSessionsRequest, v2.ListSessionsResponse, _SESSION),
    ("session/resume", "agent", v2.ResumeSessionRequest, v2.ResumeSessionResponse, _SESSION),
    ("session/close", "agent", v2.CloseSessionRequest, v2.CloseSessionResponse, _SESSION),
    ("session/prompt", "agent", v2.PromptRequest, v2.PromptResponse, _SESSION),
    ("session/delete", "agent", v2.DeleteSessionRequest, v2.DeleteSessionResponse, f"{_SESSION}.delete"),
    (
        "session/set_config_option",
        "agent",
        v2.SetSessionConfigOptionRequest,
        v2.SetSessionConfigOptionResponse,
        _SESSION,
    ),
    ("tool_call/cancel", "agent", v2.CancelToolCallRequest, v2.CancelToolCallResponse, _SESSION),
    ("terminal/cancel", "agent", v2.CancelTerminalRequest, v2.CancelTerminalResponse, _SESSION),
    ("session/request_permission", "client", v2.RequestPermissionRequest, v2.RequestPermissionResponse, None),
    ("elicitation/create", "client", v2.CreateElicitationRequest, v2.CreateElicitationResponse, _ELICITATION),
)
_UNSTABLE_REQUESTS: tuple[tuple[str, Side, Any, Any, str | None], ...] = (
    ("auth/status", "agent", v2.AuthStatusRequest, v2.AuthStatusResponse, f"{_AUTH}.status"),
    ("providers/list", "agent", v2.ListProvidersRequest, v2.ListProvidersResponse, _PROVIDERS),
    ("providers/set", "agent", v2.SetProviderRequest, v2.SetProviderResponse, _PROVIDERS),
    ("providers/disable", "agent", v2.DisableProviderRequest, v2.DisableProviderResponse, _PROVIDERS),
    ("session/fork", "agent", v2.ForkSessionRequest, v2.ForkSessionResponse, f"{_SESSION}.fork"),
    ("session/archive", "agent", v2.ArchiveSessionRequest, v2.ArchiveSessionResponse, f"{_SESSION}.archive"),
    ("session/unarchive", "agent", v2.UnarchiveSessionRequest, v2.UnarchiveSessionResponse, f"{_SESSION}.archive"),
    ("session/status", "agent", v2.SessionStatusRequest, v2.SessionStatusResponse, f"{_SESSION}.status"),
    ("session/set_title", "agent", v2.SetSessionTitleRequest, v2.SetSessionTitleResponse, f"{_SESSION}.title"),
    ("mcp/message", "client", v2.MessageMcpRequest, v2.MessageMcpResponse, f"{_SESSION}.mcp.acp"),
    ("proxy/initialize", "proxy", v2.InitializeProxyRequest, v2.InitializeProxyResponse, None),
    ("proxy/successor", "proxy", v2.ProxySuccessorRequest, v2.ProxySuccessorResponse, None),
)
_STABLE_NOTIFICATIONS: tuple[tuple[str, Side, Any, None, str | None], ...] = (
    ("session/cancel", "agent", v2.CancelSessionNotification, None, _SESSION),
    ("session/update", "client", v2.UpdateSessionNotification, None, None),
    ("elicitation/complete", "client", v2.CompleteElicitationNotification, None, f"{_ELICITATION}.url"),
    ("$/cancel_request", "protocol", v2.CancelRequestNotification, None, None),
)
_UNSTABLE_NOTIFICATIONS: tuple[tuple[str, Side, Any, None, str | None], ...] = (
    ("auth/status_update", "client", v2.AuthStatusUpdateNotification, None, f"{_AUTH}.status"),
    ("mcp/message", "agent", v2.MessageMcpNotification, None, f"{_SESSION}.mcp.acp"),
    ("proxy/successor", "proxy", v2.ProxySuccessorNotification, None, None),
)


def _table(
    kind: Kind,
    stable: Iterable[tuple[str, Side, Any, Any, str | None]],
    unstable: Iterable[tuple[str, Side, Any, Any, str | None]],
) -> Mapping[str, Method[Any, Any]]:
    rows = [*((row, True) for row in stable), *((row, False) for row in unstable)]
    return {
        name: Method(name, side, kind, params, result, capability, is_stable)
        for (name, side, params, result, capability), is_stable in rows
    }


REQUESTS = _table("request", _STABLE_REQUESTS, _UNSTABLE_REQUESTS)
"""The requests by name."""

NOTIFICATIONS = _table("notification", _STABLE_NOTIFICATIONS, _UNSTABLE_NOTIFICATIONS)
"""The notifications by name."""

METHODS: Mapping[str, Method[Any, Any]] = {**NOTIFICATIONS, **REQUESTS}
"""All methods by name. `mcp/message` and `proxy/successor` are both kinds, and listed as requests."""
