"""The boundary of a session and the decisions inside it, for our files and terminals."""

import errno
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from dragoman.client.policy import Decision, Question
from dragoman.client.session import Session
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.files import Boundary, FileProblem, PathError
from dragoman.files.path import is_absolute

BoundaryOf = Callable[[str], Boundary]
"""Gives the boundary of a session; raises RpcError where there is no such session."""

Decide = Callable[[Question], Awaitable[Decision | None]]
"""Asks the policy; None when the turn was cancelled meanwhile."""

_MISSING = (errno.ENOENT, errno.ENOTDIR)


class SessionBoundaries:
    """The boundary of each session, opened at first need and kept for as long as the session."""

    def __init__(self, find: Callable[[str], Session]) -> None:
        self._find = find
        self._boundaries: WeakKeyDictionary[Session, Boundary] = WeakKeyDictionary()

    def __call__(self, session_id: str) -> Boundary:
        """Return the boundary of a session; raises RpcError."""
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
    """Raise InvalidParams unless a path is absolute, as the protocol wants it."""
    if not is_absolute(path):
        raise InvalidParams(f"params.{field}", f"the path {path!r} is not absolute", expected="an absolute path")


def refuse(error: PathError) -> RpcError:
    """Return the answer for a path that cannot be used."""
    data = {"path": error.path, "problem": str(error)}
    if not isinstance(error, FileProblem):
        return RpcError(ErrorCode.INVALID_PARAMS, data)
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND if error.errno in _MISSING else ErrorCode.INTERNAL_ERROR, data)


async def require(decide: Decide, question: Question, doing: str) -> None:
    """Have something decided; raises RpcError, with the reason, unless it is allowed."""
    decision = await decide(question)
    if decision is None:
        raise RpcError(ErrorCode.REQUEST_CANCELLED, {"problem": f"the turn was cancelled before {doing} was allowed"})
    if decision.verdict != "allow":
        raise denied(doing, decision.reason)


def denied(doing: str, reason: str) -> RpcError:
    """Return the answer for a denied action."""
    because = f": {reason}" if reason else ""
    return RpcError(ErrorCode.INVALID_REQUEST, {"problem": f"{doing} is not allowed{because}"}, phrase="Not allowed")
