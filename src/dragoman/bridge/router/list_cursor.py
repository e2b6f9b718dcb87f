"""Cursors of lists: the place of the last session that was shown, and the name of the list.

A place is not a count of sessions, so a cursor stays valid when other sessions are added, removed or move up. It is
opaque to clients.
"""

import base64

import msgspec

from dragoman.bridge.delivery import ListPlace
from dragoman.errors import ErrorCode, RpcError
from dragoman.wire.envelope import encode


class _ListCursor(msgspec.Struct, frozen=True, array_like=True):
    place: ListPlace
    of: list[str | None]


def make_list_cursor(place: ListPlace, *of: str | None) -> str:
    """Return a cursor. `of` names the list by the parameters of its request."""
    return base64.urlsafe_b64encode(encode(_ListCursor(place, list(of)))).decode()


def read_list_cursor(cursor: str, *of: str | None) -> ListPlace | None:
    """Return the place of a cursor. Return None if it belongs to another list or cannot be read."""
    try:
        read = msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=_ListCursor)
    except (ValueError, msgspec.DecodeError):
        return None
    return read.place if read.of == list(of) else None


def wrong_cursor() -> RpcError:
    """Return the error for a cursor that belongs to another list or cannot be read."""
    problem = "the cursor does not belong to this list; start without one"
    return RpcError(ErrorCode.INVALID_PARAMS, {"path": "params.cursor", "problem": problem})
