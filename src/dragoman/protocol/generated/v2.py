"""The types of ACP, version 2, as msgspec structs.

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


RequestId = Int64 | str
SessionId = str
ToolCallId = str
ToolKind = str
ToolCallStatus = str
Role = str
MediaType = str
IconTheme = str
DiffFileType = str
AbsolutePath = str
DiffPatchFormat = str
TerminalId = str
PermissionOptionId = str
PermissionOptionKind = str
ElicitationSchemaType = Literal["object"]
StringFormat = str
ElicitationId = str
McpServerAcpId = str  # unstable
McpRequestId = str  # unstable
ExtRequest = Any
ProtocolVersion = UInt16
AuthMethodId = str
ProviderId = str  # unstable
LlmProtocol = str  # unstable
AuthState = str  # unstable
SessionConfigId = str
SessionConfigOptionCategory = str
SessionConfigValueId = str
SessionConfigGroupId = str
SessionListCursor = str
SessionStatus = str  # unstable
ErrorCode = Int32
ErrorData = Any
MessageId = str
ExtResponse = Any
PlanId = str
PlanEntryPriority = str
PlanEntryStatus = str
NoticeSeverity = str
CompactionId = str
CompactionStatus = str
ExtNotification = Any
SystemPromptMode = str  # unstable
SessionArchiveFilter = str  # unstable
ElicitationContentValue = Any
ProxySuccessorResponse = Any  # unstable


class RequestPermissionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    title: str
    description: str | None = None
    subject: RequestPermissionSubject | None = None
    options: list[PermissionOption]
    meta: dict[str, Any] | None = None


class ToolCallPermissionSubject(AcpStruct, tag_field="type", tag="tool_call", kw_only=True):
    tool_call: ToolCallUpdate
    meta: dict[str, Any] | None = None


class CommandPermissionSubject(AcpStruct, tag_field="type", tag="command", kw_only=True):
    command: str
    cwd: AbsolutePath
    tool_call_id: ToolCallId | None = None
    terminal_id: TerminalId | None = None
    meta: dict[str, Any] | None = None


class ToolCallUpdate(AcpStruct, kw_only=True):
    tool_call_id: ToolCallId
    name: str | None | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    kind: ToolKind | None | UnsetType = UNSET
    status: ToolCallStatus | None | UnsetType = UNSET
    content: list[ToolCallContent] | None | UnsetType = UNSET
    locations: list[ToolCallLocation] | None | UnsetType = UNSET
    raw_input: Any = UNSET
    raw_output: Any = UNSET
    capabilities: ToolCallCapabilities | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class Content(AcpStruct, tag_field="type", tag="content", kw_only=True):
    content: ContentBlock
    meta: dict[str, Any] | None = None


class Diff(AcpStruct, tag_field="type", tag="diff", kw_only=True):
    changes: list[DiffChange]
    patch: DiffPatch | None = None
    meta: dict[str, Any] | None = None


class Terminal(AcpStruct, tag_field="type", tag="terminal", kw_only=True):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class TextContent(AcpStruct, tag_field="type", tag="text", kw_only=True):
    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class ImageContent(AcpStruct, tag_field="type", tag="image", kw_only=True):
    data: str
    mime_type: MediaType
    uri: str | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class AudioContent(AcpStruct, tag_field="type", tag="audio", kw_only=True):
    data: str
    mime_type: MediaType
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class ResourceLink(AcpStruct, tag_field="type", tag="resource_link", kw_only=True):
    name: str
    uri: str
    title: str | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    mime_type: MediaType | None = None
    size: UInt64 | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class EmbeddedResource(AcpStruct, tag_field="type", tag="resource", kw_only=True):
    resource: EmbeddedResourceResource
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class Annotations(AcpStruct, kw_only=True):
    audience: list[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None
    meta: dict[str, Any] | None = None


class Icon(AcpStruct, kw_only=True):
    src: str
    mime_type: MediaType | None = None
    sizes: list[str] | None = None
    theme: IconTheme | None = None
    meta: dict[str, Any] | None = None


class TextResourceContents(AcpStruct, kw_only=True):
    text: str
    uri: str
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class BlobResourceContents(AcpStruct, kw_only=True):
    blob: str
    uri: str
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffPathChange(AcpStruct, kw_only=True):
    path: AbsolutePath


class DiffAdd(DiffPathChange, tag_field="operation", tag="add", kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffDelete(DiffPathChange, tag_field="operation", tag="delete", kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffModify(DiffPathChange, tag_field="operation", tag="modify", kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffPathPairChange(AcpStruct, kw_only=True):
    old_path: AbsolutePath
    path: AbsolutePath


class DiffMove(DiffPathPairChange, tag_field="operation", tag="move", kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffCopy(DiffPathPairChange, tag_field="operation", tag="copy", kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class _DiffChangeOther(AcpStruct, kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffPatch(AcpStruct, kw_only=True):
    format: DiffPatchFormat
    text: str
    meta: dict[str, Any] | None = None


class ToolCallLocation(AcpStruct, kw_only=True):
    path: AbsolutePath
    line: UInt32 | None = None
    meta: dict[str, Any] | None = None


class ToolCallCapabilities(AcpStruct, kw_only=True):
    cancel: ToolCallCancelCapabilities | None = None
    meta: dict[str, Any] | None = None


class ToolCallCancelCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class PermissionOption(AcpStruct, kw_only=True):
    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind
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


class ElicitationSchema(AcpStruct, kw_only=True):
    type: ElicitationSchemaType
    title: str | None = None
    properties: dict[str, ElicitationPropertySchema]
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


class AgentCapabilities(AcpStruct, kw_only=True, frozen=True):
    session: SessionCapabilities | None = None
    auth: AgentAuthCapabilities | None = None
    providers: ProvidersCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class InitializeResponse(AcpStruct, kw_only=True):
    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = []
    meta: dict[str, Any] | None = None


class Implementation(AcpStruct, kw_only=True):
    name: str
    title: str | None = None
    version: str
    meta: dict[str, Any] | None = None


class SessionCapabilities(AcpStruct, kw_only=True):
    prompt: PromptCapabilities | None = None
    mcp: McpCapabilities | None = None
    delete: SessionDeleteCapabilities | None = None
    additional_directories: SessionAdditionalDirectoriesCapabilities | None = None
    system_prompt: SessionSystemPromptCapabilities | None = None  # unstable
    fork: SessionForkCapabilities | None = None  # unstable
    archive: SessionArchiveCapabilities | None = None  # unstable
    status: SessionStatusCapabilities | None = None  # unstable
    title: SessionTitleCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class PromptCapabilities(AcpStruct, kw_only=True):
    image: PromptImageCapabilities | None = None
    audio: PromptAudioCapabilities | None = None
    embedded_context: PromptEmbeddedContextCapabilities | None = None
    meta: dict[str, Any] | None = None


class PromptImageCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class PromptAudioCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class PromptEmbeddedContextCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class McpCapabilities(AcpStruct, kw_only=True):
    stdio: McpStdioCapabilities | None = None
    http: McpHttpCapabilities | None = None
    acp: McpAcpCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class McpStdioCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class McpHttpCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class McpAcpCapabilities(AcpStruct, kw_only=True):  # unstable
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


class AgentAuthCapabilities(AcpStruct, kw_only=True):
    status: AuthStatusCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class AuthStatusCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class ProvidersCapabilities(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class AuthMethodTerminal(AcpStruct, tag_field="type", tag="terminal", kw_only=True):
    method_id: AuthMethodId
    name: str
    description: str | None = None
    args: list[str] = []
    env: list[EnvVariable] = []
    meta: dict[str, Any] | None = None


class AuthMethodAgent(AcpStruct, tag_field="type", tag="agent", kw_only=True):
    method_id: AuthMethodId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class _AuthMethodOther(AcpStruct, kw_only=True):
    method_id: AuthMethodId
    name: str


class EnvVariable(AcpStruct, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class LoginAuthResponse(AcpStruct, kw_only=True):
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


class LogoutAuthResponse(AcpStruct, kw_only=True):
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
    config_options: list[SessionConfigOption] = []
    available_commands: list[AvailableCommand] = []
    meta: dict[str, Any] | None = None


class SessionConfigSelect(AcpStruct, tag_field="type", tag="select", kw_only=True):
    config_id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions
    meta: dict[str, Any] | None = None


class SessionConfigBoolean(AcpStruct, tag_field="type", tag="boolean", kw_only=True):
    config_id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: bool
    meta: dict[str, Any] | None = None


class _SessionConfigOptionOther(AcpStruct, kw_only=True):
    config_id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelectOption(AcpStruct, kw_only=True):
    value: SessionConfigValueId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelectGroup(AcpStruct, kw_only=True):
    group_id: SessionConfigGroupId
    name: str
    options: list[SessionConfigSelectOption]
    meta: dict[str, Any] | None = None


class Command(AcpStruct, tag_field="type", tag="command", kw_only=True):
    name: str
    description: str
    input: AvailableCommandInput | None = None
    meta: dict[str, Any] | None = None


class _AvailableCommandOther(AcpStruct, kw_only=True):
    name: str
    description: str


class TextCommandInput(AcpStruct, tag_field="type", tag="text", kw_only=True):
    hint: str
    meta: dict[str, Any] | None = None


class ListSessionsResponse(AcpStruct, kw_only=True):
    sessions: list[SessionInfo]
    next_cursor: SessionListCursor | None = None
    meta: dict[str, Any] | None = None


class SessionInfo(AcpStruct, kw_only=True):
    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
    title: str | None = None
    updated_at: str | None = None
    archived: bool | None = None  # unstable
    meta: dict[str, Any] | None = None


class DeleteSessionResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ForkSessionResponse(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    config_options: list[SessionConfigOption] = []
    available_commands: list[AvailableCommand] = []
    meta: dict[str, Any] | None = None


class ArchiveSessionResponse(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class UnarchiveSessionResponse(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class SessionStatusResponse(AcpStruct, kw_only=True):  # unstable
    status: SessionStatus
    state: StateUpdate | None = None
    meta: dict[str, Any] | None = None


class StateUpdate(AcpStruct, kw_only=True):
    state: str
    background: list[BackgroundWork] | None = None
    usage: Usage | None = None  # unstable
    stop_reason: str | None = None
    error: Error | None = None
    meta: dict[str, Any] | None = None


class BackgroundTerminal(AcpStruct, tag_field="type", tag="terminal", kw_only=True):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class BackgroundToolCall(AcpStruct, tag_field="type", tag="tool_call", kw_only=True):
    tool_call_id: ToolCallId
    meta: dict[str, Any] | None = None


class BackgroundSubagent(AcpStruct, tag_field="type", tag="subagent", kw_only=True):  # unstable
    session_id: SessionId
    meta: dict[str, Any] | None = None


class Error(AcpStruct, kw_only=True):
    code: ErrorCode
    message: str
    data: ErrorData | None = None


class UnsupportedProtocolVersionErrorData(AcpStruct, kw_only=True):
    requested: ProtocolVersion
    supported: list[ProtocolVersion]
    meta: dict[str, Any] | None = None


class SessionNotFoundErrorData(AcpStruct, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class Usage(AcpStruct, kw_only=True):  # unstable
    total_tokens: UInt64
    input_tokens: UInt64
    output_tokens: UInt64
    thought_tokens: UInt64 | None = None
    cached_read_tokens: UInt64 | None = None
    cached_write_tokens: UInt64 | None = None
    meta: dict[str, Any] | None = None


class SetSessionTitleResponse(AcpStruct, kw_only=True):  # unstable
    title: str
    meta: dict[str, Any] | None = None


class ResumeSessionResponse(AcpStruct, kw_only=True):
    config_options: list[SessionConfigOption] = []
    available_commands: list[AvailableCommand] = []
    meta: dict[str, Any] | None = None


class CloseSessionResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class CancelToolCallResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class CancelTerminalResponse(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionResponse(AcpStruct, kw_only=True):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = None


class PromptResponse(AcpStruct, kw_only=True):
    message_id: MessageId
    meta: dict[str, Any] | None = None


class UpdateSessionNotification(AcpStruct, kw_only=True):
    session_id: SessionId
    update: SessionUpdate
    meta: dict[str, Any] | None = None


class ContentChunk(AcpStruct, kw_only=True):
    message_id: MessageId
    content: ContentBlock
    meta: dict[str, Any] | None = None


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk", kw_only=True):
    pass


class UserMessage(AcpStruct, tag_field="sessionUpdate", tag="user_message", kw_only=True):
    message_id: MessageId
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk", kw_only=True):
    pass


class AgentMessage(AcpStruct, tag_field="sessionUpdate", tag="agent_message", kw_only=True):
    message_id: MessageId
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk", kw_only=True):
    pass


class AgentThought(AcpStruct, tag_field="sessionUpdate", tag="agent_thought", kw_only=True):
    message_id: MessageId
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class SessionStateUpdate(StateUpdate, tag_field="sessionUpdate", tag="state_update", kw_only=True):
    pass


class ToolCallContentChunk(AcpStruct, tag_field="sessionUpdate", tag="tool_call_content_chunk", kw_only=True):
    tool_call_id: ToolCallId
    content: ToolCallContent
    meta: dict[str, Any] | None = None


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update", kw_only=True):
    pass


class TerminalUpdate(AcpStruct, tag_field="sessionUpdate", tag="terminal_update", kw_only=True):
    terminal_id: TerminalId
    command: str | None | UnsetType = UNSET
    cwd: AbsolutePath | None | UnsetType = UNSET
    output: TerminalOutput | None | UnsetType = UNSET
    exit_status: TerminalExitStatus | None | UnsetType = UNSET
    size: TerminalSize | None | UnsetType = UNSET
    capabilities: TerminalCapabilities | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class TerminalOutputChunk(AcpStruct, tag_field="sessionUpdate", tag="terminal_output_chunk", kw_only=True):
    terminal_id: TerminalId
    data: str
    meta: dict[str, Any] | None = None


class PlanUpdate(AcpStruct, tag_field="sessionUpdate", tag="plan_update", kw_only=True):
    plan: PlanUpdateContent
    meta: dict[str, Any] | None = None


class PlanRemoved(AcpStruct, tag_field="sessionUpdate", tag="plan_removed", kw_only=True):  # unstable
    plan_id: PlanId
    meta: dict[str, Any] | None = None


class AvailableCommandsUpdate(AcpStruct, tag_field="sessionUpdate", tag="available_commands_update", kw_only=True):
    available_commands: list[AvailableCommand]
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
    cwd: AbsolutePath | None | UnsetType = UNSET
    additional_directories: list[AbsolutePath] | None | UnsetType = UNSET
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


class TerminalOutput(AcpStruct, kw_only=True):
    data: str
    meta: dict[str, Any] | None = None


class TerminalExitStatus(AcpStruct, kw_only=True):
    exit_code: Int64 | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = None


class TerminalSize(AcpStruct, kw_only=True):
    cols: UInt16
    rows: UInt16
    meta: dict[str, Any] | None = None


class TerminalCapabilities(AcpStruct, kw_only=True):
    cancel: TerminalCancelCapabilities | None = None
    meta: dict[str, Any] | None = None


class TerminalCancelCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class PlanItems(AcpStruct, tag_field="type", tag="items", kw_only=True):
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


class _PlanUpdateContentOther(AcpStruct, kw_only=True):
    plan_id: PlanId


class PlanEntry(AcpStruct, kw_only=True):
    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus
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


class CompleteElicitationNotification(AcpStruct, kw_only=True):
    elicitation_id: ElicitationId
    meta: dict[str, Any] | None = None


class AuthStatusUpdateNotification(AcpStruct, kw_only=True):  # unstable
    state: AuthState
    accounts: list[AuthAccount] = []
    meta: dict[str, Any] | None = None


class ClientCapabilities(AcpStruct, kw_only=True, frozen=True):
    auth: ClientAuthCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None
    meta: dict[str, Any] | None = None


class InitializeRequest(AcpStruct, kw_only=True):
    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: ClientCapabilities = ClientCapabilities()
    meta: dict[str, Any] | None = None


class ClientAuthCapabilities(AcpStruct, kw_only=True):
    terminal: TerminalAuthCapabilities | None = None
    meta: dict[str, Any] | None = None


class TerminalAuthCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ElicitationCapabilities(AcpStruct, kw_only=True):
    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None
    meta: dict[str, Any] | None = None


class ElicitationFormCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class ElicitationUrlCapabilities(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class LoginAuthRequest(AcpStruct, kw_only=True):
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


class LogoutAuthRequest(AcpStruct, kw_only=True):
    meta: dict[str, Any] | None = None


class AuthStatusRequest(AcpStruct, kw_only=True):  # unstable
    meta: dict[str, Any] | None = None


class NewSessionRequest(AcpStruct, kw_only=True):
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
    mcp_servers: list[McpServer] = []
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class McpServerHttp(AcpStruct, tag_field="type", tag="http", kw_only=True):
    name: str
    url: str
    headers: list[HttpHeader] = []
    meta: dict[str, Any] | None = None


class McpServerAcp(AcpStruct, tag_field="type", tag="acp", kw_only=True):  # unstable
    name: str
    server_id: McpServerAcpId
    meta: dict[str, Any] | None = None


class McpServerStdio(AcpStruct, tag_field="type", tag="stdio", kw_only=True):
    name: str
    command: AbsolutePath
    args: list[str] = []
    env: list[EnvVariable] = []
    meta: dict[str, Any] | None = None


class HttpHeader(AcpStruct, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class SystemPrompt(AcpStruct, kw_only=True):  # unstable
    mode: SystemPromptMode
    content: list[ContentBlock]
    meta: dict[str, Any] | None = None


class ListSessionsRequest(AcpStruct, kw_only=True):
    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
    archived: SessionArchiveFilter | None = None  # unstable
    meta: dict[str, Any] | None = None


class DeleteSessionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class ForkSessionRequest(AcpStruct, kw_only=True):  # unstable
    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
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
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
    mcp_servers: list[McpServer] = []
    replay_from: ReplayFrom | None = None
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class ReplayFromStart(AcpStruct, tag_field="type", tag="start", kw_only=True):
    meta: dict[str, Any] | None = None


class CloseSessionRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class CancelToolCallRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    tool_call_id: ToolCallId
    meta: dict[str, Any] | None = None


class CancelTerminalRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionId(AcpStruct, tag_field="type", tag="id", kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    value: SessionConfigValueId
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionBoolean(AcpStruct, tag_field="type", tag="boolean", kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    value: bool
    meta: dict[str, Any] | None = None


class _SetSessionConfigOptionRequestOther(AcpStruct, kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    value: Any
    meta: dict[str, Any] | None = None


class PromptRequest(AcpStruct, kw_only=True):
    session_id: SessionId
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = None


class RequestPermissionResponse(AcpStruct, kw_only=True):
    outcome: RequestPermissionOutcome
    meta: dict[str, Any] | None = None


class CancelledPermissionOutcome(AcpStruct, tag_field="outcome", tag="cancelled", kw_only=True):
    meta: dict[str, Any] | None = None


class SelectedPermissionOutcome(AcpStruct, tag_field="outcome", tag="selected", kw_only=True):
    option_id: PermissionOptionId
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


class CancelSessionNotification(AcpStruct, kw_only=True):
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
InitializeProxyRequest = InitializeRequest  # unstable
InitializeProxyResponse = InitializeResponse  # unstable


if TYPE_CHECKING:
    RequestPermissionSubject = ToolCallPermissionSubject | CommandPermissionSubject | UnknownVariant
    ToolCallContent = Content | Diff | Terminal | UnknownVariant
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownVariant
    EmbeddedResourceResource = TextResourceContents | BlobResourceContents
    DiffChange = DiffAdd | DiffDelete | DiffModify | DiffMove | DiffCopy | UnknownVariant
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
    AuthMethod = AuthMethodTerminal | AuthMethodAgent | UnknownVariant
    SessionConfigOption = SessionConfigSelect | SessionConfigBoolean | UnknownVariant
    SessionConfigSelectOptions = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
    AvailableCommand = Command | UnknownVariant
    AvailableCommandInput = TextCommandInput | UnknownVariant
    BackgroundWork = BackgroundTerminal | BackgroundToolCall | BackgroundSubagent | UnknownVariant
    SessionUpdate = (
        UserMessageChunk
        | UserMessage
        | AgentMessageChunk
        | AgentMessage
        | AgentThoughtChunk
        | AgentThought
        | SessionStateUpdate
        | ToolCallContentChunk
        | ToolCallProgress
        | TerminalUpdate
        | TerminalOutputChunk
        | PlanUpdate
        | PlanRemoved
        | AvailableCommandsUpdate
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
    PlanUpdateContent = PlanItems | PlanFile | PlanMarkdown | UnknownVariant
    McpServer = McpServerHttp | McpServerAcp | McpServerStdio | UnknownVariant
    ReplayFrom = ReplayFromStart | UnknownVariant
    SetSessionConfigOptionRequest = SetSessionConfigOptionId | SetSessionConfigOptionBoolean | UnknownVariant
    RequestPermissionOutcome = CancelledPermissionOutcome | SelectedPermissionOutcome | UnknownVariant
    CreateElicitationResponse = (
        ElicitationAcceptAction
        | ElicitationDeclineAction
        | ElicitationCancelAction
        | UnknownVariant
    )
    MessageMcpResponse = MessageMcpResult | MessageMcpError  # unstable
else:

    class RequestPermissionSubject(
        AnyOf,
        tag_field="type",
        tagged={"tool_call": (ToolCallPermissionSubject,), "command": (CommandPermissionSubject,)},
        other=(),
    ):
        pass

    class ToolCallContent(
        AnyOf,
        tag_field="type",
        tagged={"content": (Content,), "diff": (Diff,), "terminal": (Terminal,)},
        other=(),
    ):
        pass

    class ContentBlock(
        AnyOf,
        tag_field="type",
        tagged={
            "text": (TextContent,),
            "image": (ImageContent,),
            "audio": (AudioContent,),
            "resource_link": (ResourceLink,),
            "resource": (EmbeddedResource,),
        },
        other=(),
    ):
        pass

    class EmbeddedResourceResource(AnyOf, untagged=(TextResourceContents, BlobResourceContents)):
        pass

    class DiffChange(
        AnyOf,
        tag_field="operation",
        tagged={
            "add": (DiffAdd,),
            "delete": (DiffDelete,),
            "modify": (DiffModify,),
            "move": (DiffMove,),
            "copy": (DiffCopy,),
        },
        other=(_DiffChangeOther,),
    ):
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

    class AuthMethod(
        AnyOf,
        tag_field="type",
        tagged={"terminal": (AuthMethodTerminal,), "agent": (AuthMethodAgent,)},
        other=(_AuthMethodOther,),
    ):
        pass

    class SessionConfigOption(
        AnyOf,
        tag_field="type",
        tagged={"select": (SessionConfigSelect,), "boolean": (SessionConfigBoolean,)},
        other=(_SessionConfigOptionOther,),
    ):
        pass

    class SessionConfigSelectOptions(AnyOf, untagged=(list[SessionConfigSelectOption], list[SessionConfigSelectGroup])):
        pass

    class AvailableCommand(AnyOf, tag_field="type", tagged={"command": (Command,)}, other=(_AvailableCommandOther,)):
        pass

    class AvailableCommandInput(AnyOf, tag_field="type", tagged={"text": (TextCommandInput,)}, other=()):
        pass

    class BackgroundWork(
        AnyOf,
        tag_field="type",
        tagged={
            "terminal": (BackgroundTerminal,),
            "tool_call": (BackgroundToolCall,),
            "subagent": (BackgroundSubagent,),
        },
        other=(),
    ):
        pass

    class SessionUpdate(
        AnyOf,
        tag_field="sessionUpdate",
        tagged={
            "user_message_chunk": (UserMessageChunk,),
            "user_message": (UserMessage,),
            "agent_message_chunk": (AgentMessageChunk,),
            "agent_message": (AgentMessage,),
            "agent_thought_chunk": (AgentThoughtChunk,),
            "agent_thought": (AgentThought,),
            "state_update": (SessionStateUpdate,),
            "tool_call_content_chunk": (ToolCallContentChunk,),
            "tool_call_update": (ToolCallProgress,),
            "terminal_update": (TerminalUpdate,),
            "terminal_output_chunk": (TerminalOutputChunk,),
            "plan_update": (PlanUpdate,),
            "plan_removed": (PlanRemoved,),
            "available_commands_update": (AvailableCommandsUpdate,),
            "config_option_update": (ConfigOptionUpdate,),
            "session_info_update": (SessionInfoUpdate,),
            "usage_update": (UsageUpdate,),
            "notice": (Notice,),
            "compaction_update": (CompactionUpdate,),
            "compaction_summary_chunk": (CompactionSummaryChunk,),
            "subagent_update": (SubagentUpdate,),
            "session_message": (SessionMessage,),
            "session_message_chunk": (SessionMessageChunk,),
        },
        other=(),
    ):
        pass

    class PlanUpdateContent(
        AnyOf,
        tag_field="type",
        tagged={"items": (PlanItems,), "file": (PlanFile,), "markdown": (PlanMarkdown,)},
        other=(_PlanUpdateContentOther,),
    ):
        pass

    class McpServer(
        AnyOf,
        tag_field="type",
        tagged={"http": (McpServerHttp,), "acp": (McpServerAcp,), "stdio": (McpServerStdio,)},
        other=(),
    ):
        pass

    class ReplayFrom(AnyOf, tag_field="type", tagged={"start": (ReplayFromStart,)}, other=()):
        pass

    class SetSessionConfigOptionRequest(
        AnyOf,
        tag_field="type",
        tagged={"id": (SetSessionConfigOptionId,), "boolean": (SetSessionConfigOptionBoolean,)},
        other=(_SetSessionConfigOptionRequestOther,),
    ):
        pass

    class RequestPermissionOutcome(
        AnyOf,
        tag_field="outcome",
        tagged={"cancelled": (CancelledPermissionOutcome,), "selected": (SelectedPermissionOutcome,)},
        other=(),
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
    "AbsolutePath", "AgentAuthCapabilities", "AgentCapabilities", "AgentMessage", "AgentMessageChunk", "AgentThought",
    "AgentThoughtChunk", "Annotations", "ArchiveSessionRequest", "ArchiveSessionResponse", "AudioContent",
    "AuthAccount", "AuthMethod", "AuthMethodAgent", "AuthMethodId", "AuthMethodTerminal", "AuthState",
    "AuthStatusCapabilities", "AuthStatusRequest", "AuthStatusResponse", "AuthStatusUpdateNotification",
    "AvailableCommand", "AvailableCommandInput", "AvailableCommandsUpdate", "BackgroundSubagent", "BackgroundTerminal",
    "BackgroundToolCall", "BackgroundWork", "BlobResourceContents", "BooleanPropertySchema",
    "CancelRequestNotification", "CancelSessionNotification", "CancelTerminalRequest", "CancelTerminalResponse",
    "CancelToolCallRequest", "CancelToolCallResponse", "CancelledPermissionOutcome", "ClientAuthCapabilities",
    "ClientCapabilities", "CloseSessionRequest", "CloseSessionResponse", "Command", "CommandPermissionSubject",
    "CompactionId", "CompactionStatus", "CompactionSummaryChunk", "CompactionUpdate", "CompleteElicitationNotification",
    "ConfigOptionUpdate", "Content", "ContentBlock", "ContentChunk", "Cost", "CreateElicitationRequest",
    "CreateElicitationResponse", "DeleteSessionRequest", "DeleteSessionResponse", "Diff", "DiffAdd", "DiffChange",
    "DiffCopy", "DiffDelete", "DiffFileType", "DiffModify", "DiffMove", "DiffPatch", "DiffPatchFormat",
    "DiffPathChange", "DiffPathPairChange", "DisableProviderRequest", "DisableProviderResponse",
    "ElicitationAcceptAction", "ElicitationCancelAction", "ElicitationCapabilities", "ElicitationContentValue",
    "ElicitationDeclineAction", "ElicitationFormCapabilities", "ElicitationFormMode", "ElicitationId",
    "ElicitationPropertySchema", "ElicitationSchema", "ElicitationSchemaType", "ElicitationUrlCapabilities",
    "ElicitationUrlMode", "EmbeddedResource", "EmbeddedResourceResource", "EnumOption", "EnvVariable", "Error",
    "ErrorCode", "ErrorData", "ExtNotification", "ExtRequest", "ExtResponse", "ForkSessionRequest",
    "ForkSessionResponse", "FormElicitationForRequest", "FormElicitationForSession", "HttpHeader", "Icon", "IconTheme",
    "ImageContent", "Implementation", "InitializeProxyRequest", "InitializeProxyResponse", "InitializeRequest",
    "InitializeResponse", "IntegerPropertySchema", "ListProvidersRequest", "ListProvidersResponse",
    "ListSessionsRequest", "ListSessionsResponse", "LlmProtocol", "LoginAuthRequest", "LoginAuthResponse",
    "LogoutAuthRequest", "LogoutAuthResponse", "McpAcpCapabilities", "McpCapabilities", "McpError",
    "McpHttpCapabilities", "McpRequestId", "McpServer", "McpServerAcp", "McpServerAcpId", "McpServerHttp",
    "McpServerStdio", "McpStdioCapabilities", "MediaType", "MessageId", "MessageMcpError", "MessageMcpNotification",
    "MessageMcpRequest", "MessageMcpResponse", "MessageMcpResult", "MultiSelectItems", "MultiSelectPropertySchema",
    "NewSessionRequest", "NewSessionResponse", "Notice", "NoticeSeverity", "NumberPropertySchema", "PermissionOption",
    "PermissionOptionId", "PermissionOptionKind", "PlanEntry", "PlanEntryPriority", "PlanEntryStatus", "PlanFile",
    "PlanId", "PlanItems", "PlanMarkdown", "PlanRemoved", "PlanUpdate", "PlanUpdateContent", "PromptAudioCapabilities",
    "PromptCapabilities", "PromptEmbeddedContextCapabilities", "PromptImageCapabilities", "PromptRequest",
    "PromptResponse", "ProtocolVersion", "ProviderCurrentConfig", "ProviderId", "ProviderInfo", "ProvidersCapabilities",
    "ProxySuccessorNotification", "ProxySuccessorRequest", "ProxySuccessorResponse", "ReplayFrom", "ReplayFromStart",
    "RequestId", "RequestPermissionOutcome", "RequestPermissionRequest", "RequestPermissionResponse",
    "RequestPermissionSubject", "ResourceLink", "ResumeSessionRequest", "ResumeSessionResponse", "Role",
    "SelectedPermissionOutcome", "SessionAdditionalDirectoriesCapabilities", "SessionArchiveCapabilities",
    "SessionArchiveFilter", "SessionCancelCapabilities", "SessionCapabilities", "SessionConfigBoolean",
    "SessionConfigGroupId", "SessionConfigId", "SessionConfigOption", "SessionConfigOptionCategory",
    "SessionConfigSelect", "SessionConfigSelectGroup", "SessionConfigSelectOption", "SessionConfigSelectOptions",
    "SessionConfigValueId", "SessionDeleteCapabilities", "SessionForkCapabilities", "SessionId", "SessionInfo",
    "SessionInfoUpdate", "SessionListCursor", "SessionMessage", "SessionMessageChunk", "SessionNotFoundErrorData",
    "SessionStateUpdate", "SessionStatus", "SessionStatusCapabilities", "SessionStatusRequest", "SessionStatusResponse",
    "SessionSystemPromptCapabilities", "SessionSystemPromptModeCapabilities", "SessionSystemPromptOverrideCapabilities",
    "SessionTitleCapabilities", "SessionUpdate", "SetProviderRequest", "SetProviderResponse",
    "SetSessionConfigOptionBoolean", "SetSessionConfigOptionId", "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse", "SetSessionTitleRequest", "SetSessionTitleResponse", "StateUpdate",
    "StringFormat", "StringMultiSelectItems", "StringPropertySchema", "SubagentSessionCapabilities", "SubagentUpdate",
    "SystemPrompt", "SystemPromptMode", "Terminal", "TerminalAuthCapabilities", "TerminalCancelCapabilities",
    "TerminalCapabilities", "TerminalExitStatus", "TerminalId", "TerminalOutput", "TerminalOutputChunk", "TerminalSize",
    "TerminalUpdate", "TextCommandInput", "TextContent", "TextResourceContents", "TitledMultiSelectItems",
    "ToolCallCancelCapabilities", "ToolCallCapabilities", "ToolCallContent", "ToolCallContentChunk", "ToolCallId",
    "ToolCallLocation", "ToolCallPermissionSubject", "ToolCallProgress", "ToolCallStatus", "ToolCallUpdate", "ToolKind",
    "UnarchiveSessionRequest", "UnarchiveSessionResponse", "UnknownVariant", "UnsupportedProtocolVersionErrorData",
    "UpdateSessionNotification", "UrlElicitationForRequest", "UrlElicitationForSession", "Usage", "UsageUpdate",
    "UserMessage", "UserMessageChunk",
]
