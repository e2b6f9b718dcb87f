"""Fields that the version 2 draft adds to types of version 1.

Made by scripts/generate_later_fields.py. These fields are not extensions, because all names are reserved for later
versions.
"""

LATER: dict[str, frozenset[str]] = {
    "AgentCapabilities": frozenset({"session"}),
    "AuthMethodAgent": frozenset({"methodId"}),
    "AuthMethodTerminal": frozenset({"methodId"}),
    "Diff": frozenset({"changes", "patch"}),
    "ForkSessionResponse": frozenset({"availableCommands"}),
    "InitializeRequest": frozenset({"capabilities", "info"}),
    "InitializeResponse": frozenset({"capabilities", "info"}),
    "McpCapabilities": frozenset({"stdio"}),
    "NewSessionResponse": frozenset({"availableCommands"}),
    "PromptResponse": frozenset({"messageId"}),
    "RequestPermissionRequest": frozenset({"description", "subject", "title"}),
    "ResourceLink": frozenset({"icons"}),
    "ResumeSessionRequest": frozenset({"replayFrom"}),
    "ResumeSessionResponse": frozenset({"availableCommands"}),
    "SessionCapabilities": frozenset({"mcp", "prompt"}),
    "SessionConfigSelectGroup": frozenset({"groupId"}),
    "SessionStatusResponse": frozenset({"state"}),
    "ToolCallUpdate": frozenset({"capabilities"}),
}
