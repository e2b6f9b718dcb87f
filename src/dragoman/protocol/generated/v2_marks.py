"""Marks on the types of ACP, version 2, by the names of the wire.

Made by scripts/generate_types.py: change that, or the schema in protocol/schema, not this file.
"""

DEFAULT_ON_ERROR = {
    "RequestPermissionRequest.description", "CommandPermissionSubject.toolCallId",
    "CommandPermissionSubject.terminalId", "ToolCallUpdate.name", "ToolCallUpdate.title", "ToolCallUpdate.kind",
    "ToolCallUpdate.status", "ToolCallUpdate.content", "ToolCallUpdate.locations", "ToolCallUpdate.rawInput",
    "ToolCallUpdate.rawOutput", "ToolCallUpdate.capabilities", "Diff.patch", "TextContent.annotations",
    "ImageContent.uri", "ImageContent.annotations", "AudioContent.annotations", "ResourceLink.title",
    "ResourceLink.description", "ResourceLink.icons", "ResourceLink.mimeType", "ResourceLink.size",
    "ResourceLink.annotations", "EmbeddedResource.annotations", "Annotations.audience", "Annotations.lastModified",
    "Annotations.priority", "Icon.mimeType", "Icon.sizes", "Icon.theme", "TextResourceContents.mimeType",
    "BlobResourceContents.mimeType", "DiffAdd.fileType", "DiffAdd.mimeType", "DiffDelete.fileType",
    "DiffDelete.mimeType", "DiffModify.fileType", "DiffModify.mimeType", "DiffMove.fileType", "DiffMove.mimeType",
    "DiffCopy.fileType", "DiffCopy.mimeType", "_DiffChangeOther.fileType", "_DiffChangeOther.mimeType",
    "ToolCallLocation.line", "ToolCallCapabilities.cancel", "FormElicitationForSession.toolCallId",
    "UrlElicitationForSession.toolCallId", "_CreateElicitationRequestOtherSession.toolCallId",
    "ElicitationSchema.title", "ElicitationSchema.description", "StringPropertySchema.title",
    "StringPropertySchema.description", "StringPropertySchema.default", "NumberPropertySchema.title",
    "NumberPropertySchema.description", "NumberPropertySchema.default", "IntegerPropertySchema.title",
    "IntegerPropertySchema.description", "IntegerPropertySchema.default", "BooleanPropertySchema.title",
    "BooleanPropertySchema.description", "BooleanPropertySchema.default", "MultiSelectPropertySchema.title",
    "MultiSelectPropertySchema.description", "MultiSelectPropertySchema.default", "EnumOption.description",
    "InitializeResponse.capabilities", "InitializeResponse.authMethods", "Implementation.title",
    "AgentCapabilities.session", "AgentCapabilities.auth", "AgentCapabilities.providers", "SessionCapabilities.prompt",
    "SessionCapabilities.mcp", "SessionCapabilities.delete", "SessionCapabilities.additionalDirectories",
    "SessionCapabilities.systemPrompt", "SessionCapabilities.fork", "SessionCapabilities.archive",
    "SessionCapabilities.status", "SessionCapabilities.title", "PromptCapabilities.image", "PromptCapabilities.audio",
    "PromptCapabilities.embeddedContext", "McpCapabilities.stdio", "McpCapabilities.http", "McpCapabilities.acp",
    "SessionSystemPromptCapabilities.mode", "SessionSystemPromptModeCapabilities.override",
    "AgentAuthCapabilities.status", "AuthMethodTerminal.description", "AuthMethodAgent.description",
    "ProviderInfo.supported", "AuthStatusResponse.accounts", "AuthAccount.active", "AuthAccount.name",
    "AuthAccount.email", "AuthAccount.organization", "NewSessionResponse.configOptions",
    "NewSessionResponse.availableCommands", "SessionConfigSelect.description", "SessionConfigSelect.category",
    "SessionConfigBoolean.description", "SessionConfigBoolean.category", "_SessionConfigOptionOther.description",
    "_SessionConfigOptionOther.category", "SessionConfigSelectOption.description", "SessionConfigSelectGroup.options",
    "Command.input", "ListSessionsResponse.sessions", "SessionInfo.title", "SessionInfo.updatedAt",
    "SessionInfo.archived", "ForkSessionResponse.configOptions", "ForkSessionResponse.availableCommands",
    "SessionStatusResponse.state", "StateUpdate.background", "StateUpdate.usage", "StateUpdate.stopReason",
    "StateUpdate.error", "Error.data", "Usage.thoughtTokens", "Usage.cachedReadTokens", "Usage.cachedWriteTokens",
    "ResumeSessionResponse.configOptions", "ResumeSessionResponse.availableCommands", "UserMessage.content",
    "AgentMessage.content", "AgentThought.content", "SessionStateUpdate.background", "SessionStateUpdate.usage",
    "SessionStateUpdate.stopReason", "SessionStateUpdate.error", "ToolCallProgress.name", "ToolCallProgress.title",
    "ToolCallProgress.kind", "ToolCallProgress.status", "ToolCallProgress.content", "ToolCallProgress.locations",
    "ToolCallProgress.rawInput", "ToolCallProgress.rawOutput", "ToolCallProgress.capabilities",
    "TerminalUpdate.command", "TerminalUpdate.cwd", "TerminalUpdate.output", "TerminalUpdate.exitStatus",
    "TerminalUpdate.size", "TerminalUpdate.capabilities", "SessionInfoUpdate.title", "SessionInfoUpdate.updatedAt",
    "UsageUpdate.cost", "Notice.description", "CompactionUpdate.summary", "CompactionUpdate.error",
    "SubagentUpdate.title", "SubagentUpdate.description", "SubagentUpdate.capabilities", "SubagentUpdate.state",
    "SessionMessage.senderSessionId", "SessionMessage.recipientSessionId", "SessionMessage.senderMessageId",
    "SessionMessage.recipientMessageId", "SessionMessage.content", "TerminalExitStatus.exitCode",
    "TerminalExitStatus.signal", "TerminalCapabilities.cancel", "SubagentSessionCapabilities.cancel",
    "AuthStatusUpdateNotification.accounts", "InitializeRequest.capabilities", "ClientCapabilities.auth",
    "ClientCapabilities.elicitation", "ClientAuthCapabilities.terminal", "ElicitationCapabilities.form",
    "ElicitationCapabilities.url",
}
"""Fields that fall back to their default when malformed; `_meta` does so everywhere."""

DEFAULT_ON_NULL = {
    "AuthMethodTerminal.args", "AuthMethodTerminal.env", "SessionInfo.additionalDirectories",
    "NewSessionRequest.additionalDirectories", "NewSessionRequest.mcpServers", "McpServerHttp.headers",
    "McpServerStdio.args", "McpServerStdio.env", "ForkSessionRequest.additionalDirectories",
    "ForkSessionRequest.mcpServers", "ResumeSessionRequest.additionalDirectories", "ResumeSessionRequest.mcpServers",
}
"""Fields that fall back to their default, or to an empty one, when null."""

SKIP_INVALID_ITEMS = {
    "ToolCallUpdate.content", "ToolCallUpdate.locations", "Diff.changes", "ResourceLink.icons", "Annotations.audience",
    "Icon.sizes", "MultiSelectPropertySchema.default", "InitializeResponse.authMethods", "ProviderInfo.supported",
    "AuthStatusResponse.accounts", "NewSessionResponse.configOptions", "NewSessionResponse.availableCommands",
    "SessionConfigSelectGroup.options", "ListSessionsResponse.sessions", "ForkSessionResponse.configOptions",
    "ForkSessionResponse.availableCommands", "ResumeSessionResponse.configOptions",
    "ResumeSessionResponse.availableCommands", "SetSessionConfigOptionResponse.configOptions", "UserMessage.content",
    "AgentMessage.content", "AgentThought.content", "ToolCallProgress.content", "ToolCallProgress.locations",
    "AvailableCommandsUpdate.availableCommands", "ConfigOptionUpdate.configOptions", "CompactionUpdate.summary",
    "SessionMessage.content", "PlanItems.entries", "AuthStatusUpdateNotification.accounts",
}
"""Array fields whose malformed items are left out."""

UNION_NAMES = {
}
"""The tagged unions, by their first variant."""

CLOSED_UNIONS = {
}
"""Those of them where an unknown tag is always an error."""
