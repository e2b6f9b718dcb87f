"""The message id that a client may choose for its user's message.

In version 1 agents assign message ids, and a client does not learn the id of its prompt. An agent with
`"dragoman/message": true` in `agentCapabilities._meta` uses the id in `_meta["dragoman/message"]` of `session/prompt`.
Client and agent then use the same id for the message. A refused prompt has an id that the agent never saw.
"""

from typing import Any

MESSAGE_KEY = "dragoman/message"

_MAX_CHARS = 100


def read_message_name(meta: dict[str, Any] | None) -> str | None:
    """Return the id that a client chose for the message of its prompt, or None if it chose none that is usable."""
    name = (meta or {}).get(MESSAGE_KEY)
    return name if isinstance(name, str) and 0 < len(name) <= _MAX_CHARS and name.isprintable() else None
