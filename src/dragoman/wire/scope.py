"""Which session a message is about: all that the wire has to know of ACP, and only because HTTP asks for it."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.wire.message import BAD_JSON

OPENING = frozenset(("session/load", "session/resume"))
"""Requests whose answer may come on the stream of the connection, although it follows updates of the session."""

ENDING = frozenset(("session/close", "session/delete"))
"""Requests after which a session has nothing more to say."""


class _Scope(msgspec.Struct, rename="camel"):
    session_id: str | UnsetType | None = UNSET


_decode = msgspec.json.Decoder(_Scope).decode


def session_of(content: Raw | UnsetType) -> str | None:
    """Return the session that params or a result name, if they name one."""
    if content is UNSET:
        return None
    try:
        return _decode(content).session_id or None
    except BAD_JSON:
        return None
