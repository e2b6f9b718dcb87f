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
McpConnectionId = str  # unstable
ExtRequest = Any
ProtocolVersion = UInt16
TextDocumentSyncKind = Literal["full", "incremental"]  # unstable
PositionEncodingKind = Literal["utf-16", "utf-32", "utf-8"]  # unstable
AuthMethodId = str
ProviderId = str  # unstable
LlmProtocol = str  # unstable
SessionModeId = str
SessionConfigId = str
SessionConfigOptionCategory = str
SessionConfigValueId = str
SessionConfigGroupId = str
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
NesSuggestionId = str  # unstable
ExtResponse = Any
MessageMcpResponse = Any  # unstable
ErrorCode = Int32
MessageId = str
PlanEntryPriority = Literal["high", "medium", "low"]
PlanEntryStatus = Literal["pending", "in_progress", "completed"]
PlanId = str  # unstable
NoticeSeverity = str  # unstable
CompactionId = str  # unstable
CompactionStatus = str  # unstable
ExtNotification = Any
NesTriggerKind = Literal["automatic", "diagnostic", "manual"]  # unstable
NesDiagnosticSeverity = Literal["error", "warning", "information", "hint"]  # unstable
ElicitationContentValue = str | Int64 | float | bool | list[str]
NesRejectReason = Literal["rejected", "ignored", "replaced", "cancelled"]  # unstable


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
    name: str | None = None  # unstable
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


class ConnectMcpRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"server_id": "serverId", "meta": "_meta"},
):
    server_id: McpServerAcpId
    meta: dict[str, Any] | None = None


class MessageMcpRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"connection_id": "connectionId", "meta": "_meta"},
):
    connection_id: McpConnectionId
    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class DisconnectMcpRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"connection_id": "connectionId", "meta": "_meta"},
):
    connection_id: McpConnectionId
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
    rename={"additional_directories": "additionalDirectories", "meta": "_meta"},
):
    list: SessionListCapabilities | None = None
    delete: SessionDeleteCapabilities | None = None
    additional_directories: SessionAdditionalDirectoriesCapabilities | None = None
    fork: SessionForkCapabilities | None = None  # unstable
    resume: SessionResumeCapabilities | None = None
    close: SessionCloseCapabilities | None = None
    meta: dict[str, Any] | None = None


class AgentAuthCapabilities(Struct, kw_only=True, omit_defaults=True, frozen=True, rename={"meta": "_meta"}):
    logout: LogoutCapabilities | None = None
    meta: dict[str, Any] | None = None


class AgentCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    rename={"load_session": "loadSession", "prompt_capabilities": "promptCapabilities", "mcp_capabilities": "mcpCapabilities", "session_capabilities": "sessionCapabilities", "position_encoding": "positionEncoding", "meta": "_meta"},
):
    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    providers: ProvidersCapabilities | None = None  # unstable
    nes: NesCapabilities | None = None  # unstable
    position_encoding: PositionEncodingKind | None = None  # unstable
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


class SessionForkCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class SessionResumeCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class SessionCloseCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class LogoutCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None


class ProvidersCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    events: NesEventCapabilities | None = None
    context: NesContextCapabilities | None = None
    meta: dict[str, Any] | None = None


class NesEventCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    document: NesDocumentEventCapabilities | None = None
    meta: dict[str, Any] | None = None


class NesDocumentEventCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"did_open": "didOpen", "did_change": "didChange", "did_close": "didClose", "did_save": "didSave", "did_focus": "didFocus", "meta": "_meta"},
):
    did_open: NesDocumentDidOpenCapabilities | None = None
    did_change: NesDocumentDidChangeCapabilities | None = None
    did_close: NesDocumentDidCloseCapabilities | None = None
    did_save: NesDocumentDidSaveCapabilities | None = None
    did_focus: NesDocumentDidFocusCapabilities | None = None
    meta: dict[str, Any] | None = None


class NesDocumentDidOpenCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesDocumentDidChangeCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"sync_kind": "syncKind", "meta": "_meta"},
):
    sync_kind: TextDocumentSyncKind
    meta: dict[str, Any] | None = None


class NesDocumentDidCloseCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesDocumentDidSaveCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesDocumentDidFocusCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesContextCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"recent_files": "recentFiles", "related_snippets": "relatedSnippets", "edit_history": "editHistory", "user_actions": "userActions", "open_files": "openFiles", "meta": "_meta"},
):
    recent_files: NesRecentFilesCapabilities | None = None
    related_snippets: NesRelatedSnippetsCapabilities | None = None
    edit_history: NesEditHistoryCapabilities | None = None
    user_actions: NesUserActionsCapabilities | None = None
    open_files: NesOpenFilesCapabilities | None = None
    diagnostics: NesDiagnosticsCapabilities | None = None
    meta: dict[str, Any] | None = None


class NesRecentFilesCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"max_count": "maxCount", "meta": "_meta"},
):
    max_count: UInt32 | None = None
    meta: dict[str, Any] | None = None


class NesRelatedSnippetsCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesEditHistoryCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"max_count": "maxCount", "meta": "_meta"},
):
    max_count: UInt32 | None = None
    meta: dict[str, Any] | None = None


class NesUserActionsCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"max_count": "maxCount", "meta": "_meta"},
):
    max_count: UInt32 | None = None
    meta: dict[str, Any] | None = None


class NesOpenFilesCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesDiagnosticsCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
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


class StartNesResponse(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class SuggestNesResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    suggestions: list[NesSuggestion]
    meta: dict[str, Any] | None = None


class NesEditSuggestion(  # unstable
    Struct,
    tag_field="kind",
    tag="edit",
    kw_only=True,
    omit_defaults=True,
    rename={"cursor_position": "cursorPosition", "meta": "_meta"},
):
    id: NesSuggestionId
    uri: str
    edits: list[NesTextEdit]
    cursor_position: Position | None = None
    meta: dict[str, Any] | None = None


class NesJumpSuggestion(  # unstable
    Struct,
    tag_field="kind",
    tag="jump",
    kw_only=True,
    omit_defaults=True,
    rename={"meta": "_meta"},
):
    id: NesSuggestionId
    uri: str
    position: Position
    meta: dict[str, Any] | None = None


class NesRenameSuggestion(  # unstable
    Struct,
    tag_field="kind",
    tag="rename",
    kw_only=True,
    omit_defaults=True,
    rename={"new_name": "newName", "meta": "_meta"},
):
    id: NesSuggestionId
    uri: str
    position: Position
    new_name: str
    meta: dict[str, Any] | None = None


class NesSearchAndReplaceSuggestion(  # unstable
    Struct,
    tag_field="kind",
    tag="searchAndReplace",
    kw_only=True,
    omit_defaults=True,
    rename={"is_regex": "isRegex", "meta": "_meta"},
):
    id: NesSuggestionId
    uri: str
    search: str
    replace: str
    is_regex: bool | None = None
    meta: dict[str, Any] | None = None


class NesTextEdit(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"new_text": "newText", "meta": "_meta"},
):
    range: Range
    new_text: str
    meta: dict[str, Any] | None = None


class Range(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    start: Position
    end: Position
    meta: dict[str, Any] | None = None


class Position(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    line: UInt32
    character: UInt32
    meta: dict[str, Any] | None = None


class CloseNesResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
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
    name: str | None = None  # unstable
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


class Notice(  # unstable
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


class CompactionUpdate(  # unstable
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


class CompactionSummaryChunk(  # unstable
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


class CompleteElicitationNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"elicitation_id": "elicitationId", "meta": "_meta"},
):
    elicitation_id: ElicitationId
    meta: dict[str, Any] | None = None


class MessageMcpNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"connection_id": "connectionId", "meta": "_meta"},
):
    connection_id: McpConnectionId
    method: str
    params: dict[str, Any] | None = None
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


class ClientCapabilities(
    Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    rename={"position_encodings": "positionEncodings", "meta": "_meta"},
):
    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    session: ClientSessionCapabilities | None = None
    plan: PlanCapabilities | None = None  # unstable
    auth: AuthCapabilities = AuthCapabilities()
    elicitation: ElicitationCapabilities | None = None
    nes: ClientNesCapabilities | None = None  # unstable
    position_encodings: list[PositionEncodingKind] = []  # unstable
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
    compaction: CompactionCapabilities | None = None  # unstable
    config_options: SessionConfigOptionsCapabilities | None = None
    meta: dict[str, Any] | None = None


class CompactionCapabilities(Struct, kw_only=True, omit_defaults=True):  # unstable
    pass


class SessionConfigOptionsCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    boolean: BooleanConfigOptionCapabilities | None = None
    meta: dict[str, Any] | None = None


class BooleanConfigOptionCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
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


class ClientNesCapabilities(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"search_and_replace": "searchAndReplace", "meta": "_meta"},
):
    jump: NesJumpCapabilities | None = None
    rename: NesRenameCapabilities | None = None
    search_and_replace: NesSearchAndReplaceCapabilities | None = None
    meta: dict[str, Any] | None = None


class NesJumpCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesRenameCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class NesSearchAndReplaceCapabilities(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
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


class NewSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "meta": "_meta"},
):
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer]
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


class LoadSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"mcp_servers": "mcpServers", "additional_directories": "additionalDirectories", "session_id": "sessionId", "meta": "_meta"},
):
    mcp_servers: list[McpServer]
    cwd: str
    additional_directories: list[str] = []
    session_id: SessionId
    meta: dict[str, Any] | None = None


class ListSessionsRequest(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    cwd: str | None = None
    cursor: str | None = None
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
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "meta": "_meta"},
):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer] = []
    meta: dict[str, Any] | None = None


class ResumeSessionRequest(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "additional_directories": "additionalDirectories", "mcp_servers": "mcpServers", "meta": "_meta"},
):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[McpServer] = []
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


class StartNesRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"workspace_uri": "workspaceUri", "workspace_folders": "workspaceFolders", "meta": "_meta"},
):
    workspace_uri: str | None = None
    workspace_folders: list[WorkspaceFolder] | None = None
    repository: NesRepository | None = None
    meta: dict[str, Any] | None = None


class WorkspaceFolder(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    uri: str
    name: str
    meta: dict[str, Any] | None = None


class NesRepository(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"remote_url": "remoteUrl", "meta": "_meta"},
):
    name: str
    owner: str
    remote_url: str
    meta: dict[str, Any] | None = None


class SuggestNesRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "trigger_kind": "triggerKind", "meta": "_meta"},
):
    session_id: SessionId
    uri: str
    version: Int64
    position: Position
    selection: Range | None = None
    trigger_kind: NesTriggerKind
    context: NesSuggestContext | None = None
    meta: dict[str, Any] | None = None


class NesSuggestContext(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"recent_files": "recentFiles", "related_snippets": "relatedSnippets", "edit_history": "editHistory", "user_actions": "userActions", "open_files": "openFiles", "meta": "_meta"},
):
    recent_files: list[NesRecentFile] | None = None
    related_snippets: list[NesRelatedSnippet] | None = None
    edit_history: list[NesEditHistoryEntry] | None = None
    user_actions: list[NesUserAction] | None = None
    open_files: list[NesOpenFile] | None = None
    diagnostics: list[NesDiagnostic] | None = None
    meta: dict[str, Any] | None = None


class NesRecentFile(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"language_id": "languageId", "meta": "_meta"},
):
    uri: str
    language_id: str
    text: str
    meta: dict[str, Any] | None = None


class NesRelatedSnippet(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    uri: str
    excerpts: list[NesExcerpt]
    meta: dict[str, Any] | None = None


class NesExcerpt(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"start_line": "startLine", "end_line": "endLine", "meta": "_meta"},
):
    start_line: UInt32
    end_line: UInt32
    text: str
    meta: dict[str, Any] | None = None


class NesEditHistoryEntry(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    uri: str
    diff: str
    meta: dict[str, Any] | None = None


class NesUserAction(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"timestamp_ms": "timestampMs", "meta": "_meta"},
):
    action: str
    uri: str
    position: Position
    timestamp_ms: UInt64
    meta: dict[str, Any] | None = None


class NesOpenFile(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"language_id": "languageId", "visible_range": "visibleRange", "last_focused_ms": "lastFocusedMs", "meta": "_meta"},
):
    uri: str
    language_id: str
    visible_range: Range | None = None
    last_focused_ms: UInt64 | None = None
    meta: dict[str, Any] | None = None


class NesDiagnostic(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    uri: str
    range: Range
    severity: NesDiagnosticSeverity
    message: str
    meta: dict[str, Any] | None = None


class CloseNesRequest(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
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


class ConnectMcpResponse(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"connection_id": "connectionId", "meta": "_meta"},
):
    connection_id: McpConnectionId
    meta: dict[str, Any] | None = None


class DisconnectMcpResponse(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    meta: dict[str, Any] | None = None


class CancelNotification(Struct, kw_only=True, omit_defaults=True, rename={"session_id": "sessionId", "meta": "_meta"}):
    session_id: SessionId
    meta: dict[str, Any] | None = None


class DidOpenDocumentNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "language_id": "languageId", "meta": "_meta"},
):
    session_id: SessionId
    uri: str
    language_id: str
    version: Int64
    text: str
    meta: dict[str, Any] | None = None


class DidChangeDocumentNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "content_changes": "contentChanges", "meta": "_meta"},
):
    session_id: SessionId
    uri: str
    version: Int64
    content_changes: list[TextDocumentContentChangeEvent]
    meta: dict[str, Any] | None = None


class TextDocumentContentChangeEvent(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):  # unstable
    range: Range | None = None
    text: str
    meta: dict[str, Any] | None = None


class DidCloseDocumentNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    uri: str
    meta: dict[str, Any] | None = None


class DidSaveDocumentNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    uri: str
    meta: dict[str, Any] | None = None


class DidFocusDocumentNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "visible_range": "visibleRange", "meta": "_meta"},
):
    session_id: SessionId
    uri: str
    version: Int64
    position: Position
    visible_range: Range
    meta: dict[str, Any] | None = None


class AcceptNesNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    id: NesSuggestionId
    meta: dict[str, Any] | None = None


class RejectNesNotification(  # unstable
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"session_id": "sessionId", "meta": "_meta"},
):
    session_id: SessionId
    id: NesSuggestionId
    reason: NesRejectReason | None = None
    meta: dict[str, Any] | None = None


class CancelRequestNotification(
    Struct,
    kw_only=True,
    omit_defaults=True,
    rename={"request_id": "requestId", "meta": "_meta"},
):
    request_id: RequestId
    meta: dict[str, Any] | None = None


ElicitationFormMode = FormElicitationForSession | FormElicitationForRequest
ElicitationUrlMode = UrlElicitationForSession | UrlElicitationForRequest
AvailableCommandInput = UnstructuredCommandInput


if TYPE_CHECKING:
    ToolCallContent = Content | Diff | Terminal | UnknownVariant
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownVariant
    SessionConfigOption = SessionConfigSelect | SessionConfigBoolean | UnknownVariant
    NesSuggestion = (  # unstable
        NesEditSuggestion
        | NesJumpSuggestion
        | NesRenameSuggestion
        | NesSearchAndReplaceSuggestion
        | UnknownVariant
    )
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
else:
    ToolCallContent = Content | Diff | Terminal
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
    SessionConfigOption = SessionConfigSelect | SessionConfigBoolean
    NesSuggestion = (  # unstable
        NesEditSuggestion
        | NesJumpSuggestion
        | NesRenameSuggestion
        | NesSearchAndReplaceSuggestion
    )
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


__all__ = [
    "AcceptNesNotification",
    "AgentAuthCapabilities",
    "AgentCapabilities",
    "AgentMessageChunk",
    "AgentThoughtChunk",
    "Annotations",
    "AudioContent",
    "AuthCapabilities",
    "AuthMethod",
    "AuthMethodAgent",
    "AuthMethodId",
    "AuthMethodTerminal",
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
    "ClientNesCapabilities",
    "ClientSessionCapabilities",
    "CloseNesRequest",
    "CloseNesResponse",
    "CloseSessionRequest",
    "CloseSessionResponse",
    "CompactionCapabilities",
    "CompactionId",
    "CompactionStatus",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "CompleteElicitationNotification",
    "ConfigOptionUpdate",
    "ConnectMcpRequest",
    "ConnectMcpResponse",
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
    "DidChangeDocumentNotification",
    "DidCloseDocumentNotification",
    "DidFocusDocumentNotification",
    "DidOpenDocumentNotification",
    "DidSaveDocumentNotification",
    "Diff",
    "DisableProviderRequest",
    "DisableProviderResponse",
    "DisconnectMcpRequest",
    "DisconnectMcpResponse",
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
    "McpConnectionId",
    "McpServer",
    "McpServerAcp",
    "McpServerAcpId",
    "McpServerHttp",
    "McpServerSse",
    "McpServerStdio",
    "MessageId",
    "MessageMcpNotification",
    "MessageMcpRequest",
    "MessageMcpResponse",
    "MultiSelectItems",
    "MultiSelectPropertySchema",
    "NesCapabilities",
    "NesContextCapabilities",
    "NesDiagnostic",
    "NesDiagnosticSeverity",
    "NesDiagnosticsCapabilities",
    "NesDocumentDidChangeCapabilities",
    "NesDocumentDidCloseCapabilities",
    "NesDocumentDidFocusCapabilities",
    "NesDocumentDidOpenCapabilities",
    "NesDocumentDidSaveCapabilities",
    "NesDocumentEventCapabilities",
    "NesEditHistoryCapabilities",
    "NesEditHistoryEntry",
    "NesEditSuggestion",
    "NesEventCapabilities",
    "NesExcerpt",
    "NesJumpCapabilities",
    "NesJumpSuggestion",
    "NesOpenFile",
    "NesOpenFilesCapabilities",
    "NesRecentFile",
    "NesRecentFilesCapabilities",
    "NesRejectReason",
    "NesRelatedSnippet",
    "NesRelatedSnippetsCapabilities",
    "NesRenameCapabilities",
    "NesRenameSuggestion",
    "NesRepository",
    "NesSearchAndReplaceCapabilities",
    "NesSearchAndReplaceSuggestion",
    "NesSuggestContext",
    "NesSuggestion",
    "NesSuggestionId",
    "NesTextEdit",
    "NesTriggerKind",
    "NesUserAction",
    "NesUserActionsCapabilities",
    "NewSessionRequest",
    "NewSessionResponse",
    "Notice",
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
    "Position",
    "PositionEncodingKind",
    "PromptCapabilities",
    "PromptRequest",
    "PromptResponse",
    "ProtocolVersion",
    "ProviderCurrentConfig",
    "ProviderId",
    "ProviderInfo",
    "ProvidersCapabilities",
    "Range",
    "ReadTextFileRequest",
    "ReadTextFileResponse",
    "RejectNesNotification",
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
    "SessionMode",
    "SessionModeId",
    "SessionModeState",
    "SessionNotification",
    "SessionResumeCapabilities",
    "SessionUpdate",
    "SetProviderRequest",
    "SetProviderResponse",
    "SetSessionConfigOptionBoolean",
    "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse",
    "SetSessionConfigOptionValueId",
    "SetSessionModeRequest",
    "SetSessionModeResponse",
    "StartNesRequest",
    "StartNesResponse",
    "StopReason",
    "StringFormat",
    "StringMultiSelectItems",
    "StringPropertySchema",
    "SuggestNesRequest",
    "SuggestNesResponse",
    "Terminal",
    "TerminalExitStatus",
    "TerminalId",
    "TerminalOutputRequest",
    "TerminalOutputResponse",
    "TextContent",
    "TextDocumentContentChangeEvent",
    "TextDocumentSyncKind",
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
    "UnknownVariant",
    "UnstructuredCommandInput",
    "UrlElicitationForRequest",
    "UrlElicitationForSession",
    "Usage",
    "UsageUpdate",
    "UserMessageChunk",
    "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse",
    "WorkspaceFolder",
    "WriteTextFileRequest",
    "WriteTextFileResponse",
]
