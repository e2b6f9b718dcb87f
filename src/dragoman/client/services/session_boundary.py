"""The boundary of a session, and the policy's decisions, for the file and terminal services."""

import errno
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from dragoman.client.permission.policy import Decision, PermissionQuestion
from dragoman.client.sessions.session import Session
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError
from dragoman.files import Boundary, FileAccessError, PathError
from dragoman.files.path import is_absolute

BoundaryOf = Callable[[str], Boundary]
"""Returns the boundary of a session. Raises RpcError if the session does not exist."""

Decide = Callable[[PermissionQuestion], Awaitable[Decision | None]]
"""Asks the policy. Returns None if the turn was cancelled first."""

_MISSING = (errno.ENOENT, errno.ENOTDIR)


class SessionBoundaries:
    """The boundary of each session, opened on first use and kept as long as the session."""

    def __init__(self, find: Callable[[str], Session]) -> None:
        self._find = find
        self._boundaries: WeakKeyDictionary[Session, Boundary] = WeakKeyDictionary()

    def __call__(self, session_id: str) -> Boundary:
        """Return the boundary of a session. Raises RpcError."""
        session = self._find(session_id)
        boundary = self._boundaries.get(session)
        if boundary is None:
            try:
                boundary = Boundary([session.cwd, *session.additional_directories])
            except PathError as error:
                raise refuse(error) from None
            self._boundaries[session] = boundary
        return boundary


def check_absolute(path: str, field: str) -> None:
    """Raise InvalidParamsError unless a path is absolute, as the protocol requires."""
    if not is_absolute(path):
        raise InvalidParamsError(f"params.{field}", f"the path {path!r} is not absolute", expected="an absolute path")


def refuse(error: PathError) -> RpcError:
    """Return the error response for an unusable path."""
    data = {"path": error.path, "problem": str(error)}
    if not isinstance(error, FileAccessError):
        return RpcError(ErrorCode.INVALID_PARAMS, data)
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND if error.errno in _MISSING else ErrorCode.INTERNAL_ERROR, data)


async def require(decide: Decide, question: PermissionQuestion, doing: str) -> None:
    """Ask the policy, and raise RpcError with the reason unless it allows the action."""
    decision = await decide(question)
    if decision is None:
        raise RpcError(ErrorCode.REQUEST_CANCELLED, {"problem": f"the turn was cancelled before {doing} was allowed"})
    if decision.verdict != "allow":
        raise denied(doing, decision.reason)


def denied(doing: str, reason: str) -> RpcError:
    """Return the error response for a denied action."""
    because = f": {reason}" if reason else ""
    return RpcError(ErrorCode.INVALID_REQUEST, {"problem": f"{doing} is not allowed{because}"}, phrase="Not allowed")
