"""Marks on the types of ACP, version 1, by the names of the wire.

Made by scripts/generate_types.py: change that, or the schema in protocol/schema, not this file.
"""

DEFAULT_ON_ERROR = {
    "ToolCallUpdate.kind", "ToolCallUpdate.status", "ToolCallUpdate.title", "ToolCallUpdate.name",
    "ToolCallUpdate.content", "ToolCallUpdate.locations", "ToolCallUpdate.rawInput", "ToolCallUpdate.rawOutput",
    "Diff.oldText", "TextContent.annotations", "ImageContent.annotations", "ImageContent.uri",
    "AudioContent.annotations", "ResourceLink.annotations", "ResourceLink.description", "ResourceLink.mimeType",
    "ResourceLink.size", "ResourceLink.title", "EmbeddedResource.annotations", "Annotations.audience",
    "Annotations.lastModified", "Annotations.priority", "TextResourceContents.mimeType",
    "BlobResourceContents.mimeType", "ToolCallLocation.line", "FormElicitationForSession.toolCallId",
    "UrlElicitationForSession.toolCallId", "_CreateElicitationRequestOtherSession.toolCallId",
    "ElicitationSchema.title", "ElicitationSchema.description", "StringPropertySchema.title",
    "StringPropertySchema.description", "StringPropertySchema.default", "NumberPropertySchema.title",
    "NumberPropertySchema.description", "NumberPropertySchema.default", "IntegerPropertySchema.title",
    "IntegerPropertySchema.description", "IntegerPropertySchema.default", "BooleanPropertySchema.title",
    "BooleanPropertySchema.description", "BooleanPropertySchema.default", "MultiSelectPropertySchema.title",
    "MultiSelectPropertySchema.description", "MultiSelectPropertySchema.default", "EnumOption.description",
    "InitializeResponse.agentCapabilities", "InitializeResponse.authMethods", "InitializeResponse.agentInfo",
    "AgentCapabilities.loadSession", "AgentCapabilities.promptCapabilities", "AgentCapabilities.mcpCapabilities",
    "AgentCapabilities.sessionCapabilities", "AgentCapabilities.auth", "AgentCapabilities.providers",
    "PromptCapabilities.image", "PromptCapabilities.audio", "PromptCapabilities.embeddedContext",
    "McpCapabilities.http", "McpCapabilities.sse", "McpCapabilities.acp", "SessionCapabilities.list",
    "SessionCapabilities.delete", "SessionCapabilities.additionalDirectories", "SessionCapabilities.systemPrompt",
    "SessionCapabilities.fork", "SessionCapabilities.archive", "SessionCapabilities.status",
    "SessionCapabilities.title", "SessionCapabilities.resume", "SessionCapabilities.close",
    "SessionSystemPromptCapabilities.mode", "SessionSystemPromptModeCapabilities.override",
    "AgentAuthCapabilities.status", "AgentAuthCapabilities.logout", "AuthMethodTerminal.description",
    "AuthMethodAgent.description", "Implementation.title", "ProviderInfo.supported", "AuthStatusResponse.accounts",
    "AuthAccount.active", "AuthAccount.name", "AuthAccount.email", "AuthAccount.organization",
    "NewSessionResponse.modes", "NewSessionResponse.configOptions", "SessionModeState.availableModes",
    "SessionMode.description", "SessionConfigSelect.description", "SessionConfigSelect.category",
    "SessionConfigBoolean.description", "SessionConfigBoolean.category", "SessionConfigSelectOption.description",
    "SessionConfigSelectGroup.options", "LoadSessionResponse.modes", "LoadSessionResponse.configOptions",
    "ListSessionsResponse.sessions", "ListSessionsResponse.nextCursor", "SessionInfo.additionalDirectories",
    "SessionInfo.title", "SessionInfo.updatedAt", "SessionInfo.archived", "ForkSessionResponse.modes",
    "ForkSessionResponse.configOptions", "ResumeSessionResponse.modes", "ResumeSessionResponse.configOptions",
    "SetSessionConfigOptionResponse.configOptions", "PromptResponse.usage", "Usage.thoughtTokens",
    "Usage.cachedReadTokens", "Usage.cachedWriteTokens", "Error.data", "UserMessageChunk.messageId",
    "AgentMessageChunk.messageId", "AgentThoughtChunk.messageId", "ToolCall.name", "ToolCall.kind", "ToolCall.status",
    "ToolCall.content", "ToolCall.locations", "ToolCall.rawInput", "ToolCall.rawOutput", "ToolCallProgress.kind",
    "ToolCallProgress.status", "ToolCallProgress.title", "ToolCallProgress.name", "ToolCallProgress.content",
    "ToolCallProgress.locations", "ToolCallProgress.rawInput", "ToolCallProgress.rawOutput", "Plan.entries",
    "AvailableCommandsUpdate.availableCommands", "ConfigOptionUpdate.configOptions", "SessionInfoUpdate.title",
    "SessionInfoUpdate.updatedAt", "UsageUpdate.cost", "Notice.description", "CompactionUpdate.summary",
    "CompactionUpdate.error", "SubagentUpdate.title", "SubagentUpdate.description", "SubagentUpdate.capabilities",
    "SubagentUpdate.state", "SessionMessage.senderSessionId", "SessionMessage.recipientSessionId",
    "SessionMessage.senderMessageId", "SessionMessage.recipientMessageId", "SessionMessage.content",
    "ContentChunk.messageId", "PlanItems.entries", "AvailableCommand.input", "SubagentSessionCapabilities.cancel",
    "StateUpdate.usage", "StateUpdate.stopReason", "StateUpdate.error", "AuthStatusUpdateNotification.accounts",
    "InitializeRequest.clientCapabilities", "InitializeRequest.clientInfo", "ClientCapabilities.fs",
    "ClientCapabilities.terminal", "ClientCapabilities.session", "ClientCapabilities.subagents",
    "ClientCapabilities.plan", "ClientCapabilities.auth", "ClientCapabilities.elicitation",
    "FileSystemCapabilities.readTextFile", "FileSystemCapabilities.writeTextFile",
    "ClientSessionCapabilities.compaction", "ClientSessionCapabilities.configOptions",
    "ClientSessionCapabilities.notices", "SessionConfigOptionsCapabilities.boolean", "AuthCapabilities.terminal",
    "ElicitationCapabilities.form", "ElicitationCapabilities.url", "TerminalOutputResponse.exitStatus",
    "TerminalExitStatus.exitCode", "TerminalExitStatus.signal", "WaitForTerminalExitResponse.exitCode",
    "WaitForTerminalExitResponse.signal",
}
"""Fields that fall back to their default when malformed; `_meta` does so everywhere."""

DEFAULT_ON_NULL = {
    "CreateTerminalRequest.args", "CreateTerminalRequest.env", "AuthMethodTerminal.args", "AuthMethodTerminal.env",
    "NewSessionRequest.additionalDirectories", "NewSessionRequest.mcpServers", "McpServerHttp.headers",
    "McpServerSse.headers", "McpServerStdio.args", "McpServerStdio.env", "LoadSessionRequest.mcpServers",
    "LoadSessionRequest.additionalDirectories", "ForkSessionRequest.additionalDirectories",
    "ForkSessionRequest.mcpServers", "ResumeSessionRequest.additionalDirectories", "ResumeSessionRequest.mcpServers",
}
"""Fields that fall back to their default, or to an empty one, when null."""

SKIP_INVALID_ITEMS = {
    "ToolCallUpdate.content", "ToolCallUpdate.locations", "Annotations.audience", "MultiSelectPropertySchema.default",
    "InitializeResponse.authMethods", "ProviderInfo.supported", "AuthStatusResponse.accounts",
    "NewSessionResponse.configOptions", "SessionModeState.availableModes", "SessionConfigSelectGroup.options",
    "LoadSessionResponse.configOptions", "ListSessionsResponse.sessions", "SessionInfo.additionalDirectories",
    "ForkSessionResponse.configOptions", "ResumeSessionResponse.configOptions",
    "SetSessionConfigOptionResponse.configOptions", "ToolCall.content", "ToolCall.locations",
    "ToolCallProgress.content", "ToolCallProgress.locations", "Plan.entries",
    "AvailableCommandsUpdate.availableCommands", "ConfigOptionUpdate.configOptions", "CompactionUpdate.summary",
    "SessionMessage.content", "PlanItems.entries", "AuthStatusUpdateNotification.accounts",
}
"""Array fields whose malformed items are left out."""

UNION_NAMES = {
    "Content": "ToolCallContent", "TextContent": "ContentBlock", "SessionConfigSelect": "SessionConfigOption",
    "UserMessageChunk": "SessionUpdate", "PlanItems": "PlanUpdateContent", "CancelledPermissionOutcome":
    "RequestPermissionOutcome",
}
"""The tagged unions, by their first variant."""

CLOSED_UNIONS = {
    "RequestPermissionOutcome",
}
"""Those of them where an unknown tag is always an error."""
