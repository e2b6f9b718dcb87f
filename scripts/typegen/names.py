"""The decisions that the schema leaves open: names for nameless types, and meanings that are only in its prose."""

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
"""Class names of variants that are no definition of their own."""

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
"""Fields where absent leaves a value as it is and null clears it."""

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
"""Fields of types that both versions have, where only version 2 tells absent from null."""

MERGED = {"StateUpdate", "IdleStateUpdate"}
"""Unions that become one struct with the fields of all variants: their tag is beside another tag, or optional."""

CLOSED_UNIONS = {"RequestPermissionOutcome"}
"""Unions where an unknown outcome must be an error: an answer that is not understood is no approval."""
