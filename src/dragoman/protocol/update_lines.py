"""The lines of `session/update` as our own agents write them, for logs that keep lines and not messages.

All begin alike up to the update itself, so that a line is made, and given to another session, without being decoded.
"""

from collections.abc import Sequence

import msgspec

_TAIL = b"}}\n"


def update_lines(session_id: str, updates: Sequence[bytes]) -> bytes:
    """Return the lines that updates are logged and sent as; there is at least one."""
    head = _update_head(session_id)
    return head + (_TAIL + head).join(updates) + _TAIL


def rename_session(lines: bytes, old: str, new: str) -> bytes:
    """Give the lines of a fork its own session id; both ids have one length, so that no line changes its length.

    Only whole beginnings of lines are changed: a tool may have talked about messages of its own.
    """
    if len(old) != len(new):
        raise ValueError("a session id cannot be replaced by one of another length")
    return (b"\n" + lines).replace(b"\n" + _update_head(old), b"\n" + _update_head(new))[1:]


def _update_head(session_id: str) -> bytes:
    encoded = msgspec.json.encode(session_id)
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":' % encoded
