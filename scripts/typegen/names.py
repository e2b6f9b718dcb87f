"""The decisions that the schema leaves open: names for nameless types, and meanings that only its prose states."""

VARIANT_NAMES = {
    ("SessionUpdate", "tool_call_update"): "ToolCallProgress",
    ("RequestPermissionOutcome", "cancelled"): "CancelledPermissionOutcome",
    ("CreateElicitationResponse", "decline"): "ElicitationDeclineAction",
    ("CreateElicitationResponse", "cancel"): "ElicitationCancelAction",
    ("SetSessionConfigOptionRequest", "boolean"): "SetSessionConfigOptionBoolean",
    ("SetSessionConfigOptionRequest", "value_id"): "SetSessionConfigOptionValueId",
    ("SetSessionConfigOptionRequest", "id"): "SetSessionConfigOptionId",
    ("MessageMcpResponse", "Result"): "MessageMcpResult",
    ("MessageMcpResponse", "Error"): "MessageMcpError",
    ("SessionUpdate", "state_update"): "SessionStateUpdate",
    ("DiffChange", "add"): "DiffAdd",
    ("DiffChange", "delete"): "DiffDelete",
    ("DiffChange", "modify"): "DiffModify",
    ("DiffChange", "move"): "DiffMove",
    ("DiffChange", "copy"): "DiffCopy",
    ("ElicitationFormMode", "Session"): "FormElicitationForSession",
    ("ElicitationFormMode", "Request"): "FormElicitationForRequest",
    ("ElicitationUrlMode", "Session"): "UrlElicitationForSession",
    ("ElicitationUrlMode", "Request"): "UrlElicitationForRequest",
}
"""Class names of variants without their own definition."""

UPSERTS = {
    "SessionInfoUpdate": {"title", "updatedAt"},
    "CompactionUpdate": {"summary", "error", "_meta"},
    "SubagentUpdate": {"title", "description", "capabilities", "state", "cwd", "additionalDirectories", "_meta"},
    "SessionMessage": {
        "senderSessionId",
        "recipientSessionId",
        "senderMessageId",
        "recipientMessageId",
        "content",
        "_meta",
    },
    "UserMessage": {"content", "_meta"},
    "AgentMessage": {"content", "_meta"},
    "AgentThought": {"content", "_meta"},
    "TerminalUpdate": {"command", "cwd", "output", "exitStatus", "size", "capabilities", "_meta"},
}
"""Fields for which absent keeps a value and null clears it."""

UPSERTS_OF_VERSION_2 = {
    "ToolCallUpdate": {
        "name",
        "title",
        "kind",
        "status",
        "content",
        "locations",
        "rawInput",
        "rawOutput",
        "capabilities",
        "_meta",
    },
}
"""Fields of types in both versions, for which only version 2 distinguishes absent from null."""

MERGED = {"StateUpdate", "IdleStateUpdate"}
"""Unions that become one struct with the fields of all variants, because the tag is outside them or optional."""

CLOSED_UNIONS = {"RequestPermissionOutcome"}
"""Unions for which an unknown outcome must be an error, because an unknown answer is not an approval."""
