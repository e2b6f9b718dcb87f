"""The exit codes that all commands have in common, as docs/run.md has them."""

from dragoman.client import NotAnAgent
from dragoman.client.problem import Refused
from dragoman.errors import DragomanError, ErrorCode, RemoteError
from dragoman.protocol.methods import SESSION_CLOSE, SESSION_DELETE, SESSION_FORK, SESSION_LOAD, SESSION_RESUME

FAILED = 1
"""The agent failed: it could not be started, is no agent, died, or answered with an error."""

USAGE = 2
"""The command line is wrong, names what is not there, or asks for what this agent cannot do."""

_OF_NAMED_SESSIONS = frozenset(
    method.name for method in (SESSION_LOAD, SESSION_RESUME, SESSION_FORK, SESSION_CLOSE, SESSION_DELETE)
)
"""Requests about a session that the command line names."""


def exit_code_of(error: DragomanError, *, is_own: bool) -> int:
    """Return the code for what went wrong with an agent; `is_own` is for dragoman's own, which has the same codes."""
    match error:
        case Refused():
            return USAGE
        case NotAnAgent(exit_code=code) if is_own and code == USAGE:
            return USAGE
        case RemoteError(code=ErrorCode.RESOURCE_NOT_FOUND, method=method) if method in _OF_NAMED_SESSIONS:
            return USAGE
        case _:
            return FAILED
