"""Explains an agent's failures to a user at a shell, without words of the protocol."""

import re
import shlex
from collections.abc import Sequence
from typing import cast

from dragoman.cli.exit_codes import FAILED, USAGE
from dragoman.client.errors import LoginRequiredError, MissingCapabilityError, NotAnAgentError, StartTimeoutError
from dragoman.client.problem import QUOTED_LINES, RequestNotSentError, describe_login
from dragoman.errors import DragomanError, ErrorCode, ProcessDiedError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_CLOSE, SESSION_DELETE, SESSION_FORK, SESSION_LOAD, SESSION_RESUME
from dragoman.wire.peer import CRASHED

MAX_STDERR_LINES = 20
MAX_STDERR_BYTES = 16 * 1024

_OWN_PREFIX = "dragoman agent: "
_METHOD_PURPOSES = {
    "session/load": "open earlier sessions, only new ones",
    "session/list": "list its sessions",
    "session/fork": "copy a session",
    "session/delete": "delete a session",
}
"""The ability that an agent lacks without each method."""

_ALREADY_SHOWN = "the agent reported a failure"


class AgentStderr:
    """The last lines of an agent's stderr."""

    def __init__(self) -> None:
        self._end = b""

    def add(self, data: bytes) -> None:
        """Append output and drop all but its last bytes."""
        self._end = (self._end + data)[-MAX_STDERR_BYTES:]

    @property
    def tail(self) -> str:
        """The last lines."""
        return "\n".join(self._end.decode(errors="replace").strip().splitlines()[-MAX_STDERR_LINES:])


def explain(error: DragomanError, *, is_own: bool, stderr: str = "", answer: str = "", timeout_option: str = "") -> str:
    """Return the message for an error. It does not repeat words that the agent's answer already contains.

    `is_own` is true for dragoman's own agent, which explains itself. `stderr` is the end of the agent's stderr.
    `timeout_option` is the option of this command that allows more time, if it has one.
    """
    # The most specific explanation wins: the message of dragoman's agent, then the runner's, then our guess about a
    # program that is not an agent or needs a login.
    match error:
        case NotAnAgentError() | ProcessDiedError() if is_own and (reason := _own_text(error.stderr_tail or stderr)):
            message = reason
        case NotAnAgentError() | ProcessDiedError() if reason := _runner_text(error.stderr_tail or stderr):
            message = reason
        case NotAnAgentError():
            message = _explain_not_an_agent(error)
        case StartTimeoutError(command=command, timeout_s=timeout_s):
            longer = f". If it needs longer, raise {timeout_option}" if timeout_option else ""
            step = f"check that it is an ACP agent; many programs need a flag for that, such as --acp{longer}"
            message = f"{command} sent nothing within {timeout_s:g} s of its start; {step}{_ending(stderr)}"
        case MissingCapabilityError(agent=agent, wanted=wanted) if wanted in _METHOD_PURPOSES:
            message = f"{agent} cannot {_METHOD_PURPOSES[wanted]}"
        case LoginRequiredError():
            message = _explain_login(error, answer, is_own=is_own)
        case RemoteError():
            message = _explain_answer(error, answer, stderr, is_own=is_own)
        case _:
            message = str(error)
    return message


def code_of(error: DragomanError) -> int | None:
    """Return the error code that the agent answered with, for `--format json`."""
    cause = error.__cause__ if isinstance(error, LoginRequiredError) else error
    return cause.code if isinstance(cause, RemoteError) else None


def busy_session_of(error: DragomanError) -> str | None:
    """Return the id of the session that another process has open, or None for other errors.

    Agents built with our kit report it in the error's data.
    """
    data: object = error.data if isinstance(error, RemoteError) else None
    if not isinstance(data, dict) or "pid" not in data:
        return None
    return str(cast("dict[str, object]", data).get("sessionId", ""))


def _own_text(tail: str) -> str:
    _, prefix, message = f"\n{tail.strip()}".rpartition(f"\n{_OWN_PREFIX}")
    return message if prefix else ""


def _runner_text(tail: str) -> str:
    """Return the runner's message about an agent in a container or on another host, followed by its stderr."""
    from dragoman.runner import RUNNER_PREFIX

    before, prefix, message = f"\n{tail.strip()}".rpartition(f"\n{RUNNER_PREFIX}")
    return f"{message}{_ending(before.strip())}" if prefix else ""


def _explain_not_an_agent(error: NotAnAgentError) -> str:
    start = f"{error.command} is not an ACP agent with these arguments: it"
    if error.exit_code is None and error.signal is None:
        return f"{start} {error.problem}"
    how = f"exited with code {error.exit_code}" if error.signal is None else f"was killed by signal {error.signal}"
    stderr = error.stderr_tail.strip().splitlines()[-MAX_STDERR_LINES:]
    reason = None if error.exit_code == 0 else _find_reason(stderr)
    if reason is None:
        lines = [f"{start} {how} before it answered; many programs need a flag for that, such as --acp or acp"]
    else:
        step = "fix that and start it again. If it is not an ACP agent with these arguments, it may need a flag"
        lines = [reason, f"{error.command} {how} before it answered; {step}, such as --acp or acp"]
    if error.printed:
        lines.extend(("it printed:", *error.printed[:QUOTED_LINES]))
    if stderr and stderr != [reason]:
        lines.extend(("its stderr ends:", *stderr))
    return "\n".join(lines)


_NAMES_ERROR = re.compile(r"(?:error|exception|fatal|panicked)\b", re.IGNORECASE)
_STARTS = re.compile(r"[^\s^~{}()\]|+*=#-].*\w")
"""The start of lines that are not part of a stack trace, a drawing or a list."""
_CLOSING = re.compile(r"Node\.js v|note: |For more information|Try |During handling of |The above exception ")
"""The start of lines that runtimes and option parsers print after the reason."""


def _find_reason(stderr: Sequence[str]) -> str | None:
    """Return the line that says why a program ended: its last error, or else its last whole sentence.

    Indented lines belong to a stack trace or to the line above them. So does the line after a colon.
    """
    sentences = [number for number, line in enumerate(stderr) if _STARTS.match(line) and not _CLOSING.match(line)]
    errors = [number for number in sentences if _NAMES_ERROR.search(stderr[number])]
    if not sentences:
        return None
    last = (errors or sentences)[-1]
    reason = stderr[last].rstrip()
    return " ".join([reason, *stderr[last + 1 : last + 2]]) if reason.endswith(":") else reason


def _explain_answer(error: RemoteError, answer: str, stderr: str, *, is_own: bool) -> str:
    if error.text in answer:
        return _ALREADY_SHOWN
    if is_own and error.data != CRASHED:
        return error.text
    message = f"the agent answered with an error: {error.text}"
    # The reason of an internal error can only be on stderr.
    is_unclear = error.code == ErrorCode.INTERNAL_ERROR and error.text not in stderr
    return f"{message}{_ending(stderr)}" if is_unclear else message


def _ending(stderr: str) -> str:
    return f"\nits stderr ends:\n{stderr}" if stderr else ""


def _explain_login(error: LoginRequiredError, answer: str, *, is_own: bool) -> str:
    message = "" if error.agent_message in answer else error.agent_message
    if is_own and error.agent_message:  # its message already names the fix
        return message or _ALREADY_SHOWN
    return describe_login(
        error.command[0], message, [_explain_method(error.command, method) for method in error.methods]
    )


def _explain_method(command: Sequence[str], method: v1.AuthMethod) -> str:
    text = f"{method.name}: {method.description.rstrip('.')}" if method.description else method.name
    if isinstance(method, v1.AuthMethodTerminal):
        return f"{text}; run {shlex.join([*command, *method.args])}"
    return f"{text}; log in with the agent's own program or in an editor"


_NAMED_SESSION_METHODS = frozenset(
    method.name for method in (SESSION_LOAD, SESSION_RESUME, SESSION_FORK, SESSION_CLOSE, SESSION_DELETE)
)
"""Requests about a session that the command line names."""


def exit_code_of(error: DragomanError, *, is_own: bool) -> int:
    """Return the exit code for an agent's error.

    `is_own` is true for dragoman's own agent, which uses the same codes.
    """
    match error:
        case RequestNotSentError():
            return USAGE
        case NotAnAgentError(exit_code=code) if is_own and code == USAGE:
            return USAGE
        case RemoteError(code=ErrorCode.RESOURCE_NOT_FOUND, method=method) if method in _NAMED_SESSION_METHODS:
            return USAGE
        case _:
            return FAILED
