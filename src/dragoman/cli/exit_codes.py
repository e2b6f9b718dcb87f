"""The exit codes of all commands, and the code of a turn for `dragoman run`."""

from typing import Final

DONE: Final = 0

FAILED: Final = 1
"""The agent or the server failed: it could not be started, is none, died, or answered with an error."""

USAGE: Final = 2
"""The command line is wrong, names a thing that is not there, or needs a capability that this agent lacks."""

LIMIT: Final = 3
"""The turn ended at a limit of tokens or requests."""

REFUSED: Final = 4
"""The agent refused to go on."""

CANCELLED: Final = 5

DENIED: Final = 6
"""The turn came to its end, but an action that the agent wanted was not allowed."""

TIMEOUT: Final = 124
"""The code of `timeout`."""

INTERRUPTED: Final = 128 + 2

READER_GONE: Final = 128 + 13
"""The code of a shell for a command that SIGPIPE ended."""

_OF_STOP_REASONS = {
    "end_turn": DONE,
    "max_tokens": LIMIT,
    "max_turn_requests": LIMIT,
    "refusal": REFUSED,
    "cancelled": CANCELLED,
}


def turn_exit_code(stop_reason: str, *, was_denied: bool, was_interrupted: bool) -> int:
    """Return the code of a turn that ended so; some agents call it cancelled when an action was denied."""
    code = _OF_STOP_REASONS.get(stop_reason, FAILED)
    if was_denied and (code == DONE or (code == CANCELLED and not was_interrupted)):
        return DENIED
    return code
