"""Names that a version does not have although no peer invented them: withdrawn drafts, or the other version.

A peer that sends one follows another edition of the specification. It gets a warning with the current replacement.
"""

import re

from dragoman.check.judge.dialect import Dialect
from dragoman.protocol.methods import METHODS

MODELS = "models were withdrawn from the drafts; offer a config option of the category model"
VARIABLES = (
    "auth methods of the type env_var were withdrawn from the drafts; name the variable in the description of a method"
    " without a type, or offer one of the type terminal"
)

_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("result session/(new|load|resume|fork)", r"result\.models", MODELS),
    ("result initialize", r"result\.authMethods\[\d+\]\.(type|vars|varName|link)", VARIABLES),
)
"""Kinds of messages, paths in them, and the current replacement."""

_METHODS = {
    "session/set_model": "it was withdrawn from the drafts; use session/set_config_option",
    "mcp/connect": "it was withdrawn from the drafts; send mcp/message with the serverId",
    "mcp/disconnect": "it was withdrawn from the drafts; send mcp/message with the serverId",
}
V2_METHODS = frozenset({"auth/login", "auth/logout", "terminal/cancel", "tool_call/cancel"})
"""Methods that only version 2 has. Listed here, because judging version 1 does not load the types of version 2."""

V2_UPDATES = frozenset(
    {
        "agent_message",
        "agent_thought",
        "state_update",
        "terminal_output_chunk",
        "terminal_update",
        "tool_call_content_chunk",
        "user_message",
    }
)
"""Kinds of `session/update` that only version 2 has."""


def explain_field(key: str, path: str, auth_type: str | None) -> str | None:
    """Return the replacement for a field at a path of a message kind, such as `result session/new`."""
    for kind, place, advice in _FIELDS:
        if re.fullmatch(kind, key) and re.fullmatch(place, path):
            return advice if advice is not VARIABLES or auth_type == "env_var" else None
    return None


V1_UPDATES = frozenset({"current_mode_update", "plan", "tool_call"})
"""Kinds of `session/update` that only version 1 has."""


def explain_method(method: str, dialect: Dialect) -> str | None:
    """Return the replacement for a method that the version does not have."""
    if method in dialect.methods:
        return None
    if dialect.version == 1:
        return _METHODS.get(method) or ("it is of version 2" if method in V2_METHODS else None)
    return "it is of version 1, and version 2 was agreed" if method in METHODS else _METHODS.get(method)
