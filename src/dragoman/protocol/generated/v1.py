"""The types of ACP, version 1, as msgspec structs.

Made by scripts/generate_types.py: change that, or the schema in protocol/schema, not this file.
What is marked unstable is not part of the stable schema. Some structs are frozen because they are default
values, shared by all that have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.protocol.unions import AnyOf, UnknownVariant


UInt16 = Annotated[int, Meta(ge=0, le=65535)]
UInt32 = Annotated[int, Meta(ge=0, le=4294967295)]
UInt64 = Annotated[int, Meta(ge=0)]
Int32 = Annotated[int, Meta(ge=-2147483648, le=2147483647)]
Int64 = Annotated[int, Meta(ge=-9223372036854775808, le=9223372036854775807)]


RequestId = Int64 | str | None
SessionId = str
ToolCallId = str
ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolCallStatus = Literal["pending", "in_progress", "completed", "failed"]
Role = Literal["assistant", "user"]
TerminalId = str
PermissionOptionId = str
PermissionOptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
ElicitationSchemaType = Literal["object"]
StringFormat = Literal["email", "uri", "date", "date-time"]
ElicitationId = str
McpServerAcpId = str  # unstable
McpRequestId = str  # unstable
ExtRequest = Any
ProtocolVersion = UInt16
AuthMethodId = str
ProviderId = str  # unstable
LlmProtocol = str  # unstable
AuthState = str  # unstable
SessionModeId = str
SessionConfigId = str
SessionConfigOptionCategory = str
SessionConfigValueId = str
SessionConfigGroupId = str
SessionStatus = str  # unstable
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ExtResponse = Any
ErrorCode = Int32
MessageId = str
PlanEntryPriority = Literal["high", "medium", "low"]
PlanEntryStatus = Literal["pending", "in_progress", "completed"]
PlanId = str  # unstable
NoticeSeverity = str
CompactionId = str
CompactionStatus = str
ExtNotification = Any
SystemPromptMode = str  # unstable
SessionArchiveFilter = str  # unstable
ElicitationContentValue = str | Int64 | float | bool | list[str]
ProxySuccessorResponse = Any  # unstable


class WriteTextFileRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    path: str
    content: str
    meta: dict[str, Any] | None = None


class ReadTextFileRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    path: str
    line: UInt32 | None = None
    limit: UInt32 | None = None
    meta: dict[str, Any] | None = None


class RequestPermissionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "tool_call": "toolCall", "meta": "_meta"},
):
    session_id: SessionId
    tool_call: ToolCallUpdate
    options: list[PermissionOption]
    meta: dict[str, Any] | None = None


class ToolCallUpdate(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call_id": "toolCallId", "raw_input": "rawInput", "raw_output": "rawOutput", "meta": "_meta"},
):
    tool_call_id: ToolCallId
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    title: str | None = None
    name: str | None = None
    content: list[ToolCallContent] | None = None
    locations: list[ToolCallLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = None


class Content(Struct, tag_field="type", tag="content", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    content: ContentBlock
    meta: dict[str, Any] | None = None


class Diff(
    Struct,
    tag_field="type",
    tag="diff",
    kw_only=True,
    omit_defaults=True,
    rename={"old_text": "oldText", "new_text": "newText", "meta": "_meta"},
):
    path: str
    old_text: str | None = None
    new_text: str
    meta: dict[str, Any] | None = None


class Terminal(
    Struct,
    tag_field="type",
    tag="terminal",
    kw_only=True,
    omit_defaults=True,
    rename={"terminal_id": "terminalId", "meta": "_meta"},
):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class TextContent(Struct, tag_field="type", tag="text", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    annotations: Annotations | None = None
    text: str
    meta: dict[str, Any] | None = None


class ImageContent(
    Struct,
    tag_field="type",
    tag="image",
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
):
    annotations: Annotations | None = None
    data: str
    mime_type: str
    uri: str | None = None
    meta: dict[str, Any] | None = None


class AudioContent(
    Struct,
    tag_field="type",
    tag="audio",
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
):
    annotations: Annotations | None = None
    data: str
    mime_type: str
    meta: dict[str, Any] | None = None


class ResourceLink(
    Struct,
    tag_field="type",
    tag="resource_link",
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
):
    annotations: Annotations | None = None
    description: str | None = None
    mime_type: str | None = None
    name: str
    size: Int64 | None = None
    title: str | None = None
    uri: str
    meta: dict[str, Any] | None = None


class EmbeddedResource(
    Struct,
    tag_field="type",
    tag="resource",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    annotations: Annotations | None = None
    resource: EmbeddedResourceResource
    meta: dict[str, Any] | None = None


class Annotations(Struct, kw_only=True, omit_defaults=True, rename={"last_modified": "lastModified", "meta": "_meta"}):
    audience: list[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None
    meta: dict[str, Any] | None = None


class TextResourceContents(Struct, kw_only=True, omit_defaults=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    mime_type: str | None = None
    text: str
    uri: str
    meta: dict[str, Any] | None = None


class BlobResourceContents(Struct, kw_only=True, omit_defaults=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    blob: str
    mime_type: str | None = None
    uri: str
    meta: dict[str, Any] | None = None


class ToolCallLocation(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    path: str
    line: UInt32 | None = None
    meta: dict[str, Any] | None = None


class PermissionOption(Struct, kw_only=True, omit_defaults=True, rename={"option_id": "optionId", "meta": "_meta"}):
    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind
    meta: dict[str, Any] | None = None


class CreateTerminalRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "output_byte_limit": "outputByteLimit", "meta": "_meta"},
):
    session_id: SessionId
    command: str
    args: list[str] = []
    env: list[EnvVariable] = []
    cwd: str | None = None
    output_byte_limit: UInt64 | None = None
    meta: dict[str, Any] | None = None


class EnvVariable(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class TerminalOutputRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "terminal_id": "terminalId", "meta": "_meta"},
):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class ReleaseTerminalRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "terminal_id": "terminalId", "meta": "_meta"},
):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class WaitForTerminalExitRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "terminal_id": "terminalId", "meta": "_meta"},
):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class KillTerminalRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "terminal_id": "terminalId", "meta": "_meta"},
):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class FormElicitationForSession(
    Struct,
    tag_field="mode",
    tag="form",
    kw_only=True,
    omit_defaults=True,
    rename={"requested_schema": "requestedSchema", "session_id": "sessionId", "tool_call_id": "toolCallId", "meta": "_meta"},
):
    message: str
    requested_schema: ElicitationSchema
    session_id: SessionId
    tool_call_id: ToolCallId | None = None
    meta: dict[str, Any] | None = None


class FormElicitationForRequest(
    Struct,
    tag_field="mode",
    tag="form",
    kw_only=True,
    omit_defaults=True,
    rename={"requested_schema": "requestedSchema", "request_id": "requestId", "meta": "_meta"},
):
    message: str
    requested_schema: ElicitationSchema
    request_id: RequestId
    meta: dict[str, Any] | None = None


class UrlElicitationForSession(
    Struct,
    tag_field="mode",
    tag="url",
    kw_only=True,
    omit_defaults=True,
    rename={"elicitation_id": "elicitationId", "session_id": "sessionId", "tool_call_id": "toolCallId", "meta": "_meta"},
):
    message: str
    elicitation_id: ElicitationId
    url: str
    session_id: SessionId
    tool_call_id: ToolCallId | None = None
    meta: dict[str, Any] | None = None


class UrlElicitationForRequest(
    Struct,
    tag_field="mode",
    tag="url",
    kw_only=True,
    omit_defaults=True,
    rename={"elicitation_id": "elicitationId", "request_id": "requestId", "meta": "_meta"},
):
    message: str
    elicitation_id: ElicitationId
    url: str
    request_id: RequestId
    meta: dict[str, Any] | None = None


class _CreateElicitationRequestOtherSession(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "tool_call_id": "toolCallId", "meta": "_meta"},
):
    message: str
    session_id: SessionId
    tool_call_id: ToolCallId | None = None
    meta: dict[str, Any] | None = None


class _CreateElicitationRequestOtherRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"request_id": "requestId", "meta": "_meta"},
):
    message: str
    request_id: RequestId
    meta: dict[str, Any] | None = None


class ElicitationSchema(
    Struct,
    tag_field="type",
    tag="object",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    title: str | None = None
    properties: dict[str, ElicitationPropertySchema] = {}
    required: list[str] | None = None
    description: str | None = None
    meta: dict[str, Any] | None = None


class StringPropertySchema(
    Struct,
    tag_field="type",
    tag="string",
    kw_only=True,
    omit_defaults=True,
    rename={"min_length": "minLength", "max_length": "maxLength", "one_of": "oneOf", "meta": "_meta"},
):
    title: str | None = None
    description: str | None = None
    min_length: UInt32 | None = None
    max_length: UInt32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: str | None = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None
    meta: dict[str, Any] | None = None


class NumberPropertySchema(
    Struct,
    tag_field="type",
    tag="number",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None
    meta: dict[str, Any] | None = None


class IntegerPropertySchema(
    Struct,
    tag_field="type",
    tag="integer",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    title: str | None = None
    description: str | None = None
    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Int64 | None = None
    meta: dict[str, Any] | None = None


class BooleanPropertySchema(
    Struct,
    tag_field="type",
    tag="boolean",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    title: str | None = None
    description: str | None = None
    default: bool | None = None
    meta: dict[str, Any] | None = None


class MultiSelectPropertySchema(
    Struct,
    tag_field="type",
    tag="array",
    kw_only=True,
    omit_defaults=True,
    rename={"min_items": "minItems", "max_items": "maxItems", "meta": "_meta"},
):
    title: str | None = None
    description: str | None = None
    min_items: UInt64 | None = None
    max_items: UInt64 | None = None
    items: MultiSelectItems
    default: list[str] | None = None
    meta: dict[str, Any] | None = None


class EnumOption(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    const: str
    title: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class StringMultiSelectItems(
    Struct,
    tag_field="type",
    tag="string",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    enum: list[str]
    meta: dict[str, Any] | None = None


class TitledMultiSelectItems(Struct, kw_only=True, omit_defaults=True, rename={"any_of": "anyOf", "meta": "_meta"}):
    any_of: list[EnumOption]
    meta: dict[str, Any] | None = None


class MessageMcpRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"server_id": "serverId", "request_id": "requestId", "meta": "_meta"},
):
    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class PromptCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    rename={"embedded_context": "embeddedContext", "meta": "_meta"},
):
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    meta: dict[str, Any] | None = None


class McpCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    http: bool = False
    sse: bool = False
    acp: bool = False  # unstable
    meta: dict[str, Any] | None = None


class SessionCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    rename={"additional_directories": "additionalDirectories", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    list: SessionListCapabilities | None = None
    delete: SessionDeleteCapabilities | None = None
    additional_directories: SessionAdditionalDirectoriesCapabilities | None = None
    system_prompt: SessionSystemPromptCapabilities | None = None  # unstable
    fork: SessionForkCapabilities | None = None  # unstable
    archive: SessionArchiveCapabilities | None = None  # unstable
    status: SessionStatusCapabilities | None = None  # unstable
    title: SessionTitleCapabilities | None = None  # unstable
    resume: SessionResumeCapabilities | None = None
    close: SessionCloseCapabilities | None = None
    meta: dict[str, Any] | None = None


class AgentAuthCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    status: AuthStatusCapabilities | None = None  # unstable
    logout: LogoutCapabilities | None = None
    meta: dict[str, Any] | None = None


class AgentCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    rename={"load_session": "loadSession", "prompt_capabilities": "promptCapabilities", "mcp_capabilities": "mcpCapabilities", "session_capabilities": "sessionCapabilities", "meta": "_meta"},
):
    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    providers: ProvidersCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class InitializeResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"protocol_version": "protocolVersion", "agent_capabilities": "agentCapabilities", "auth_methods": "authMethods", "agent_info": "agentInfo", "meta": "_meta"},
):
    protocol_version: ProtocolVersion
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = []
    agent_info: Implementation | None = None
    meta: dict[str, Any] | None = None


class SessionListCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SessionDeleteCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SessionAdditionalDirectoriesCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SessionSystemPromptCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    mode: SessionSystemPromptModeCapabilities | None = None
    meta: dict[str, Any] | None = None


class SessionSystemPromptModeCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    override: SessionSystemPromptOverrideCapabilities | None = None
    meta: dict[str, Any] | None = None


class SessionSystemPromptOverrideCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    meta: dict[str, Any] | None = None


class SessionForkCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionArchiveCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionStatusCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionTitleCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionResumeCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SessionCloseCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class AuthStatusCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class LogoutCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ProvidersCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class AuthMethodTerminal(
    Struct,
    tag_field="type",
    tag="terminal",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    id: AuthMethodId
    name: str
    description: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    meta: dict[str, Any] | None = None


class AuthMethodAgent(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    id: AuthMethodId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class Implementation(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    title: str | None = None
    version: str
    meta: dict[str, Any] | None = None


class AuthenticateResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ListProvidersResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    providers: list[ProviderInfo]
    meta: dict[str, Any] | None = None


class ProviderInfo(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"provider_id": "providerId", "meta": "_meta"},
):
    provider_id: ProviderId
    supported: list[LlmProtocol]
    required: bool
    current: ProviderCurrentConfig | None = None
    meta: dict[str, Any] | None = None


class ProviderCurrentConfig(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"api_type": "apiType", "base_url": "baseUrl", "meta": "_meta"},
):
    api_type: LlmProtocol
    base_url: str
    meta: dict[str, Any] | None = None


class SetProviderResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class DisableProviderResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class LogoutResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class AuthStatusResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    state: AuthState
    accounts: list[AuthAccount] = []
    meta: dict[str, Any] | None = None


class AuthAccount(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    label: str
    active: bool | None = None
    name: str | None = None
    email: str | None = None
    organization: str | None = None
    meta: dict[str, Any] | None = None


class NewSessionResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "config_options": "configOptions", "meta": "_meta"},
):
    session_id: SessionId
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class SessionModeState(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"current_mode_id": "currentModeId", "available_modes": "availableModes", "meta": "_meta"},
):
    current_mode_id: SessionModeId
    available_modes: list[SessionMode]
    meta: dict[str, Any] | None = None


class SessionMode(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    id: SessionModeId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelect(
    Struct,
    tag_field="type",
    tag="select",
    kw_only=True,
    omit_defaults=True,
    rename={"current_value": "currentValue", "meta": "_meta"},
):
    id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions
    meta: dict[str, Any] | None = None


class SessionConfigBoolean(
    Struct,
    tag_field="type",
    tag="boolean",
    kw_only=True,
    omit_defaults=True,
    rename={"current_value": "currentValue", "meta": "_meta"},
):
    id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: bool
    meta: dict[str, Any] | None = None


class SessionConfigSelectOption(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    value: SessionConfigValueId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelectGroup(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    group: SessionConfigGroupId
    name: str
    options: list[SessionConfigSelectOption]
    meta: dict[str, Any] | None = None


class LoadSessionResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "meta": "_meta"},
):
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class ListSessionsResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"next_cursor": "nextCursor", "meta": "_meta"},
):
    sessions: list[SessionInfo]
    next_cursor: str | None = None
    meta: dict[str, Any] | None = None


class SessionInfo(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "updated_at": "updatedAt", "meta": "_meta"},
):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    title: str | None = None
    updated_at: str | None = None
    archived: bool | None = None  # unstable
    meta: dict[str, Any] | None = None


class DeleteSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ForkSessionResponse(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "config_options": "configOptions", "meta": "_meta"},
):
    session_id: SessionId
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class ArchiveSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class UnarchiveSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionStatusResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    status: SessionStatus
    meta: dict[str, Any] | None = None


class SetSessionTitleResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    title: str
    meta: dict[str, Any] | None = None


class ResumeSessionResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "meta": "_meta"},
):
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class CloseSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SetSessionModeResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "meta": "_meta"},
):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = None


class PromptResponse(Struct, kw_only=True, omit_defaults=True, rename={"stop_reason": "stopReason", "meta": "_meta"}):
    stop_reason: StopReason
    usage: Usage | None = None  # unstable
    meta: dict[str, Any] | None = None


class Usage(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"total_tokens": "totalTokens", "input_tokens": "inputTokens", "output_tokens": "outputTokens", "thought_tokens": "thoughtTokens", "cached_read_tokens": "cachedReadTokens", "cached_write_tokens": "cachedWriteTokens", "meta": "_meta"},
):
    total_tokens: UInt64
    input_tokens: UInt64
    output_tokens: UInt64
    thought_tokens: UInt64 | None = None
    cached_read_tokens: UInt64 | None = None
    cached_write_tokens: UInt64 | None = None
    meta: dict[str, Any] | None = None


class Error(Struct, kw_only=True, omit_defaults=True):
    code: ErrorCode
    message: str
    data: Any = None


class SessionNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    update: SessionUpdate
    meta: dict[str, Any] | None = None


class ContentChunk(Struct, kw_only=True, omit_defaults=True, rename={"message_id": "messageId", "meta": "_meta"}):
    content: ContentBlock
    message_id: MessageId | None = None
    meta: dict[str, Any] | None = None


class UserMessageChunk(
    ContentChunk,
    tag_field="sessionUpdate",
    tag="user_message_chunk",
    kw_only=True,
    omit_defaults=True,
):
    pass


class AgentMessageChunk(
    ContentChunk,
    tag_field="sessionUpdate",
    tag="agent_message_chunk",
    kw_only=True,
    omit_defaults=True,
):
    pass


class AgentThoughtChunk(
    ContentChunk,
    tag_field="sessionUpdate",
    tag="agent_thought_chunk",
    kw_only=True,
    omit_defaults=True,
):
    pass


class ToolCall(
    Struct,
    tag_field="sessionUpdate",
    tag="tool_call",
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call_id": "toolCallId", "raw_input": "rawInput", "raw_output": "rawOutput", "meta": "_meta"},
):
    tool_call_id: ToolCallId
    title: str
    name: str | None = None
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    content: list[ToolCallContent] = []
    locations: list[ToolCallLocation] = []
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = None


class ToolCallProgress(
    ToolCallUpdate,
    tag_field="sessionUpdate",
    tag="tool_call_update",
    kw_only=True,
    omit_defaults=True,
):
    pass


class Plan(Struct, tag_field="sessionUpdate", tag="plan", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    entries: list[PlanEntry]
    meta: dict[str, Any] | None = None


class PlanUpdate(  # unstable
    Struct,
    tag_field="sessionUpdate",
    tag="plan_update",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    plan: PlanUpdateContent
    meta: dict[str, Any] | None = None


class PlanRemoved(  # unstable
    Struct,
    tag_field="sessionUpdate",
    tag="plan_removed",
    kw_only=True,
    omit_defaults=True,
    rename={"plan_id": "planId", "meta": "_meta"},
):
    plan_id: PlanId
    meta: dict[str, Any] | None = None


class AvailableCommandsUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="available_commands_update",
    kw_only=True,
    omit_defaults=True,
    rename={"available_commands": "availableCommands", "meta": "_meta"},
):
    available_commands: list[AvailableCommand]
    meta: dict[str, Any] | None = None


class CurrentModeUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="current_mode_update",
    kw_only=True,
    omit_defaults=True,
    rename={"current_mode_id": "currentModeId", "meta": "_meta"},
):
    current_mode_id: SessionModeId
    meta: dict[str, Any] | None = None


class ConfigOptionUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="config_option_update",
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "meta": "_meta"},
):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = None


class SessionInfoUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="session_info_update",
    kw_only=True,
    omit_defaults=True,
    rename={"updated_at": "updatedAt", "meta": "_meta"},
):
    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET
    meta: dict[str, Any] | None = None


class UsageUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="usage_update",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    used: UInt64
    size: UInt64
    cost: Cost | None = None
    meta: dict[str, Any] | None = None


class Notice(
    Struct,
    tag_field="sessionUpdate",
    tag="notice",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: str | None = None
    meta: dict[str, Any] | None = None


class CompactionUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="compaction_update",
    kw_only=True,
    omit_defaults=True,
    rename={"compaction_id": "compactionId", "meta": "_meta"},
):
    compaction_id: CompactionId
    status: CompactionStatus
    summary: list[ContentBlock] | None | UnsetType = UNSET
    error: str | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class CompactionSummaryChunk(
    Struct,
    tag_field="sessionUpdate",
    tag="compaction_summary_chunk",
    kw_only=True,
    omit_defaults=True,
    rename={"compaction_id": "compactionId", "meta": "_meta"},
):
    compaction_id: CompactionId
    content: ContentBlock
    meta: dict[str, Any] | None = None


class SubagentUpdate(  # unstable
    Struct,
    tag_field="sessionUpdate",
    tag="subagent_update",
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "meta": "_meta"},
):
    session_id: SessionId
    title: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    capabilities: SubagentSessionCapabilities | None | UnsetType = UNSET
    state: StateUpdate | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    additional_directories: list[str] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class SessionMessage(  # unstable
    Struct,
    tag_field="sessionUpdate",
    tag="session_message",
    kw_only=True,
    omit_defaults=True,
    rename={"message_id": "messageId", "sender_session_id": "senderSessionId", "recipient_session_id": "recipientSessionId", "sender_message_id": "senderMessageId", "recipient_message_id": "recipientMessageId", "meta": "_meta"},
):
    message_id: MessageId
    sender_session_id: SessionId | None | UnsetType = UNSET
    recipient_session_id: SessionId | None | UnsetType = UNSET
    sender_message_id: MessageId | None | UnsetType = UNSET
    recipient_message_id: MessageId | None | UnsetType = UNSET
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class SessionMessageChunk(  # unstable
    Struct,
    tag_field="sessionUpdate",
    tag="session_message_chunk",
    kw_only=True,
    omit_defaults=True,
    rename={"message_id": "messageId", "meta": "_meta"},
):
    message_id: MessageId
    content: ContentBlock
    meta: dict[str, Any] | None = None


class PlanEntry(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus
    meta: dict[str, Any] | None = None


class PlanItems(  # unstable
    Struct,
    tag_field="type",
    tag="items",
    kw_only=True,
    omit_defaults=True,
    rename={"plan_id": "planId", "meta": "_meta"},
):
    plan_id: PlanId
    entries: list[PlanEntry]
    meta: dict[str, Any] | None = None


class PlanFile(  # unstable
    Struct,
    tag_field="type",
    tag="file",
    kw_only=True,
    omit_defaults=True,
    rename={"plan_id": "planId", "meta": "_meta"},
):
    plan_id: PlanId
    uri: str
    meta: dict[str, Any] | None = None


class PlanMarkdown(  # unstable
    Struct,
    tag_field="type",
    tag="markdown",
    kw_only=True,
    omit_defaults=True,
    rename={"plan_id": "planId", "meta": "_meta"},
):
    plan_id: PlanId
    content: str
    meta: dict[str, Any] | None = None


class AvailableCommand(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    description: str
    input: AvailableCommandInput | None = None
    meta: dict[str, Any] | None = None


class UnstructuredCommandInput(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    hint: str
    meta: dict[str, Any] | None = None


class Cost(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    amount: float
    currency: str
    meta: dict[str, Any] | None = None


class SubagentSessionCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    cancel: SessionCancelCapabilities | None = None
    meta: dict[str, Any] | None = None


class SessionCancelCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class StateUpdate(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"stop_reason": "stopReason", "meta": "_meta"},
):
    state: str
    usage: Usage | None = None
    stop_reason: str | None = None
    error: Error | None = None
    meta: dict[str, Any] | None = None


class CompleteElicitationNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"elicitation_id": "elicitationId", "meta": "_meta"},
):
    elicitation_id: ElicitationId
    meta: dict[str, Any] | None = None


class AuthStatusUpdateNotification(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    state: AuthState
    accounts: list[AuthAccount] = []
    meta: dict[str, Any] | None = None


class FileSystemCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    rename={"read_text_file": "readTextFile", "write_text_file": "writeTextFile", "meta": "_meta"},
):
    read_text_file: bool = False
    write_text_file: bool = False
    meta: dict[str, Any] | None = None


class AuthCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    terminal: bool = False
    meta: dict[str, Any] | None = None


class ClientCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    session: ClientSessionCapabilities | None = None
    subagents: SubagentCapabilities | None = None  # unstable
    plan: PlanCapabilities | None = None  # unstable
    auth: AuthCapabilities = AuthCapabilities()
    elicitation: ElicitationCapabilities | None = None
    meta: dict[str, Any] | None = None


class InitializeRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"protocol_version": "protocolVersion", "client_capabilities": "clientCapabilities", "client_info": "clientInfo", "meta": "_meta"},
):
    protocol_version: ProtocolVersion
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None
    meta: dict[str, Any] | None = None


class ClientSessionCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "meta": "_meta"},
):
    compaction: CompactionCapabilities | None = None
    config_options: SessionConfigOptionsCapabilities | None = None
    notices: NoticeCapabilities | None = None
    meta: dict[str, Any] | None = None


class CompactionCapabilities(Struct, kw_only=True, omit_defaults=True):
    pass


class SessionConfigOptionsCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    boolean: BooleanConfigOptionCapabilities | None = None
    meta: dict[str, Any] | None = None


class BooleanConfigOptionCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class NoticeCapabilities(Struct, kw_only=True, omit_defaults=True):
    pass


class SubagentCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class PlanCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class ElicitationCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None
    meta: dict[str, Any] | None = None


class ElicitationFormCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ElicitationUrlCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class AuthenticateRequest(Struct, kw_only=True, omit_defaults=True, rename={"method_id": "methodId", "meta": "_meta"}):
    method_id: AuthMethodId
    meta: dict[str, Any] | None = None


class ListProvidersRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SetProviderRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"provider_id": "providerId", "api_type": "apiType", "base_url": "baseUrl", "meta": "_meta"},
):
    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: dict[str, str] = {}
    meta: dict[str, Any] | None = None


class DisableProviderRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"provider_id": "providerId", "meta": "_meta"},
):
    provider_id: ProviderId
    meta: dict[str, Any] | None = None


class LogoutRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class AuthStatusRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NewSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer]
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class McpServerHttp(Struct, tag_field="type", tag="http", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    url: str
    headers: list[HttpHeader]
    meta: dict[str, Any] | None = None


class McpServerSse(Struct, tag_field="type", tag="sse", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    url: str
    headers: list[HttpHeader]
    meta: dict[str, Any] | None = None


class McpServerAcp(  # unstable
    Struct,
    tag_field="type",
    tag="acp",
    kw_only=True,
    omit_defaults=True,
    rename={"server_id": "serverId", "meta": "_meta"},
):
    name: str
    server_id: McpServerAcpId
    meta: dict[str, Any] | None = None


class McpServerStdio(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    command: str
    args: list[str]
    env: list[EnvVariable]
    meta: dict[str, Any] | None = None


class HttpHeader(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class SystemPrompt(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    mode: SystemPromptMode
    content: list[ContentBlock]
    meta: dict[str, Any] | None = None


class LoadSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"mcp_servers": "mcpServers", "additional_directories": "additionalDirectories", "session_id": "sessionId", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    mcp_servers: list[McpServer]
    cwd: str
    additional_directories: list[str] = []
    session_id: SessionId
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class ListSessionsRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    cwd: str | None = None
    cursor: str | None = None
    archived: SessionArchiveFilter | None = None  # unstable
    meta: dict[str, Any] | None = None


class DeleteSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class ForkSessionRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer] = []
    system_prompt: SystemPrompt | None = None
    meta: dict[str, Any] | None = None


class ArchiveSessionRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class UnarchiveSessionRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SessionStatusRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SetSessionTitleRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    title: str
    meta: dict[str, Any] | None = None


class ResumeSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer] = []
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class CloseSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SetSessionModeRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "mode_id": "modeId", "meta": "_meta"},
):
    session_id: SessionId
    mode_id: SessionModeId
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionBoolean(
    Struct,
    tag_field="type",
    tag="boolean",
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "config_id": "configId", "meta": "_meta"},
):
    session_id: SessionId
    config_id: SessionConfigId
    value: bool
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionValueId(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "config_id": "configId", "meta": "_meta"},
):
    session_id: SessionId
    config_id: SessionConfigId
    value: SessionConfigValueId
    meta: dict[str, Any] | None = None


class PromptRequest(Struct, kw_only=True, omit_defaults=True, rename={"session_id": "sessionId", "meta": "_meta"}):
    session_id: SessionId
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = None


class WriteTextFileResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ReadTextFileResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    content: str
    meta: dict[str, Any] | None = None


class RequestPermissionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    outcome: RequestPermissionOutcome
    meta: dict[str, Any] | None = None


class CancelledPermissionOutcome(Struct, tag_field="outcome", tag="cancelled", kw_only=True, omit_defaults=True):
    pass


class SelectedPermissionOutcome(
    Struct,
    tag_field="outcome",
    tag="selected",
    kw_only=True,
    omit_defaults=True,
    rename={"option_id": "optionId", "meta": "_meta"},
):
    option_id: PermissionOptionId
    meta: dict[str, Any] | None = None


class CreateTerminalResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"terminal_id": "terminalId", "meta": "_meta"},
):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class TerminalOutputResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"exit_status": "exitStatus", "meta": "_meta"},
):
    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = None
    meta: dict[str, Any] | None = None


class TerminalExitStatus(Struct, kw_only=True, omit_defaults=True, rename={"exit_code": "exitCode", "meta": "_meta"}):
    exit_code: UInt32 | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = None


class ReleaseTerminalResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class WaitForTerminalExitResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"exit_code": "exitCode", "meta": "_meta"},
):
    exit_code: UInt32 | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = None


class KillTerminalResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ElicitationAcceptAction(
    Struct,
    tag_field="action",
    tag="accept",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    content: dict[str, ElicitationContentValue] | None = None
    meta: dict[str, Any] | None = None


class ElicitationDeclineAction(
    Struct,
    tag_field="action",
    tag="decline",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    meta: dict[str, Any] | None = None


class ElicitationCancelAction(
    Struct,
    tag_field="action",
    tag="cancel",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    meta: dict[str, Any] | None = None


class _CreateElicitationResponseOther(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class MessageMcpResult(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    result: Any
    meta: dict[str, Any] | None = None


class MessageMcpError(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    error: McpError
    meta: dict[str, Any] | None = None


class McpError(Struct, kw_only=True, omit_defaults=True):  # unstable
    code: Int32
    message: str
    data: Any = None


class CancelNotification(Struct, kw_only=True, omit_defaults=True, rename={"session_id": "sessionId", "meta": "_meta"}):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class MessageMcpNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"server_id": "serverId", "request_id": "requestId", "meta": "_meta"},
):
    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class CancelRequestNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"request_id": "requestId", "meta": "_meta"},
):
    request_id: RequestId
    meta: dict[str, Any] | None = None


class ProxySuccessorRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    method: str
    params: Any = None
    meta: dict[str, Any] | None = None


class ProxySuccessorNotification(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    method: str
    params: Any = None
    meta: dict[str, Any] | None = None


ElicitationFormMode = FormElicitationForSession | FormElicitationForRequest
ElicitationUrlMode = UrlElicitationForSession | UrlElicitationForRequest
AvailableCommandInput = UnstructuredCommandInput
InitializeProxyRequest = InitializeRequest  # unstable
InitializeProxyResponse = InitializeResponse  # unstable


if TYPE_CHECKING:
    ToolCallContent = Content | Diff | Terminal | UnknownVariant
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownVariant
    SessionConfigOption = SessionConfigSelect | SessionConfigBoolean | UnknownVariant
    SessionUpdate = (
        UserMessageChunk
        | AgentMessageChunk
        | AgentThoughtChunk
        | ToolCall
        | ToolCallProgress
        | Plan
        | PlanUpdate
        | PlanRemoved
        | AvailableCommandsUpdate
        | CurrentModeUpdate
        | ConfigOptionUpdate
        | SessionInfoUpdate
        | UsageUpdate
        | Notice
        | CompactionUpdate
        | CompactionSummaryChunk
        | SubagentUpdate
        | SessionMessage
        | SessionMessageChunk
        | UnknownVariant
    )
    PlanUpdateContent = PlanItems | PlanFile | PlanMarkdown | UnknownVariant  # unstable
    RequestPermissionOutcome = CancelledPermissionOutcome | SelectedPermissionOutcome
    EmbeddedResourceResource = TextResourceContents | BlobResourceContents
    CreateElicitationRequest = (
        FormElicitationForSession
        | FormElicitationForRequest
        | UrlElicitationForSession
        | UrlElicitationForRequest
        | UnknownVariant
    )
    ElicitationPropertySchema = (
        StringPropertySchema
        | NumberPropertySchema
        | IntegerPropertySchema
        | BooleanPropertySchema
        | MultiSelectPropertySchema
        | UnknownVariant
    )
    MultiSelectItems = StringMultiSelectItems | TitledMultiSelectItems | UnknownVariant
    AuthMethod = AuthMethodTerminal | AuthMethodAgent
    SessionConfigSelectOptions = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
    McpServer = McpServerHttp | McpServerSse | McpServerAcp | McpServerStdio
    SetSessionConfigOptionRequest = SetSessionConfigOptionBoolean | SetSessionConfigOptionValueId
    CreateElicitationResponse = (
        ElicitationAcceptAction
        | ElicitationDeclineAction
        | ElicitationCancelAction
        | UnknownVariant
    )
    MessageMcpResponse = MessageMcpResult | MessageMcpError  # unstable
else:
    ToolCallContent = Content | Diff | Terminal
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
    SessionConfigOption = SessionConfigSelect | SessionConfigBoolean
    SessionUpdate = (
        UserMessageChunk
        | AgentMessageChunk
        | AgentThoughtChunk
        | ToolCall
        | ToolCallProgress
        | Plan
        | PlanUpdate
        | PlanRemoved
        | AvailableCommandsUpdate
        | CurrentModeUpdate
        | ConfigOptionUpdate
        | SessionInfoUpdate
        | UsageUpdate
        | Notice
        | CompactionUpdate
        | CompactionSummaryChunk
        | SubagentUpdate
        | SessionMessage
        | SessionMessageChunk
    )
    PlanUpdateContent = PlanItems | PlanFile | PlanMarkdown  # unstable
    RequestPermissionOutcome = CancelledPermissionOutcome | SelectedPermissionOutcome

    class EmbeddedResourceResource(AnyOf, untagged=(TextResourceContents, BlobResourceContents)):
        pass

    class CreateElicitationRequest(
        AnyOf,
        tag_field="mode",
        tagged={
            "form": (FormElicitationForSession, FormElicitationForRequest),
            "url": (UrlElicitationForSession, UrlElicitationForRequest),
        },
        other=(_CreateElicitationRequestOtherSession, _CreateElicitationRequestOtherRequest),
    ):
        pass

    class ElicitationPropertySchema(
        AnyOf,
        tag_field="type",
        tagged={
            "string": (StringPropertySchema,),
            "number": (NumberPropertySchema,),
            "integer": (IntegerPropertySchema,),
            "boolean": (BooleanPropertySchema,),
            "array": (MultiSelectPropertySchema,),
        },
        other=(),
    ):
        pass

    class MultiSelectItems(
        AnyOf,
        tag_field="type",
        tagged={"string": (StringMultiSelectItems,)},
        other=(),
        untagged=(TitledMultiSelectItems,),
    ):
        pass

    class AuthMethod(AnyOf, tag_field="type", tagged={"terminal": (AuthMethodTerminal,)}, untagged=(AuthMethodAgent,)):
        pass

    class SessionConfigSelectOptions(AnyOf, untagged=(list[SessionConfigSelectOption], list[SessionConfigSelectGroup])):
        pass

    class McpServer(
        AnyOf,
        tag_field="type",
        tagged={"http": (McpServerHttp,), "sse": (McpServerSse,), "acp": (McpServerAcp,)},
        untagged=(McpServerStdio,),
    ):
        pass

    class SetSessionConfigOptionRequest(
        AnyOf,
        tag_field="type",
        tagged={"boolean": (SetSessionConfigOptionBoolean,)},
        untagged=(SetSessionConfigOptionValueId,),
    ):
        pass

    class CreateElicitationResponse(
        AnyOf,
        tag_field="action",
        tagged={
            "accept": (ElicitationAcceptAction,),
            "decline": (ElicitationDeclineAction,),
            "cancel": (ElicitationCancelAction,),
        },
        other=(_CreateElicitationResponseOther,),
    ):
        pass

    class MessageMcpResponse(AnyOf, untagged=(MessageMcpResult, MessageMcpError)):  # unstable
        pass


__all__ = [
    "AgentAuthCapabilities",
    "AgentCapabilities",
    "AgentMessageChunk",
    "AgentThoughtChunk",
    "Annotations",
    "ArchiveSessionRequest",
    "ArchiveSessionResponse",
    "AudioContent",
    "AuthAccount",
    "AuthCapabilities",
    "AuthMethod",
    "AuthMethodAgent",
    "AuthMethodId",
    "AuthMethodTerminal",
    "AuthState",
    "AuthStatusCapabilities",
    "AuthStatusRequest",
    "AuthStatusResponse",
    "AuthStatusUpdateNotification",
    "AuthenticateRequest",
    "AuthenticateResponse",
    "AvailableCommand",
    "AvailableCommandInput",
    "AvailableCommandsUpdate",
    "BlobResourceContents",
    "BooleanConfigOptionCapabilities",
    "BooleanPropertySchema",
    "CancelNotification",
    "CancelRequestNotification",
    "CancelledPermissionOutcome",
    "ClientCapabilities",
    "ClientSessionCapabilities",
    "CloseSessionRequest",
    "CloseSessionResponse",
    "CompactionCapabilities",
    "CompactionId",
    "CompactionStatus",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "CompleteElicitationNotification",
    "ConfigOptionUpdate",
    "Content",
    "ContentBlock",
    "ContentChunk",
    "Cost",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
    "CreateTerminalRequest",
    "CreateTerminalResponse",
    "CurrentModeUpdate",
    "DeleteSessionRequest",
    "DeleteSessionResponse",
    "Diff",
    "DisableProviderRequest",
    "DisableProviderResponse",
    "ElicitationAcceptAction",
    "ElicitationCancelAction",
    "ElicitationCapabilities",
    "ElicitationContentValue",
    "ElicitationDeclineAction",
    "ElicitationFormCapabilities",
    "ElicitationFormMode",
    "ElicitationId",
    "ElicitationPropertySchema",
    "ElicitationSchema",
    "ElicitationSchemaType",
    "ElicitationUrlCapabilities",
    "ElicitationUrlMode",
    "EmbeddedResource",
    "EmbeddedResourceResource",
    "EnumOption",
    "EnvVariable",
    "Error",
    "ErrorCode",
    "ExtNotification",
    "ExtRequest",
    "ExtResponse",
    "FileSystemCapabilities",
    "ForkSessionRequest",
    "ForkSessionResponse",
    "FormElicitationForRequest",
    "FormElicitationForSession",
    "HttpHeader",
    "ImageContent",
    "Implementation",
    "InitializeProxyRequest",
    "InitializeProxyResponse",
    "InitializeRequest",
    "InitializeResponse",
    "IntegerPropertySchema",
    "KillTerminalRequest",
    "KillTerminalResponse",
    "ListProvidersRequest",
    "ListProvidersResponse",
    "ListSessionsRequest",
    "ListSessionsResponse",
    "LlmProtocol",
    "LoadSessionRequest",
    "LoadSessionResponse",
    "LogoutCapabilities",
    "LogoutRequest",
    "LogoutResponse",
    "McpCapabilities",
    "McpError",
    "McpRequestId",
    "McpServer",
    "McpServerAcp",
    "McpServerAcpId",
    "McpServerHttp",
    "McpServerSse",
    "McpServerStdio",
    "MessageId",
    "MessageMcpError",
    "MessageMcpNotification",
    "MessageMcpRequest",
    "MessageMcpResponse",
    "MessageMcpResult",
    "MultiSelectItems",
    "MultiSelectPropertySchema",
    "NewSessionRequest",
    "NewSessionResponse",
    "Notice",
    "NoticeCapabilities",
    "NoticeSeverity",
    "NumberPropertySchema",
    "PermissionOption",
    "PermissionOptionId",
    "PermissionOptionKind",
    "Plan",
    "PlanCapabilities",
    "PlanEntry",
    "PlanEntryPriority",
    "PlanEntryStatus",
    "PlanFile",
    "PlanId",
    "PlanItems",
    "PlanMarkdown",
    "PlanRemoved",
    "PlanUpdate",
    "PlanUpdateContent",
    "PromptCapabilities",
    "PromptRequest",
    "PromptResponse",
    "ProtocolVersion",
    "ProviderCurrentConfig",
    "ProviderId",
    "ProviderInfo",
    "ProvidersCapabilities",
    "ProxySuccessorNotification",
    "ProxySuccessorRequest",
    "ProxySuccessorResponse",
    "ReadTextFileRequest",
    "ReadTextFileResponse",
    "ReleaseTerminalRequest",
    "ReleaseTerminalResponse",
    "RequestId",
    "RequestPermissionOutcome",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
    "ResourceLink",
    "ResumeSessionRequest",
    "ResumeSessionResponse",
    "Role",
    "SelectedPermissionOutcome",
    "SessionAdditionalDirectoriesCapabilities",
    "SessionArchiveCapabilities",
    "SessionArchiveFilter",
    "SessionCancelCapabilities",
    "SessionCapabilities",
    "SessionCloseCapabilities",
    "SessionConfigBoolean",
    "SessionConfigGroupId",
    "SessionConfigId",
    "SessionConfigOption",
    "SessionConfigOptionCategory",
    "SessionConfigOptionsCapabilities",
    "SessionConfigSelect",
    "SessionConfigSelectGroup",
    "SessionConfigSelectOption",
    "SessionConfigSelectOptions",
    "SessionConfigValueId",
    "SessionDeleteCapabilities",
    "SessionForkCapabilities",
    "SessionId",
    "SessionInfo",
    "SessionInfoUpdate",
    "SessionListCapabilities",
    "SessionMessage",
    "SessionMessageChunk",
    "SessionMode",
    "SessionModeId",
    "SessionModeState",
    "SessionNotification",
    "SessionResumeCapabilities",
    "SessionStatus",
    "SessionStatusCapabilities",
    "SessionStatusRequest",
    "SessionStatusResponse",
    "SessionSystemPromptCapabilities",
    "SessionSystemPromptModeCapabilities",
    "SessionSystemPromptOverrideCapabilities",
    "SessionTitleCapabilities",
    "SessionUpdate",
    "SetProviderRequest",
    "SetProviderResponse",
    "SetSessionConfigOptionBoolean",
    "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse",
    "SetSessionConfigOptionValueId",
    "SetSessionModeRequest",
    "SetSessionModeResponse",
    "SetSessionTitleRequest",
    "SetSessionTitleResponse",
    "StateUpdate",
    "StopReason",
    "StringFormat",
    "StringMultiSelectItems",
    "StringPropertySchema",
    "SubagentCapabilities",
    "SubagentSessionCapabilities",
    "SubagentUpdate",
    "SystemPrompt",
    "SystemPromptMode",
    "Terminal",
    "TerminalExitStatus",
    "TerminalId",
    "TerminalOutputRequest",
    "TerminalOutputResponse",
    "TextContent",
    "TextResourceContents",
    "TitledMultiSelectItems",
    "ToolCall",
    "ToolCallContent",
    "ToolCallId",
    "ToolCallLocation",
    "ToolCallProgress",
    "ToolCallStatus",
    "ToolCallUpdate",
    "ToolKind",
    "UnarchiveSessionRequest",
    "UnarchiveSessionResponse",
    "UnknownVariant",
    "UnstructuredCommandInput",
    "UrlElicitationForRequest",
    "UrlElicitationForSession",
    "Usage",
    "UsageUpdate",
    "UserMessageChunk",
    "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse",
    "WriteTextFileRequest",
    "WriteTextFileResponse",
]
