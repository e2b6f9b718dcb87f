"""The lines of `session/update` that our agents write, for logs that store lines instead of messages.

All lines start alike up to the update itself. A line is therefore made, and copied to another session, without
decoding.
"""

from collections.abc import Sequence

import msgspec

from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE

_TAIL = b"}}\n"


class _Line(msgspec.Struct):
    params: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode


def update_lines(session_id: str, updates: Sequence[bytes]) -> bytes:
    """Return the lines as which updates are logged and sent. `updates` must not be empty."""
    head = _update_head(session_id)
    return head + (_TAIL + head).join(updates) + _TAIL


def decode_update_line(line: bytes) -> v1.SessionNotification:
    """Decode one line, as leniently as the schema allows. Raises InvalidParamsError."""
    return decode_params(SESSION_UPDATE, _decode_line(line).params, lenient=True)


def rename_session(lines: bytes, old: str, new: str) -> bytes:
    """Replace the session id in the lines of a fork. Both ids have the same length, so lines keep their length.

    Only the start of a line is replaced, because a tool may have quoted such a message.
    """
    if len(old) != len(new):
        raise ValueError("a session id cannot be replaced by one of another length")
    return (b"\n" + lines).replace(b"\n" + _update_head(old), b"\n" + _update_head(new))[1:]


def _update_head(session_id: str) -> bytes:
    encoded = msgspec.json.encode(session_id)
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":' % encoded
