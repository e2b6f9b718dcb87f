"""Cursors of lists: the place of the last session that was shown, and the list that it is of.

A place names no number of sessions, so a cursor holds when others come, go or move up. To clients it is opaque.
"""

import base64

import msgspec

from dragoman.bridge.delivery import ListPlace, ViewerRequest
from dragoman.bridge.envelope import encode
from dragoman.errors import ErrorCode


class _ListCursor(msgspec.Struct, frozen=True, array_like=True):
    place: ListPlace
    of: list[str | None]


def make_list_cursor(place: ListPlace, *of: str | None) -> str:
    """Make a cursor; `of` is what was asked for, by which another list is told from this one."""
    return base64.urlsafe_b64encode(encode(_ListCursor(place, list(of)))).decode()


def read_list_cursor(cursor: str, *of: str | None) -> ListPlace | None:
    """Return the place that a cursor names; None for one of another list, or for anything else."""
    try:
        read = msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=_ListCursor)
    except (ValueError, msgspec.DecodeError):
        return None
    return read.place if read.of == list(of) else None


def refuse_cursor(request: ViewerRequest) -> None:
    """Refuse a request whose cursor is of another list, or is none."""
    problem = "that is no cursor of this list; begin without one"
    request.refuse(ErrorCode.INVALID_PARAMS, {"path": "params.cursor", "problem": problem})
