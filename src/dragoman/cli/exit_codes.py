"""The exit codes of all commands, and the code for each result of a turn."""

from typing import Final

DONE: Final = 0

FAILED: Final = 1
"""The agent or server failed: it did not start, is not an agent, died, or returned an error."""

USAGE: Final = 2
"""The command line is wrong, names something missing, or needs a capability that the agent lacks."""

LIMIT: Final = 3
"""The turn ended at a token or request limit."""

REFUSED: Final = 4
"""The agent refused to continue."""

CANCELLED: Final = 5

DENIED: Final = 6
"""The turn ended normally, but a permission request was denied."""

TIMEOUT: Final = 124
"""The exit code of `timeout`."""

INTERRUPTED: Final = 128 + 2

READER_GONE: Final = 128 + 13
"""The code that shells report for a command killed by SIGPIPE."""

_STOP_REASON_CODES = {
    "end_turn": DONE,
    "max_tokens": LIMIT,
    "max_turn_requests": LIMIT,
    "refusal": REFUSED,
    "cancelled": CANCELLED,
}


def turn_exit_code(stop_reason: str, *, was_denied: bool, was_interrupted: bool) -> int:
    """Return the exit code of a turn.

    Some agents report a turn as cancelled when a permission request was denied.
    """
    code = _STOP_REASON_CODES.get(stop_reason, FAILED)
    if was_denied and (code == DONE or (code == CANCELLED and not was_interrupted)):
        return DENIED
    return code
