"""Fields that the pinned version 1 has not: those of version 2, as far as it is written, and of a newer version 1.

Made by scripts/generate_later_fields.py. A field of these is no extension: all names are kept for later versions.
"""

LATER: dict[str, frozenset[str]] = {
    "AcceptNesNotification": frozenset({"suggestionId"}),
    "AgentCapabilities": frozenset({"session"}),
    "AuthMethodAgent": frozenset({"methodId"}),
    "AuthMethodTerminal": frozenset({"methodId"}),
    "ClientSessionCapabilities": frozenset({"notices"}),
    "Diff": frozenset({"changes", "patch"}),
    "InitializeRequest": frozenset({"capabilities", "info"}),
    "InitializeResponse": frozenset({"capabilities", "info"}),
    "McpCapabilities": frozenset({"stdio"}),
    "NesEditSuggestion": frozenset({"suggestionId"}),
    "NesJumpSuggestion": frozenset({"suggestionId"}),
    "NesRenameSuggestion": frozenset({"suggestionId"}),
    "NesSearchAndReplaceSuggestion": frozenset({"suggestionId"}),
    "RejectNesNotification": frozenset({"suggestionId"}),
    "RequestPermissionRequest": frozenset({"description", "subject", "title"}),
    "ResourceLink": frozenset({"icons"}),
    "ResumeSessionRequest": frozenset({"replayFrom"}),
    "SessionCapabilities": frozenset({"mcp", "prompt"}),
    "SessionConfigSelectGroup": frozenset({"groupId"}),
}
