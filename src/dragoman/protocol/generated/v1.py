"""The types of ACP, version 1, as msgspec structs.

Made by scripts/generate_types.py: change that, or the schema in protocol/schema, not this file.
What is marked unstable is not part of the stable schema. Some structs are frozen because they are default
values, shared by all that have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from dragoman.protocol.unions import AcpStruct, AnyOf, UnknownVariant


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


class WriteTextFileRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    path: str
    content: str
    meta: dict[str, Any] | None = None


class ReadTextFileRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    path: str
    line: UInt32 | None = None
    limit: UInt32 | None = None
    meta: dict[str, Any] | None = None


class RequestPermissionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    tool_call: ToolCallUpdate
    options: list[PermissionOption]
    meta: dict[str, Any] | None = None


class ToolCallUpdate(AcpStruct, kw_only=True):
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


class Content(AcpStruct, tag_field="type", tag="content", kw_only=True):
    content: ContentBlock
    meta: dict[str, Any] | None = None


class Diff(AcpStruct, tag_field="type", tag="diff", kw_only=True):
    path: str
    old_text: str | None = None
    new_text: str
    meta: dict[str, Any] | None = None


class Terminal(AcpStruct, tag_field="type", tag="terminal", kw_only=True):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class TextContent(AcpStruct, tag_field="type", tag="text", kw_only=True):
    annotations: Annotations | None = None
    text: str
    meta: dict[str, Any] | None = None


class ImageContent(AcpStruct, tag_field="type", tag="image", kw_only=True):
    annotations: Annotations | None = None
    data: str
    mime_type: str
    uri: str | None = None
    meta: dict[str, Any] | None = None


class AudioContent(AcpStruct, tag_field="type", tag="audio", kw_only=True):
    annotations: Annotations | None = None
    data: str
    mime_type: str
    meta: dict[str, Any] | None = None


class ResourceLink(AcpStruct, tag_field="type", tag="resource_link", kw_only=True):
    annotations: Annotations | None = None
    description: str | None = None
    mime_type: str | None = None
    name: str
    size: Int64 | None = None
    title: str | None = None
    uri: str
    meta: dict[str, Any] | None = None


class EmbeddedResource(AcpStruct, tag_field="type", tag="resource", kw_only=True):
    annotations: Annotations | None = None
    resource: EmbeddedResourceResource
    meta: dict[str, Any] | None = None


class Annotations(AcpStruct, kw_only=True):
    audience: list[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None
    meta: dict[str, Any] | None = None


class TextResourceContents(AcpStruct, kw_only=True):
    mime_type: str | None = None
    text: str
    uri: str
    meta: dict[str, Any] | None = None


class BlobResourceContents(AcpStruct, kw_only=True):
    blob: str
    mime_type: str | None = None
    uri: str
    meta: dict[str, Any] | None = None


class ToolCallLocation(AcpStruct, kw_only=True):
    path: str
    line: UInt32 | None = None
    meta: dict[str, Any] | None = None


class PermissionOption(AcpStruct, kw_only=True):
    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind
    meta: dict[str, Any] | None = None


class CreateTerminalRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    command: str
    args: list[str] = []
    env: list[EnvVariable] = []
    cwd: str | None = None
    output_byte_limit: UInt64 | None = None
    meta: dict[str, Any] | None = None


class EnvVariable(AcpStruct, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class TerminalOutputRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class ReleaseTerminalRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class WaitForTerminalExitRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class KillTerminalRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class FormElicitationForSession(AcpStruct, tag_field="mode", tag="form", kw_only=True):
    message: str
    requested_schema: ElicitationSchema
    session_id: SessionId
    tool_call_id: ToolCallId | None = None
    meta: dict[str, Any] | None = None


class FormElicitationForRequest(AcpStruct, tag_field="mode", tag="form", kw_only=True):
    message: str
    requested_schema: ElicitationSchema
    request_id: RequestId
    meta: dict[str, Any] | None = None


class UrlElicitationForSession(AcpStruct, tag_field="mode", tag="url", kw_only=True):
    message: str
    elicitation_id: ElicitationId
    url: str
    session_id: SessionId
    tool_call_id: ToolCallId | None = None
    meta: dict[str, Any] | None = None


class UrlElicitationForRequest(AcpStruct, tag_field="mode", tag="url", kw_only=True):
    message: str
    elicitation_id: ElicitationId
    url: str
    request_id: RequestId
    meta: dict[str, Any] | None = None


class _CreateElicitationRequestOtherSession(AcpStruct, kw_only=True):
    message: str
    session_id: SessionId
    tool_call_id: ToolCallId | None = None
    meta: dict[str, Any] | None = None


class _CreateElicitationRequestOtherRequest(AcpStruct, kw_only=True):
    message: str
    request_id: RequestId
    meta: dict[str, Any] | None = None


class ElicitationSchema(AcpStruct, tag_field="type", tag="object", kw_only=True):
    title: str | None = None
    properties: dict[str, ElicitationPropertySchema] = {}
    required: list[str] | None = None
    description: str | None = None
    meta: dict[str, Any] | None = None


class StringPropertySchema(AcpStruct, tag_field="type", tag="string", kw_only=True):
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


class NumberPropertySchema(AcpStruct, tag_field="type", tag="number", kw_only=True):
    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None
    meta: dict[str, Any] | None = None


class IntegerPropertySchema(AcpStruct, tag_field="type", tag="integer", kw_only=True):
    title: str | None = None
    description: str | None = None
    minimum: Int64 | None = None
    maximum: Int64 | None = None
    default: Int64 | None = None
    meta: dict[str, Any] | None = None


class BooleanPropertySchema(AcpStruct, tag_field="type", tag="boolean", kw_only=True):
    title: str | None = None
    description: str | None = None
    default: bool | None = None
    meta: dict[str, Any] | None = None


class MultiSelectPropertySchema(AcpStruct, tag_field="type", tag="array", kw_only=True):
    title: str | None = None
    description: str | None = None
    min_items: UInt64 | None = None
    max_items: UInt64 | None = None
    items: MultiSelectItems
    default: list[str] | None = None
    meta: dict[str, Any] | None = None


class EnumOption(AcpStruct, kw_only=True):
    const: str
    title: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class StringMultiSelectItems(AcpStruct, tag_field="type", tag="string", kw_only=True):
    enum: list[str]
    meta: dict[str, Any] | None = None


class TitledMultiSelectItems(AcpStruct, kw_only=True):
    any_of: list[EnumOption]
    meta: dict[str, Any] | None = None


class MessageMcpRequest(AcpStruct, kw_only=True):  # unstable
    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class PromptCapabilities(AcpStruct, kw_only=True, frozen=True):
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    meta: dict[str, Any] | None = None


class McpCapabilities(AcpStruct, kw_only=True, frozen=True):
    http: bool = False
    sse: bool = False
    acp: bool = False  # unstable
    meta: dict[str, Any] | None = None


class SessionCapabilities(AcpStruct, kw_only=True, frozen=True):
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


class AgentAuthCapabilities(AcpStruct, kw_only=True, frozen=True):
    status: AuthStatusCapabilities | None = None  # unstable
    logout: LogoutCapabilities | None = None
    meta: dict[str, Any] | None = None


class AgentCapabilities(AcpStruct, kw_only=True, frozen=True):
    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    providers: ProvidersCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class InitializeResponse(AcpStruct, kw_only=True):
    protocol_version: ProtocolVersion
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = []
    agent_info: Implementation | None = None
    meta: dict[str, Any] | None = None


class SessionListCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SessionDeleteCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SessionAdditionalDirectoriesCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SessionSystemPromptCapabilities(AcpStruct, kw_only=True):  # unstable
    mode: SessionSystemPromptModeCapabilities | None = None
    meta: dict[str, Any] | None = None


class SessionSystemPromptModeCapabilities(AcpStruct, kw_only=True):  # unstable
    override: SessionSystemPromptOverrideCapabilities | None = None
    meta: dict[str, Any] | None = None


class SessionSystemPromptOverrideCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionForkCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionArchiveCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionStatusCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionTitleCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionResumeCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SessionCloseCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class AuthStatusCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class LogoutCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ProvidersCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class AuthMethodTerminal(AcpStruct, tag_field="type", tag="terminal", kw_only=True):
    id: AuthMethodId
    name: str
    description: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    meta: dict[str, Any] | None = None


class AuthMethodAgent(AcpStruct, kw_only=True):
    id: AuthMethodId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class Implementation(AcpStruct, kw_only=True):
    name: str
    title: str | None = None
    version: str
    meta: dict[str, Any] | None = None


class AuthenticateResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ListProvidersResponse(AcpStruct, kw_only=True):  # unstable
    providers: list[ProviderInfo]
    meta: dict[str, Any] | None = None


class ProviderInfo(AcpStruct, kw_only=True):  # unstable
    provider_id: ProviderId
    supported: list[LlmProtocol]
    required: bool
    current: ProviderCurrentConfig | None = None
    meta: dict[str, Any] | None = None


class ProviderCurrentConfig(AcpStruct, kw_only=True):  # unstable
    api_type: LlmProtocol
    base_url: str
    meta: dict[str, Any] | None = None


class SetProviderResponse(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class DisableProviderResponse(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class LogoutResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class AuthStatusResponse(AcpStruct, kw_only=True):  # unstable
    state: AuthState
    accounts: list[AuthAccount] = []
    meta: dict[str, Any] | None = None


class AuthAccount(AcpStruct, kw_only=True):  # unstable
    label: str
    active: bool | None = None
    name: str | None = None
    email: str | None = None
    organization: str | None = None
    meta: dict[str, Any] | None = None


class NewSessionResponse(AcpStruct, kw_only=True):
    session_id: SessionId
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class SessionModeState(AcpStruct, kw_only=True):
    current_mode_id: SessionModeId
    available_modes: list[SessionMode]
    meta: dict[str, Any] | None = None


class SessionMode(AcpStruct, kw_only=True):
    id: SessionModeId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelect(AcpStruct, tag_field="type", tag="select", kw_only=True):
    id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions
    meta: dict[str, Any] | None = None


class SessionConfigBoolean(AcpStruct, tag_field="type", tag="boolean", kw_only=True):
    id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: bool
    meta: dict[str, Any] | None = None


class SessionConfigSelectOption(AcpStruct, kw_only=True):
    value: SessionConfigValueId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelectGroup(AcpStruct, kw_only=True):
    group: SessionConfigGroupId
    name: str
    options: list[SessionConfigSelectOption]
    meta: dict[str, Any] | None = None


class LoadSessionResponse(AcpStruct, kw_only=True):
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class ListSessionsResponse(AcpStruct, kw_only=True):
    sessions: list[SessionInfo]
    next_cursor: str | None = None
    meta: dict[str, Any] | None = None


class SessionInfo(AcpStruct, kw_only=True):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    title: str | None = None
    updated_at: str | None = None
    archived: bool | None = None  # unstable
    meta: dict[str, Any] | None = None


class DeleteSessionResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ForkSessionResponse(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class ArchiveSessionResponse(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class UnarchiveSessionResponse(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionStatusResponse(AcpStruct, kw_only=True):  # unstable
    status: SessionStatus
    meta: dict[str, Any] | None = None


class SetSessionTitleResponse(AcpStruct, kw_only=True):  # unstable
    title: str
    meta: dict[str, Any] | None = None


class ResumeSessionResponse(AcpStruct, kw_only=True):
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = None


class CloseSessionResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SetSessionModeResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionResponse(AcpStruct, kw_only=True):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = None


class PromptResponse(AcpStruct, kw_only=True):
    stop_reason: StopReason
    usage: Usage | None = None  # unstable
    meta: dict[str, Any] | None = None


class Usage(AcpStruct, kw_only=True):  # unstable
    total_tokens: UInt64
    input_tokens: UInt64
    output_tokens: UInt64
    thought_tokens: UInt64 | None = None
    cached_read_tokens: UInt64 | None = None
    cached_write_tokens: UInt64 | None = None
    meta: dict[str, Any] | None = None


class Error(AcpStruct, kw_only=True):
    code: ErrorCode
    message: str
    data: Any = None


class SessionNotification(AcpStruct, kw_only=True):
    session_id: SessionId
    update: SessionUpdate
    meta: dict[str, Any] | None = None


class ContentChunk(AcpStruct, kw_only=True):
    content: ContentBlock
    message_id: MessageId | None = None
    meta: dict[str, Any] | None = None


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk", kw_only=True):
    pass


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk", kw_only=True):
    pass


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk", kw_only=True):
    pass


class ToolCall(AcpStruct, tag_field="sessionUpdate", tag="tool_call", kw_only=True):
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


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update", kw_only=True):
    pass


class Plan(AcpStruct, tag_field="sessionUpdate", tag="plan", kw_only=True):
    entries: list[PlanEntry]
    meta: dict[str, Any] | None = None


class PlanUpdate(AcpStruct, tag_field="sessionUpdate", tag="plan_update", kw_only=True):  # unstable
    plan: PlanUpdateContent
    meta: dict[str, Any] | None = None


class PlanRemoved(AcpStruct, tag_field="sessionUpdate", tag="plan_removed", kw_only=True):  # unstable
    plan_id: PlanId
    meta: dict[str, Any] | None = None


class AvailableCommandsUpdate(AcpStruct, tag_field="sessionUpdate", tag="available_commands_update", kw_only=True):
    available_commands: list[AvailableCommand]
    meta: dict[str, Any] | None = None


class CurrentModeUpdate(AcpStruct, tag_field="sessionUpdate", tag="current_mode_update", kw_only=True):
    current_mode_id: SessionModeId
    meta: dict[str, Any] | None = None


class ConfigOptionUpdate(AcpStruct, tag_field="sessionUpdate", tag="config_option_update", kw_only=True):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = None


class SessionInfoUpdate(AcpStruct, tag_field="sessionUpdate", tag="session_info_update", kw_only=True):
    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET
    meta: dict[str, Any] | None = None


class UsageUpdate(AcpStruct, tag_field="sessionUpdate", tag="usage_update", kw_only=True):
    used: UInt64
    size: UInt64
    cost: Cost | None = None
    meta: dict[str, Any] | None = None


class Notice(AcpStruct, tag_field="sessionUpdate", tag="notice", kw_only=True):
    severity: NoticeSeverity
    title: Annotated[str, Meta(min_length=1)]
    description: str | None = None
    meta: dict[str, Any] | None = None


class CompactionUpdate(AcpStruct, tag_field="sessionUpdate", tag="compaction_update", kw_only=True):
    compaction_id: CompactionId
    status: CompactionStatus
    summary: list[ContentBlock] | None | UnsetType = UNSET
    error: str | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class CompactionSummaryChunk(AcpStruct, tag_field="sessionUpdate", tag="compaction_summary_chunk", kw_only=True):
    compaction_id: CompactionId
    content: ContentBlock
    meta: dict[str, Any] | None = None


class SubagentUpdate(AcpStruct, tag_field="sessionUpdate", tag="subagent_update", kw_only=True):  # unstable
    session_id: SessionId
    title: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    capabilities: SubagentSessionCapabilities | None | UnsetType = UNSET
    state: StateUpdate | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    additional_directories: list[str] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class SessionMessage(AcpStruct, tag_field="sessionUpdate", tag="session_message", kw_only=True):  # unstable
    message_id: MessageId
    sender_session_id: SessionId | None | UnsetType = UNSET
    recipient_session_id: SessionId | None | UnsetType = UNSET
    sender_message_id: MessageId | None | UnsetType = UNSET
    recipient_message_id: MessageId | None | UnsetType = UNSET
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class SessionMessageChunk(AcpStruct, tag_field="sessionUpdate", tag="session_message_chunk", kw_only=True):  # unstable
    message_id: MessageId
    content: ContentBlock
    meta: dict[str, Any] | None = None


class PlanEntry(AcpStruct, kw_only=True):
    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus
    meta: dict[str, Any] | None = None


class PlanItems(AcpStruct, tag_field="type", tag="items", kw_only=True):  # unstable
    plan_id: PlanId
    entries: list[PlanEntry]
    meta: dict[str, Any] | None = None


class PlanFile(AcpStruct, tag_field="type", tag="file", kw_only=True):  # unstable
    plan_id: PlanId
    uri: str
    meta: dict[str, Any] | None = None


class PlanMarkdown(AcpStruct, tag_field="type", tag="markdown", kw_only=True):  # unstable
    plan_id: PlanId
    content: str
    meta: dict[str, Any] | None = None


class AvailableCommand(AcpStruct, kw_only=True):
    name: str
    description: str
    input: AvailableCommandInput | None = None
    meta: dict[str, Any] | None = None


class UnstructuredCommandInput(AcpStruct, kw_only=True):
    hint: str
    meta: dict[str, Any] | None = None


class Cost(AcpStruct, kw_only=True):
    amount: float
    currency: str
    meta: dict[str, Any] | None = None


class SubagentSessionCapabilities(AcpStruct, kw_only=True):  # unstable
    cancel: SessionCancelCapabilities | None = None
    meta: dict[str, Any] | None = None


class SessionCancelCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class StateUpdate(AcpStruct, kw_only=True):  # unstable
    state: str
    usage: Usage | None = None
    stop_reason: str | None = None
    error: Error | None = None
    meta: dict[str, Any] | None = None


class CompleteElicitationNotification(AcpStruct, kw_only=True):
    elicitation_id: ElicitationId
    meta: dict[str, Any] | None = None


class AuthStatusUpdateNotification(AcpStruct, kw_only=True):  # unstable
    state: AuthState
    accounts: list[AuthAccount] = []
    meta: dict[str, Any] | None = None


class FileSystemCapabilities(AcpStruct, kw_only=True, frozen=True):
    read_text_file: bool = False
    write_text_file: bool = False
    meta: dict[str, Any] | None = None


class AuthCapabilities(AcpStruct, kw_only=True, frozen=True):
    terminal: bool = False
    meta: dict[str, Any] | None = None


class ClientCapabilities(AcpStruct, kw_only=True, frozen=True):
    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    session: ClientSessionCapabilities | None = None
    subagents: SubagentCapabilities | None = None  # unstable
    plan: PlanCapabilities | None = None  # unstable
    auth: AuthCapabilities = AuthCapabilities()
    elicitation: ElicitationCapabilities | None = None
    meta: dict[str, Any] | None = None


class InitializeRequest(AcpStruct, kw_only=True):
    protocol_version: ProtocolVersion
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None
    meta: dict[str, Any] | None = None


class ClientSessionCapabilities(AcpStruct, kw_only=True):
    compaction: CompactionCapabilities | None = None
    config_options: SessionConfigOptionsCapabilities | None = None
    notices: NoticeCapabilities | None = None
    meta: dict[str, Any] | None = None


class CompactionCapabilities(AcpStruct, kw_only=True):
    pass


class SessionConfigOptionsCapabilities(AcpStruct, kw_only=True):
    boolean: BooleanConfigOptionCapabilities | None = None
    meta: dict[str, Any] | None = None


class BooleanConfigOptionCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class NoticeCapabilities(AcpStruct, kw_only=True):
    pass


class SubagentCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class PlanCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class ElicitationCapabilities(AcpStruct, kw_only=True):
    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None
    meta: dict[str, Any] | None = None


class ElicitationFormCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ElicitationUrlCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class AuthenticateRequest(AcpStruct, kw_only=True):
    method_id: AuthMethodId
    meta: dict[str, Any] | None = None


class ListProvidersRequest(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SetProviderRequest(AcpStruct, kw_only=True):  # unstable
    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: dict[str, str] = {}
    meta: dict[str, Any] | None = None


class DisableProviderRequest(AcpStruct, kw_only=True):  # unstable
    provider_id: ProviderId
    meta: dict[str, Any] | None = None


class LogoutRequest(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class AuthStatusRequest(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class NewSessionRequest(AcpStruct, kw_only=True):
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer]
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class McpServerHttp(AcpStruct, tag_field="type", tag="http", kw_only=True):
    name: str
    url: str
    headers: list[HttpHeader]
    meta: dict[str, Any] | None = None


class McpServerSse(AcpStruct, tag_field="type", tag="sse", kw_only=True):
    name: str
    url: str
    headers: list[HttpHeader]
    meta: dict[str, Any] | None = None


class McpServerAcp(AcpStruct, tag_field="type", tag="acp", kw_only=True):  # unstable
    name: str
    server_id: McpServerAcpId
    meta: dict[str, Any] | None = None


class McpServerStdio(AcpStruct, kw_only=True):
    name: str
    command: str
    args: list[str]
    env: list[EnvVariable]
    meta: dict[str, Any] | None = None


class HttpHeader(AcpStruct, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class SystemPrompt(AcpStruct, kw_only=True):  # unstable
    mode: SystemPromptMode
    content: list[ContentBlock]
    meta: dict[str, Any] | None = None


class LoadSessionRequest(AcpStruct, kw_only=True):
    mcp_servers: list[McpServer]
    cwd: str
    additional_directories: list[str] = []
    session_id: SessionId
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class ListSessionsRequest(AcpStruct, kw_only=True):
    cwd: str | None = None
    cursor: str | None = None
    archived: SessionArchiveFilter | None = None  # unstable
    meta: dict[str, Any] | None = None


class DeleteSessionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class ForkSessionRequest(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer] = []
    system_prompt: SystemPrompt | None = None
    meta: dict[str, Any] | None = None


class ArchiveSessionRequest(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    meta: dict[str, Any] | None = None


class UnarchiveSessionRequest(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SessionStatusRequest(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SetSessionTitleRequest(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    title: str
    meta: dict[str, Any] | None = None


class ResumeSessionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer] = []
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class CloseSessionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SetSessionModeRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    mode_id: SessionModeId
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionBoolean(AcpStruct, tag_field="type", tag="boolean", kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    value: bool
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionValueId(AcpStruct, kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    value: SessionConfigValueId
    meta: dict[str, Any] | None = None


class PromptRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = None


class WriteTextFileResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ReadTextFileResponse(AcpStruct, kw_only=True):
    content: str
    meta: dict[str, Any] | None = None


class RequestPermissionResponse(AcpStruct, kw_only=True):
    outcome: RequestPermissionOutcome
    meta: dict[str, Any] | None = None


class CancelledPermissionOutcome(AcpStruct, tag_field="outcome", tag="cancelled", kw_only=True):
    pass


class SelectedPermissionOutcome(AcpStruct, tag_field="outcome", tag="selected", kw_only=True):
    option_id: PermissionOptionId
    meta: dict[str, Any] | None = None


class CreateTerminalResponse(AcpStruct, kw_only=True):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class TerminalOutputResponse(AcpStruct, kw_only=True):
    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = None
    meta: dict[str, Any] | None = None


class TerminalExitStatus(AcpStruct, kw_only=True):
    exit_code: UInt32 | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = None


class ReleaseTerminalResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class WaitForTerminalExitResponse(AcpStruct, kw_only=True):
    exit_code: UInt32 | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = None


class KillTerminalResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ElicitationAcceptAction(AcpStruct, tag_field="action", tag="accept", kw_only=True):
    content: dict[str, ElicitationContentValue] | None = None
    meta: dict[str, Any] | None = None


class ElicitationDeclineAction(AcpStruct, tag_field="action", tag="decline", kw_only=True):
    meta: dict[str, Any] | None = None


class ElicitationCancelAction(AcpStruct, tag_field="action", tag="cancel", kw_only=True):
    meta: dict[str, Any] | None = None


class _CreateElicitationResponseOther(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class MessageMcpResult(AcpStruct, kw_only=True):  # unstable
    result: Any
    meta: dict[str, Any] | None = None


class MessageMcpError(AcpStruct, kw_only=True):  # unstable
    error: McpError
    meta: dict[str, Any] | None = None


class McpError(AcpStruct, kw_only=True):  # unstable
    code: Int32
    message: str
    data: Any = None


class CancelNotification(AcpStruct, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class MessageMcpNotification(AcpStruct, kw_only=True):  # unstable
    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class CancelRequestNotification(AcpStruct, kw_only=True):
    request_id: RequestId
    meta: dict[str, Any] | None = None


class ProxySuccessorRequest(AcpStruct, kw_only=True):  # unstable
    method: str
    params: Any = None
    meta: dict[str, Any] | None = None


class ProxySuccessorNotification(AcpStruct, kw_only=True):  # unstable
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
    "AgentAuthCapabilities", "AgentCapabilities", "AgentMessageChunk", "AgentThoughtChunk", "Annotations",
    "ArchiveSessionRequest", "ArchiveSessionResponse", "AudioContent", "AuthAccount", "AuthCapabilities", "AuthMethod",
    "AuthMethodAgent", "AuthMethodId", "AuthMethodTerminal", "AuthState", "AuthStatusCapabilities", "AuthStatusRequest",
    "AuthStatusResponse", "AuthStatusUpdateNotification", "AuthenticateRequest", "AuthenticateResponse",
    "AvailableCommand", "AvailableCommandInput", "AvailableCommandsUpdate", "BlobResourceContents",
    "BooleanConfigOptionCapabilities", "BooleanPropertySchema", "CancelNotification", "CancelRequestNotification",
    "CancelledPermissionOutcome", "ClientCapabilities", "ClientSessionCapabilities", "CloseSessionRequest",
    "CloseSessionResponse", "CompactionCapabilities", "CompactionId", "CompactionStatus", "CompactionSummaryChunk",
    "CompactionUpdate", "CompleteElicitationNotification", "ConfigOptionUpdate", "Content", "ContentBlock",
    "ContentChunk", "Cost", "CreateElicitationRequest", "CreateElicitationResponse", "CreateTerminalRequest",
    "CreateTerminalResponse", "CurrentModeUpdate", "DeleteSessionRequest", "DeleteSessionResponse", "Diff",
    "DisableProviderRequest", "DisableProviderResponse", "ElicitationAcceptAction", "ElicitationCancelAction",
    "ElicitationCapabilities", "ElicitationContentValue", "ElicitationDeclineAction", "ElicitationFormCapabilities",
    "ElicitationFormMode", "ElicitationId", "ElicitationPropertySchema", "ElicitationSchema", "ElicitationSchemaType",
    "ElicitationUrlCapabilities", "ElicitationUrlMode", "EmbeddedResource", "EmbeddedResourceResource", "EnumOption",
    "EnvVariable", "Error", "ErrorCode", "ExtNotification", "ExtRequest", "ExtResponse", "FileSystemCapabilities",
    "ForkSessionRequest", "ForkSessionResponse", "FormElicitationForRequest", "FormElicitationForSession", "HttpHeader",
    "ImageContent", "Implementation", "InitializeProxyRequest", "InitializeProxyResponse", "InitializeRequest",
    "InitializeResponse", "IntegerPropertySchema", "KillTerminalRequest", "KillTerminalResponse",
    "ListProvidersRequest", "ListProvidersResponse", "ListSessionsRequest", "ListSessionsResponse", "LlmProtocol",
    "LoadSessionRequest", "LoadSessionResponse", "LogoutCapabilities", "LogoutRequest", "LogoutResponse",
    "McpCapabilities", "McpError", "McpRequestId", "McpServer", "McpServerAcp", "McpServerAcpId", "McpServerHttp",
    "McpServerSse", "McpServerStdio", "MessageId", "MessageMcpError", "MessageMcpNotification", "MessageMcpRequest",
    "MessageMcpResponse", "MessageMcpResult", "MultiSelectItems", "MultiSelectPropertySchema", "NewSessionRequest",
    "NewSessionResponse", "Notice", "NoticeCapabilities", "NoticeSeverity", "NumberPropertySchema", "PermissionOption",
    "PermissionOptionId", "PermissionOptionKind", "Plan", "PlanCapabilities", "PlanEntry", "PlanEntryPriority",
    "PlanEntryStatus", "PlanFile", "PlanId", "PlanItems", "PlanMarkdown", "PlanRemoved", "PlanUpdate",
    "PlanUpdateContent", "PromptCapabilities", "PromptRequest", "PromptResponse", "ProtocolVersion",
    "ProviderCurrentConfig", "ProviderId", "ProviderInfo", "ProvidersCapabilities", "ProxySuccessorNotification",
    "ProxySuccessorRequest", "ProxySuccessorResponse", "ReadTextFileRequest", "ReadTextFileResponse",
    "ReleaseTerminalRequest", "ReleaseTerminalResponse", "RequestId", "RequestPermissionOutcome",
    "RequestPermissionRequest", "RequestPermissionResponse", "ResourceLink", "ResumeSessionRequest",
    "ResumeSessionResponse", "Role", "SelectedPermissionOutcome", "SessionAdditionalDirectoriesCapabilities",
    "SessionArchiveCapabilities", "SessionArchiveFilter", "SessionCancelCapabilities", "SessionCapabilities",
    "SessionCloseCapabilities", "SessionConfigBoolean", "SessionConfigGroupId", "SessionConfigId",
    "SessionConfigOption", "SessionConfigOptionCategory", "SessionConfigOptionsCapabilities", "SessionConfigSelect",
    "SessionConfigSelectGroup", "SessionConfigSelectOption", "SessionConfigSelectOptions", "SessionConfigValueId",
    "SessionDeleteCapabilities", "SessionForkCapabilities", "SessionId", "SessionInfo", "SessionInfoUpdate",
    "SessionListCapabilities", "SessionMessage", "SessionMessageChunk", "SessionMode", "SessionModeId",
    "SessionModeState", "SessionNotification", "SessionResumeCapabilities", "SessionStatus",
    "SessionStatusCapabilities", "SessionStatusRequest", "SessionStatusResponse", "SessionSystemPromptCapabilities",
    "SessionSystemPromptModeCapabilities", "SessionSystemPromptOverrideCapabilities", "SessionTitleCapabilities",
    "SessionUpdate", "SetProviderRequest", "SetProviderResponse", "SetSessionConfigOptionBoolean",
    "SetSessionConfigOptionRequest", "SetSessionConfigOptionResponse", "SetSessionConfigOptionValueId",
    "SetSessionModeRequest", "SetSessionModeResponse", "SetSessionTitleRequest", "SetSessionTitleResponse",
    "StateUpdate", "StopReason", "StringFormat", "StringMultiSelectItems", "StringPropertySchema",
    "SubagentCapabilities", "SubagentSessionCapabilities", "SubagentUpdate", "SystemPrompt", "SystemPromptMode",
    "Terminal", "TerminalExitStatus", "TerminalId", "TerminalOutputRequest", "TerminalOutputResponse", "TextContent",
    "TextResourceContents", "TitledMultiSelectItems", "ToolCall", "ToolCallContent", "ToolCallId", "ToolCallLocation",
    "ToolCallProgress", "ToolCallStatus", "ToolCallUpdate", "ToolKind", "UnarchiveSessionRequest",
    "UnarchiveSessionResponse", "UnknownVariant", "UnstructuredCommandInput", "UrlElicitationForRequest",
    "UrlElicitationForSession", "Usage", "UsageUpdate", "UserMessageChunk", "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse", "WriteTextFileRequest", "WriteTextFileResponse",
]
