"""The id of a user's message, which the client that sends it may choose.

ACP's version 1 lets agents give messages ids, and a client learns no id of its own prompt. An agent that has
`"dragoman/message": true` in `agentCapabilities._meta` takes the id in `_meta["dragoman/message"]` of `session/prompt`
for the message, so that both have the same name for it: a prompt that was refused has a name that the agent never saw.
"""

from typing import Any

MESSAGE_KEY = "dragoman/message"

_MAX_CHARS = 100


def read_message_name(meta: dict[str, Any] | None) -> str | None:
    """Return the id that a client chose for the message of its prompt; None if it chose none that can be used."""
    name = (meta or {}).get(MESSAGE_KEY)
    return name if isinstance(name, str) and 0 < len(name) <= _MAX_CHARS and name.isprintable() else None
