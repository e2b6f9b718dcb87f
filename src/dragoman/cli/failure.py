"""Failures of an agent, in words for a person at a shell, without words of the protocol."""

import shlex
from collections.abc import Sequence
from typing import cast

from dragoman.cli.exit_codes import FAILED, USAGE
from dragoman.client import MissingCapability, NeedsLogin, NotAnAgent, StartTimeout
from dragoman.client.problem import QUOTED_LINES, Refused, describe_login
from dragoman.errors import DragomanError, ErrorCode, ProcessDied, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_CLOSE, SESSION_DELETE, SESSION_FORK, SESSION_LOAD, SESSION_RESUME
from dragoman.wire.peer import CRASHED

MAX_STDERR_LINES = 20
MAX_STDERR_BYTES = 16 * 1024

_OWN_PREFIX = "dragoman agent: "
_ABILITIES = {
    "session/load": "open earlier sessions, only new ones",
    "session/list": "list its sessions",
    "session/fork": "copy a session",
    "session/delete": "delete a session",
}
"""The abilities that an agent lacks without a method."""

_TOLD = "the agent failed, as its answer says"


class AgentStderr:
    """The end of an agent's stderr."""

    def __init__(self) -> None:
        self._end = b""

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._end = (self._end + data)[-MAX_STDERR_BYTES:]

    @property
    def tail(self) -> str:
        """The last lines."""
        return "\n".join(self._end.decode(errors="replace").strip().splitlines()[-MAX_STDERR_LINES:])


def explain(error: DragomanError, *, is_own: bool, stderr: str = "", answer: str = "", timeout_option: str = "") -> str:
    """Return the message for an error, without words that the agent has already put into its answer.

    `is_own` is for dragoman's own agent, which explains itself; `stderr` is the end of the agent's stderr;
    `timeout_option` is what gives it longer, where a command has that.
    """
    match error:
        case NotAnAgent() | ProcessDied() if is_own and (said := _own_words(error.stderr_tail or stderr)):
            words = said
        case NotAnAgent() | ProcessDied() if said := _runner_words(error.stderr_tail or stderr):
            words = said
        case NotAnAgent():
            words = _explain_stranger(error)
        case StartTimeout(command=command, timeout_s=timeout_s):
            longer = f"; if it needs longer, {timeout_option} S gives it S seconds" if timeout_option else ""
            step = f"see that it is an ACP agent, which many programs are only with a flag, such as --acp{longer}"
            words = f"{command} said nothing within {timeout_s:g} s of its start; {step}{_ending(stderr)}"
        case MissingCapability(agent=agent, wanted=wanted) if wanted in _ABILITIES:
            words = f"{agent} cannot {_ABILITIES[wanted]}"
        case NeedsLogin():
            words = _explain_login(error, answer, is_own=is_own)
        case RemoteError():
            words = _explain_answer(error, answer, stderr, is_own=is_own)
        case _:
            words = str(error)
    return words


def code_of(error: DragomanError) -> int | None:
    """Return the code that the agent answered with, for programs."""
    cause = error.__cause__ if isinstance(error, NeedsLogin) else error
    return cause.code if isinstance(cause, RemoteError) else None


def busy_session_of(error: DragomanError) -> str | None:
    """Return the id of the session that another process has open, as agents of the kit tell; None for other errors."""
    data: object = error.data if isinstance(error, RemoteError) else None
    if not isinstance(data, dict) or "pid" not in data:
        return None
    return str(cast("dict[str, object]", data).get("sessionId", ""))


def _own_words(tail: str) -> str:
    _, prefix, said = f"\n{tail.strip()}".rpartition(f"\n{_OWN_PREFIX}")
    return said if prefix else ""


def _runner_words(tail: str) -> str:
    """Return what the runner says of an agent elsewhere, and behind it what it was told."""
    from dragoman.runner import RUNNER_PREFIX

    before, prefix, said = f"\n{tail.strip()}".rpartition(f"\n{RUNNER_PREFIX}")
    return f"{said}{_ending(before.strip())}" if prefix else ""


def _explain_stranger(error: NotAnAgent) -> str:
    start = f"{error.command} is no ACP agent, or not with these arguments: it"
    if error.exit_code is None and error.signal is None:
        return f"{start} {error.problem}"
    how = f"exited with code {error.exit_code}" if error.signal is None else f"was killed by signal {error.signal}"
    lines = [f"{start} {how} before it answered; many programs are agents only with a flag, such as --acp or acp"]
    if error.printed:
        lines.extend(("it printed:", *error.printed[:QUOTED_LINES]))
    if error.stderr_tail.strip():
        lines.extend(("its stderr ends:", *error.stderr_tail.strip().splitlines()[-MAX_STDERR_LINES:]))
    return "\n".join(lines)


def _explain_answer(error: RemoteError, answer: str, stderr: str, *, is_own: bool) -> str:
    if error.words in answer:
        return _TOLD
    if is_own and error.data != CRASHED:
        return error.words
    words = f"the agent answered with an error: {error.words}"
    # The reason of an internal error is on stderr, if anywhere.
    is_unclear = error.code == ErrorCode.INTERNAL_ERROR and error.words not in stderr
    return f"{words}{_ending(stderr)}" if is_unclear else words


def _ending(stderr: str) -> str:
    return f"\nits stderr ends:\n{stderr}" if stderr else ""


def _explain_login(error: NeedsLogin, answer: str, *, is_own: bool) -> str:
    said = "" if error.said in answer else error.said
    if is_own and error.said:  # it names the way already
        return said or _TOLD
    return describe_login(error.command[0], said, [_explain_method(error.command, method) for method in error.methods])


def _explain_method(command: Sequence[str], method: v1.AuthMethod) -> str:
    words = f"{method.name}: {method.description.rstrip('.')}" if method.description else method.name
    if isinstance(method, v1.AuthMethodTerminal):
        return f"{words}; run {shlex.join([*command, *method.args])}"
    return f"{words}; log in with the agent's own program, or in an editor"


_OF_NAMED_SESSIONS = frozenset(
    method.name for method in (SESSION_LOAD, SESSION_RESUME, SESSION_FORK, SESSION_CLOSE, SESSION_DELETE)
)
"""Requests about a session that the command line names."""


def exit_code_of(error: DragomanError, *, is_own: bool) -> int:
    """Return the exit code for an error of an agent; `is_own` is for dragoman's own, which has the same codes."""
    match error:
        case Refused():
            return USAGE
        case NotAnAgent(exit_code=code) if is_own and code == USAGE:
            return USAGE
        case RemoteError(code=ErrorCode.RESOURCE_NOT_FOUND, method=method) if method in _OF_NAMED_SESSIONS:
            return USAGE
        case _:
            return FAILED
