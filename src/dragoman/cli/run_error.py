"""What went wrong, in words for somebody at a shell."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.client import NeedsLogin, NotAnAgent, StartTimeout
from dragoman.client.problem import QUOTED_LINES
from dragoman.errors import DragomanError, ErrorCode, ProcessDied, RemoteError
from dragoman.protocol import v1

MAX_STDERR_LINES = 20
MAX_STDERR_BYTES = 16 * 1024

OWN_PREFIX = "dragoman agent: "
_TELLING = ("details", "detail", "message", "problem", "reason", "error")
"""Where agents put the words of an error's data."""

_PLAIN_CODES = frozenset(ErrorCode) - {ErrorCode.INTERNAL_ERROR}
"""Errors that say what is wrong; for the others the reason is on stderr, if anywhere."""


class Log:
    """The end of what an agent writes to its stderr."""

    def __init__(self) -> None:
        self._end = b""

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._end = (self._end + data)[-MAX_STDERR_BYTES:]

    @property
    def tail(self) -> str:
        """The last lines."""
        return "\n".join(self._end.decode(errors="replace").strip().splitlines()[-MAX_STDERR_LINES:])


def explain(error: DragomanError, log: Log, answer: str, *, is_own: bool) -> str:
    """Return what to print of an error, without what the agent has said in its answer already.

    `is_own` is for dragoman's own agent, which speaks for itself.
    """
    match error:
        case NotAnAgent() | ProcessDied() if is_own and (said := _own_words(error.stderr_tail or log.tail)):
            return said
        case NotAnAgent():
            return _explain_stranger(error)
        case StartTimeout(command=command, timeout_s=timeout_s):
            return (
                f"{command} said nothing within {timeout_s:g} s of its start; if it is an ACP agent that needs longer, "
                f"--timeout S gives it S seconds{_stderr(log)}"
            )
        case NeedsLogin():
            return _explain_login(error, answer, is_own=is_own)
        case RemoteError():
            return _explain_answer(error, answer) + ("" if error.code in _PLAIN_CODES else _stderr(log))
        case _:
            return str(error)


def _own_words(tail: str) -> str:
    _, prefix, said = f"\n{tail.strip()}".rpartition(f"\n{OWN_PREFIX}")
    return f"{OWN_PREFIX}{said}" if prefix else ""


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


def _explain_answer(error: RemoteError, answer: str) -> str:
    said = _words_of(error.data)
    if not said or said in error.message or said in answer:
        words = error.message
    elif error.message in said:
        words = said
    else:
        words = f"{error.message}: {said}"
    return f"the agent answered {error.method} with an error: {words} ({error.code})"


def _words_of(data: Any) -> str:
    match data:
        case None:
            return ""
        case str():
            return data.strip()
        case dict():
            return _words_of_members(cast("Mapping[str, Any]", data))
        case _:
            return json.dumps(data, ensure_ascii=False, default=str)


def _words_of_members(data: Mapping[str, Any]) -> str:
    said = next((data[key].strip() for key in _TELLING if isinstance(data.get(key), str) and data[key].strip()), None)
    if said is None:
        return "; ".join(f"{key}: {_words_of(value)}" for key, value in data.items())
    path = data.get("path")
    return f"{path}: {said}" if isinstance(path, str) and path else said


def _stderr(log: Log) -> str:
    return f"\nits stderr ends:\n{log.tail}" if log.tail else ""


def _explain_login(error: NeedsLogin, answer: str, *, is_own: bool) -> str:
    cause = error.__cause__
    said = _words_of(cause.data) if isinstance(cause, RemoteError) else ""
    if is_own and said:  # it names the way already
        return "the agent needs a login first" if said in answer else said
    start = f"{error.command[0]} needs a login{f' ({said})' if said and said not in answer else ''}"
    ways = "\n".join(f"- {_explain_method(error.command, method)}" for method in error.methods)
    return f"{start}: choose one of its ways\n{ways}" if ways else f"{start}, and offers no way to; see its own manual"


def _explain_method(command: Sequence[str], method: v1.AuthMethod) -> str:
    words = f"{method.name}: {method.description.rstrip('.')}" if method.description else method.name
    if isinstance(method, v1.AuthMethodTerminal):
        return f"{words}; run {shlex.join([*command, *method.args])}"
    return f"{words}; log in with the agent's own program, or in an editor"
