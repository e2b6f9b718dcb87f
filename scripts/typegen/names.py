"""The decisions that the schema leaves open: names for nameless types, and meanings that are only in its prose."""

VARIANT_NAMES = {
    ("SessionUpdate", "tool_call_update"): "ToolCallProgress",
    ("RequestPermissionOutcome", "cancelled"): "CancelledPermissionOutcome",
    ("CreateElicitationResponse", "decline"): "ElicitationDeclineAction",
    ("CreateElicitationResponse", "cancel"): "ElicitationCancelAction",
    ("SetSessionConfigOptionRequest", "boolean"): "SetSessionConfigOptionBoolean",
    ("SetSessionConfigOptionRequest", "value_id"): "SetSessionConfigOptionValueId",
    ("ElicitationFormMode", "Session"): "FormElicitationForSession",
    ("ElicitationFormMode", "Request"): "FormElicitationForRequest",
    ("ElicitationUrlMode", "Session"): "UrlElicitationForSession",
    ("ElicitationUrlMode", "Request"): "UrlElicitationForRequest",
}
"""Class names of variants that are no definition of their own."""

THREE_STATE = {
    ("SessionInfoUpdate", "title"),
    ("SessionInfoUpdate", "updatedAt"),
    ("CompactionUpdate", "summary"),
    ("CompactionUpdate", "error"),
    ("CompactionUpdate", "_meta"),
}
"""Fields where absent leaves a value as it is and null clears it."""

CLOSED_UNIONS = {"RequestPermissionOutcome"}
"""Unions where an unknown outcome must be an error: an answer that is not understood is no approval."""
