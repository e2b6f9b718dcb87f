"""The types of ACP, version 2, as msgspec structs.

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


class RequestPermissionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    title: str
    description: str | None = None
    subject: RequestPermissionSubject | None = None
    options: list[PermissionOption]
    meta: dict[str, Any] | None = None


class ToolCallPermissionSubject(
    Struct,
    tag_field="type",
    tag="tool_call",
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call": "toolCall", "meta": "_meta"},
):
    tool_call: ToolCallUpdate
    meta: dict[str, Any] | None = None


class CommandPermissionSubject(
    Struct,
    tag_field="type",
    tag="command",
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call_id": "toolCallId", "terminal_id": "terminalId", "meta": "_meta"},
):
    command: str
    cwd: AbsolutePath
    tool_call_id: ToolCallId | None = None
    terminal_id: TerminalId | None = None
    meta: dict[str, Any] | None = None


class ToolCallUpdate(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call_id": "toolCallId", "raw_input": "rawInput", "raw_output": "rawOutput", "meta": "_meta"},
):
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


class Content(Struct, tag_field="type", tag="content", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    content: ContentBlock
    meta: dict[str, Any] | None = None


class Diff(Struct, tag_field="type", tag="diff", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    changes: list[DiffChange]
    patch: DiffPatch | None = None
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
    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class ImageContent(
    Struct,
    tag_field="type",
    tag="image",
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
):
    data: str
    mime_type: MediaType
    uri: str | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class AudioContent(
    Struct,
    tag_field="type",
    tag="audio",
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
):
    data: str
    mime_type: MediaType
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class ResourceLink(
    Struct,
    tag_field="type",
    tag="resource_link",
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
):
    name: str
    uri: str
    title: str | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    mime_type: MediaType | None = None
    size: UInt64 | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class EmbeddedResource(
    Struct,
    tag_field="type",
    tag="resource",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    resource: EmbeddedResourceResource
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class Annotations(Struct, kw_only=True, omit_defaults=True, rename={"last_modified": "lastModified", "meta": "_meta"}):
    audience: list[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None
    meta: dict[str, Any] | None = None


class Icon(Struct, kw_only=True, omit_defaults=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    src: str
    mime_type: MediaType | None = None
    sizes: list[str] | None = None
    theme: IconTheme | None = None
    meta: dict[str, Any] | None = None


class TextResourceContents(Struct, kw_only=True, omit_defaults=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    text: str
    uri: str
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class BlobResourceContents(Struct, kw_only=True, omit_defaults=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    blob: str
    uri: str
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffPathChange(Struct, kw_only=True, omit_defaults=True):
    path: AbsolutePath


class DiffAdd(
    DiffPathChange,
    tag_field="operation",
    tag="add",
    kw_only=True,
    omit_defaults=True,
    rename={"file_type": "fileType", "mime_type": "mimeType", "meta": "_meta"},
):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffDelete(
    DiffPathChange,
    tag_field="operation",
    tag="delete",
    kw_only=True,
    omit_defaults=True,
    rename={"file_type": "fileType", "mime_type": "mimeType", "meta": "_meta"},
):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffModify(
    DiffPathChange,
    tag_field="operation",
    tag="modify",
    kw_only=True,
    omit_defaults=True,
    rename={"file_type": "fileType", "mime_type": "mimeType", "meta": "_meta"},
):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffPathPairChange(Struct, kw_only=True, omit_defaults=True, rename={"old_path": "oldPath"}):
    old_path: AbsolutePath
    path: AbsolutePath


class DiffMove(
    DiffPathPairChange,
    tag_field="operation",
    tag="move",
    kw_only=True,
    omit_defaults=True,
    rename={"file_type": "fileType", "mime_type": "mimeType", "meta": "_meta"},
):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffCopy(
    DiffPathPairChange,
    tag_field="operation",
    tag="copy",
    kw_only=True,
    omit_defaults=True,
    rename={"file_type": "fileType", "mime_type": "mimeType", "meta": "_meta"},
):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class _DiffChangeOther(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"file_type": "fileType", "mime_type": "mimeType", "meta": "_meta"},
):
    file_type: DiffFileType | None = None
    mime_type: MediaType | None = None
    meta: dict[str, Any] | None = None


class DiffPatch(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    format: DiffPatchFormat
    text: str
    meta: dict[str, Any] | None = None


class ToolCallLocation(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    path: AbsolutePath
    line: UInt32 | None = None
    meta: dict[str, Any] | None = None


class ToolCallCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    cancel: ToolCallCancelCapabilities | None = None
    meta: dict[str, Any] | None = None


class ToolCallCancelCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class PermissionOption(Struct, kw_only=True, omit_defaults=True, rename={"option_id": "optionId", "meta": "_meta"}):
    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind
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


class ElicitationSchema(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    type: ElicitationSchemaType
    title: str | None = None
    properties: dict[str, ElicitationPropertySchema]
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


class AgentCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    session: SessionCapabilities | None = None
    auth: AgentAuthCapabilities | None = None
    providers: ProvidersCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class InitializeResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"protocol_version": "protocolVersion", "auth_methods": "authMethods", "meta": "_meta"},
):
    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = []
    meta: dict[str, Any] | None = None


class Implementation(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    title: str | None = None
    version: str
    meta: dict[str, Any] | None = None


class SessionCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"additional_directories": "additionalDirectories", "system_prompt": "systemPrompt", "meta": "_meta"},
):
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


class PromptCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"embedded_context": "embeddedContext", "meta": "_meta"},
):
    image: PromptImageCapabilities | None = None
    audio: PromptAudioCapabilities | None = None
    embedded_context: PromptEmbeddedContextCapabilities | None = None
    meta: dict[str, Any] | None = None


class PromptImageCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class PromptAudioCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class PromptEmbeddedContextCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class McpCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    stdio: McpStdioCapabilities | None = None
    http: McpHttpCapabilities | None = None
    acp: McpAcpCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class McpStdioCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class McpHttpCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class McpAcpCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
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


class AgentAuthCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    status: AuthStatusCapabilities | None = None  # unstable
    meta: dict[str, Any] | None = None


class AuthStatusCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class ProvidersCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class AuthMethodTerminal(
    Struct,
    tag_field="type",
    tag="terminal",
    kw_only=True,
    omit_defaults=True,
    rename={"method_id": "methodId", "meta": "_meta"},
):
    method_id: AuthMethodId
    name: str
    description: str | None = None
    args: list[str] = []
    env: list[EnvVariable] = []
    meta: dict[str, Any] | None = None


class AuthMethodAgent(
    Struct,
    tag_field="type",
    tag="agent",
    kw_only=True,
    omit_defaults=True,
    rename={"method_id": "methodId", "meta": "_meta"},
):
    method_id: AuthMethodId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class _AuthMethodOther(Struct, kw_only=True, omit_defaults=True, rename={"method_id": "methodId"}):
    method_id: AuthMethodId
    name: str


class EnvVariable(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class LoginAuthResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
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


class LogoutAuthResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
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
    rename={"session_id": "sessionId", "config_options": "configOptions", "available_commands": "availableCommands", "meta": "_meta"},
):
    session_id: SessionId
    config_options: list[SessionConfigOption] = []
    available_commands: list[AvailableCommand] = []
    meta: dict[str, Any] | None = None


class SessionConfigSelect(
    Struct,
    tag_field="type",
    tag="select",
    kw_only=True,
    omit_defaults=True,
    rename={"config_id": "configId", "current_value": "currentValue", "meta": "_meta"},
):
    config_id: SessionConfigId
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
    rename={"config_id": "configId", "current_value": "currentValue", "meta": "_meta"},
):
    config_id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    current_value: bool
    meta: dict[str, Any] | None = None


class _SessionConfigOptionOther(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_id": "configId", "meta": "_meta"},
):
    config_id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelectOption(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    value: SessionConfigValueId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = None


class SessionConfigSelectGroup(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"group_id": "groupId", "meta": "_meta"},
):
    group_id: SessionConfigGroupId
    name: str
    options: list[SessionConfigSelectOption]
    meta: dict[str, Any] | None = None


class Command(Struct, tag_field="type", tag="command", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    description: str
    input: AvailableCommandInput | None = None
    meta: dict[str, Any] | None = None


class _AvailableCommandOther(Struct, kw_only=True, omit_defaults=True):
    name: str
    description: str


class TextCommandInput(
    Struct,
    tag_field="type",
    tag="text",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    hint: str
    meta: dict[str, Any] | None = None


class ListSessionsResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"next_cursor": "nextCursor", "meta": "_meta"},
):
    sessions: list[SessionInfo]
    next_cursor: SessionListCursor | None = None
    meta: dict[str, Any] | None = None


class SessionInfo(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "updated_at": "updatedAt", "meta": "_meta"},
):
    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
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
    rename={"session_id": "sessionId", "config_options": "configOptions", "available_commands": "availableCommands", "meta": "_meta"},
):
    session_id: SessionId
    config_options: list[SessionConfigOption] = []
    available_commands: list[AvailableCommand] = []
    meta: dict[str, Any] | None = None


class ArchiveSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class UnarchiveSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionStatusResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    status: SessionStatus
    state: StateUpdate | None = None
    meta: dict[str, Any] | None = None


class StateUpdate(Struct, kw_only=True, omit_defaults=True, rename={"stop_reason": "stopReason", "meta": "_meta"}):
    state: str
    background: list[BackgroundWork] | None = None
    usage: Usage | None = None  # unstable
    stop_reason: str | None = None
    error: Error | None = None
    meta: dict[str, Any] | None = None


class BackgroundTerminal(
    Struct,
    tag_field="type",
    tag="terminal",
    kw_only=True,
    omit_defaults=True,
    rename={"terminal_id": "terminalId", "meta": "_meta"},
):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class BackgroundToolCall(
    Struct,
    tag_field="type",
    tag="tool_call",
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call_id": "toolCallId", "meta": "_meta"},
):
    tool_call_id: ToolCallId
    meta: dict[str, Any] | None = None


class BackgroundSubagent(  # unstable
    Struct,
    tag_field="type",
    tag="subagent",
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class Error(Struct, kw_only=True, omit_defaults=True):
    code: ErrorCode
    message: str
    data: ErrorData | None = None


class UnsupportedProtocolVersionErrorData(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    requested: ProtocolVersion
    supported: list[ProtocolVersion]
    meta: dict[str, Any] | None = None


class SessionNotFoundErrorData(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
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


class SetSessionTitleResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    title: str
    meta: dict[str, Any] | None = None


class ResumeSessionResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "available_commands": "availableCommands", "meta": "_meta"},
):
    config_options: list[SessionConfigOption] = []
    available_commands: list[AvailableCommand] = []
    meta: dict[str, Any] | None = None


class CloseSessionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class CancelToolCallResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class CancelTerminalResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionResponse(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"config_options": "configOptions", "meta": "_meta"},
):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = None


class PromptResponse(Struct, kw_only=True, omit_defaults=True, rename={"message_id": "messageId", "meta": "_meta"}):
    message_id: MessageId
    meta: dict[str, Any] | None = None


class UpdateSessionNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    update: SessionUpdate
    meta: dict[str, Any] | None = None


class ContentChunk(Struct, kw_only=True, omit_defaults=True, rename={"message_id": "messageId", "meta": "_meta"}):
    message_id: MessageId
    content: ContentBlock
    meta: dict[str, Any] | None = None


class UserMessageChunk(
    ContentChunk,
    tag_field="sessionUpdate",
    tag="user_message_chunk",
    kw_only=True,
    omit_defaults=True,
):
    pass


class UserMessage(
    Struct,
    tag_field="sessionUpdate",
    tag="user_message",
    kw_only=True,
    omit_defaults=True,
    rename={"message_id": "messageId", "meta": "_meta"},
):
    message_id: MessageId
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class AgentMessageChunk(
    ContentChunk,
    tag_field="sessionUpdate",
    tag="agent_message_chunk",
    kw_only=True,
    omit_defaults=True,
):
    pass


class AgentMessage(
    Struct,
    tag_field="sessionUpdate",
    tag="agent_message",
    kw_only=True,
    omit_defaults=True,
    rename={"message_id": "messageId", "meta": "_meta"},
):
    message_id: MessageId
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class AgentThoughtChunk(
    ContentChunk,
    tag_field="sessionUpdate",
    tag="agent_thought_chunk",
    kw_only=True,
    omit_defaults=True,
):
    pass


class AgentThought(
    Struct,
    tag_field="sessionUpdate",
    tag="agent_thought",
    kw_only=True,
    omit_defaults=True,
    rename={"message_id": "messageId", "meta": "_meta"},
):
    message_id: MessageId
    content: list[ContentBlock] | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class SessionStateUpdate(StateUpdate, tag_field="sessionUpdate", tag="state_update", kw_only=True, omit_defaults=True):
    pass


class ToolCallContentChunk(
    Struct,
    tag_field="sessionUpdate",
    tag="tool_call_content_chunk",
    kw_only=True,
    omit_defaults=True,
    rename={"tool_call_id": "toolCallId", "meta": "_meta"},
):
    tool_call_id: ToolCallId
    content: ToolCallContent
    meta: dict[str, Any] | None = None


class ToolCallProgress(
    ToolCallUpdate,
    tag_field="sessionUpdate",
    tag="tool_call_update",
    kw_only=True,
    omit_defaults=True,
):
    pass


class TerminalUpdate(
    Struct,
    tag_field="sessionUpdate",
    tag="terminal_update",
    kw_only=True,
    omit_defaults=True,
    rename={"terminal_id": "terminalId", "exit_status": "exitStatus", "meta": "_meta"},
):
    terminal_id: TerminalId
    command: str | None | UnsetType = UNSET
    cwd: AbsolutePath | None | UnsetType = UNSET
    output: TerminalOutput | None | UnsetType = UNSET
    exit_status: TerminalExitStatus | None | UnsetType = UNSET
    size: TerminalSize | None | UnsetType = UNSET
    capabilities: TerminalCapabilities | None | UnsetType = UNSET
    meta: dict[str, Any] | None | UnsetType = UNSET


class TerminalOutputChunk(
    Struct,
    tag_field="sessionUpdate",
    tag="terminal_output_chunk",
    kw_only=True,
    omit_defaults=True,
    rename={"terminal_id": "terminalId", "meta": "_meta"},
):
    terminal_id: TerminalId
    data: str
    meta: dict[str, Any] | None = None


class PlanUpdate(
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
    cwd: AbsolutePath | None | UnsetType = UNSET
    additional_directories: list[AbsolutePath] | None | UnsetType = UNSET
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


class TerminalOutput(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    data: str
    meta: dict[str, Any] | None = None


class TerminalExitStatus(Struct, kw_only=True, omit_defaults=True, rename={"exit_code": "exitCode", "meta": "_meta"}):
    exit_code: Int64 | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = None


class TerminalSize(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    cols: UInt16
    rows: UInt16
    meta: dict[str, Any] | None = None


class TerminalCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    cancel: TerminalCancelCapabilities | None = None
    meta: dict[str, Any] | None = None


class TerminalCancelCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class PlanItems(
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


class _PlanUpdateContentOther(Struct, kw_only=True, omit_defaults=True, rename={"plan_id": "planId"}):
    plan_id: PlanId


class PlanEntry(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus
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


class ClientCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    auth: ClientAuthCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None
    meta: dict[str, Any] | None = None


class InitializeRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"protocol_version": "protocolVersion", "meta": "_meta"},
):
    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: ClientCapabilities = ClientCapabilities()
    meta: dict[str, Any] | None = None


class ClientAuthCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    terminal: TerminalAuthCapabilities | None = None
    meta: dict[str, Any] | None = None


class TerminalAuthCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ElicitationCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None
    meta: dict[str, Any] | None = None


class ElicitationFormCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ElicitationUrlCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class LoginAuthRequest(Struct, kw_only=True, omit_defaults=True, rename={"method_id": "methodId", "meta": "_meta"}):
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


class LogoutAuthRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class AuthStatusRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NewSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
    mcp_servers: list[McpServer] = []
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class McpServerHttp(Struct, tag_field="type", tag="http", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    url: str
    headers: list[HttpHeader] = []
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


class McpServerStdio(Struct, tag_field="type", tag="stdio", kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    command: AbsolutePath
    args: list[str] = []
    env: list[EnvVariable] = []
    meta: dict[str, Any] | None = None


class HttpHeader(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    name: str
    value: str
    meta: dict[str, Any] | None = None


class SystemPrompt(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    mode: SystemPromptMode
    content: list[ContentBlock]
    meta: dict[str, Any] | None = None


class ListSessionsRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
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
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
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
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "replay_from": "replayFrom", "system_prompt": "systemPrompt", "meta": "_meta"},
):
    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: list[AbsolutePath] = []
    mcp_servers: list[McpServer] = []
    replay_from: ReplayFrom | None = None
    system_prompt: SystemPrompt | None = None  # unstable
    meta: dict[str, Any] | None = None


class ReplayFromStart(
    Struct,
    tag_field="type",
    tag="start",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    meta: dict[str, Any] | None = None


class CloseSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class CancelToolCallRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "tool_call_id": "toolCallId", "meta": "_meta"},
):
    session_id: SessionId
    tool_call_id: ToolCallId
    meta: dict[str, Any] | None = None


class CancelTerminalRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "terminal_id": "terminalId", "meta": "_meta"},
):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = None


class SetSessionConfigOptionId(
    Struct,
    tag_field="type",
    tag="id",
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "config_id": "configId", "meta": "_meta"},
):
    session_id: SessionId
    config_id: SessionConfigId
    value: SessionConfigValueId
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


class _SetSessionConfigOptionRequestOther(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "config_id": "configId", "meta": "_meta"},
):
    session_id: SessionId
    config_id: SessionConfigId
    value: Any
    meta: dict[str, Any] | None = None


class PromptRequest(Struct, kw_only=True, omit_defaults=True, rename={"session_id": "sessionId", "meta": "_meta"}):
    session_id: SessionId
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = None


class RequestPermissionResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    outcome: RequestPermissionOutcome
    meta: dict[str, Any] | None = None


class CancelledPermissionOutcome(
    Struct,
    tag_field="outcome",
    tag="cancelled",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    meta: dict[str, Any] | None = None


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


class CancelSessionNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
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
    "AbsolutePath",
    "AgentAuthCapabilities",
    "AgentCapabilities",
    "AgentMessage",
    "AgentMessageChunk",
    "AgentThought",
    "AgentThoughtChunk",
    "Annotations",
    "ArchiveSessionRequest",
    "ArchiveSessionResponse",
    "AudioContent",
    "AuthAccount",
    "AuthMethod",
    "AuthMethodAgent",
    "AuthMethodId",
    "AuthMethodTerminal",
    "AuthState",
    "AuthStatusCapabilities",
    "AuthStatusRequest",
    "AuthStatusResponse",
    "AuthStatusUpdateNotification",
    "AvailableCommand",
    "AvailableCommandInput",
    "AvailableCommandsUpdate",
    "BackgroundSubagent",
    "BackgroundTerminal",
    "BackgroundToolCall",
    "BackgroundWork",
    "BlobResourceContents",
    "BooleanPropertySchema",
    "CancelRequestNotification",
    "CancelSessionNotification",
    "CancelTerminalRequest",
    "CancelTerminalResponse",
    "CancelToolCallRequest",
    "CancelToolCallResponse",
    "CancelledPermissionOutcome",
    "ClientAuthCapabilities",
    "ClientCapabilities",
    "CloseSessionRequest",
    "CloseSessionResponse",
    "Command",
    "CommandPermissionSubject",
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
    "DeleteSessionRequest",
    "DeleteSessionResponse",
    "Diff",
    "DiffAdd",
    "DiffChange",
    "DiffCopy",
    "DiffDelete",
    "DiffFileType",
    "DiffModify",
    "DiffMove",
    "DiffPatch",
    "DiffPatchFormat",
    "DiffPathChange",
    "DiffPathPairChange",
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
    "ErrorData",
    "ExtNotification",
    "ExtRequest",
    "ExtResponse",
    "ForkSessionRequest",
    "ForkSessionResponse",
    "FormElicitationForRequest",
    "FormElicitationForSession",
    "HttpHeader",
    "Icon",
    "IconTheme",
    "ImageContent",
    "Implementation",
    "InitializeProxyRequest",
    "InitializeProxyResponse",
    "InitializeRequest",
    "InitializeResponse",
    "IntegerPropertySchema",
    "ListProvidersRequest",
    "ListProvidersResponse",
    "ListSessionsRequest",
    "ListSessionsResponse",
    "LlmProtocol",
    "LoginAuthRequest",
    "LoginAuthResponse",
    "LogoutAuthRequest",
    "LogoutAuthResponse",
    "McpAcpCapabilities",
    "McpCapabilities",
    "McpError",
    "McpHttpCapabilities",
    "McpRequestId",
    "McpServer",
    "McpServerAcp",
    "McpServerAcpId",
    "McpServerHttp",
    "McpServerStdio",
    "McpStdioCapabilities",
    "MediaType",
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
    "NoticeSeverity",
    "NumberPropertySchema",
    "PermissionOption",
    "PermissionOptionId",
    "PermissionOptionKind",
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
    "PromptAudioCapabilities",
    "PromptCapabilities",
    "PromptEmbeddedContextCapabilities",
    "PromptImageCapabilities",
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
    "ReplayFrom",
    "ReplayFromStart",
    "RequestId",
    "RequestPermissionOutcome",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
    "RequestPermissionSubject",
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
    "SessionConfigBoolean",
    "SessionConfigGroupId",
    "SessionConfigId",
    "SessionConfigOption",
    "SessionConfigOptionCategory",
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
    "SessionListCursor",
    "SessionMessage",
    "SessionMessageChunk",
    "SessionNotFoundErrorData",
    "SessionStateUpdate",
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
    "SetSessionConfigOptionId",
    "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse",
    "SetSessionTitleRequest",
    "SetSessionTitleResponse",
    "StateUpdate",
    "StringFormat",
    "StringMultiSelectItems",
    "StringPropertySchema",
    "SubagentSessionCapabilities",
    "SubagentUpdate",
    "SystemPrompt",
    "SystemPromptMode",
    "Terminal",
    "TerminalAuthCapabilities",
    "TerminalCancelCapabilities",
    "TerminalCapabilities",
    "TerminalExitStatus",
    "TerminalId",
    "TerminalOutput",
    "TerminalOutputChunk",
    "TerminalSize",
    "TerminalUpdate",
    "TextCommandInput",
    "TextContent",
    "TextResourceContents",
    "TitledMultiSelectItems",
    "ToolCallCancelCapabilities",
    "ToolCallCapabilities",
    "ToolCallContent",
    "ToolCallContentChunk",
    "ToolCallId",
    "ToolCallLocation",
    "ToolCallPermissionSubject",
    "ToolCallProgress",
    "ToolCallStatus",
    "ToolCallUpdate",
    "ToolKind",
    "UnarchiveSessionRequest",
    "UnarchiveSessionResponse",
    "UnknownVariant",
    "UnsupportedProtocolVersionErrorData",
    "UpdateSessionNotification",
    "UrlElicitationForRequest",
    "UrlElicitationForSession",
    "Usage",
    "UsageUpdate",
    "UserMessage",
    "UserMessageChunk",
]
