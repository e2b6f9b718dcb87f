"""The command that starts a child: its environment, the order that a monitor reads, and why a start failed.

Errors name the command without its arguments and variables without their values: both may hold secrets.
"""

import errno
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from dragoman.errors import CommandNotFound, StartError
from dragoman.text.secret import is_secret_name

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The variables of ours that a child gets unless told otherwise: none of our keys and tokens is in there."""

EVERYTHING: Final[Collection[str]] = ("*",)
"""Given for `inherit`, a child gets our whole environment, secrets included."""


_ADVICE = {
    errno.EACCES: "it may not be executed; make it executable (chmod +x), or start it with its interpreter",
    errno.EPERM: "it may not be executed; make it executable (chmod +x), or start it with its interpreter",
    errno.ENOEXEC: "it is no program for this machine and has no #! line; start it with its interpreter",
    errno.E2BIG: "its arguments and environment are too long for this system; pass the big ones in a file",
    errno.EAGAIN: "the system has no room for another process; end some, or raise the limit (ulimit -u)",
    errno.ENOMEM: "the system is out of memory",
    errno.EMFILE: "too many files are open; close some, or raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this system",
}


def without_secrets() -> dict[str, str]:
    """Return our environment without the variables whose names look like secrets: a model is not to see our keys."""
    return {name: value for name, value in os.environ.items() if not is_secret_name(name)}


def make_environment(given: Mapping[str, str] | None, inherit: Collection[str] | None) -> dict[str, str]:
    """Return our variables named by `inherit`, and `given` over them."""
    if inherit is EVERYTHING:
        return {**os.environ, **(given or {})}
    names = INHERITED if inherit is None else inherit
    return {**{name: os.environ[name] for name in names if name in os.environ}, **(given or {})}


def encode_order(command: Sequence[str], cwd: str, environment: Mapping[str, str]) -> bytes:
    """Frame an order for a monitor; `fork_server/__init__.py` describes the format.

    Raises StartError if it holds something that no program can be given.
    """
    _check_command(command, cwd)
    _check_environment(command[0], environment)
    variables = [f"{name}={value}" for name, value in environment.items()]
    try:
        body = b"\0".join(os.fsencode(field) for field in (cwd, str(len(command)), *command, *variables))
    except UnicodeEncodeError as error:
        raise StartError(ascii(command[0]), f"this system cannot encode what it is given: {error.reason}") from None
    return len(body).to_bytes(4, "big") + body


def _check_command(command: Sequence[str], cwd: str) -> None:
    if not command or not command[0]:
        raise StartError("''", "the command is empty; name the program to start")
    if "\0" in cwd or any("\0" in argument for argument in command):
        shown = command[0].replace("\0", "\\0")
        raise StartError(shown, "its arguments or working directory contain a NUL character; remove it")


def _check_environment(command: str, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name:
            raise StartError(command, f"{name!r} cannot be the name of an environment variable")
        if "\0" in value:
            raise StartError(command, f"the value of the environment variable {name} contains a NUL character")


def read_answer(command: str, cwd: str, answer: bytes) -> int | None:
    """Return the pid that a monitor has answered with, or None if it died without an answer.

    Raises StartError if the start failed.
    """
    if not answer:
        return None
    word, *details = answer.decode().split()
    if word == "failed":
        raise _explain_failure(command, cwd, *details)
    return int(details[0])


def _explain_failure(command: str, cwd: str, stage: str, number: str) -> StartError:
    if stage == "missing":
        return CommandNotFound(command)
    if stage == "cwd":
        return StartError(command, _explain_directory(cwd, int(number)))
    if stage == "interpreter":
        return StartError(command, "the interpreter or loader that it names does not exist; install that")
    return StartError(command, explain_errno(int(number)))


def explain_errno(number: int) -> str:
    """Say in a sentence what an errno means for a start, with the next step."""
    return _ADVICE.get(number) or os.strerror(number)


def _explain_directory(cwd: str, number: int) -> str:
    if number == errno.ENOENT:
        return f"its working directory {cwd} does not exist; create it or name another"
    if number == errno.ENOTDIR:
        return f"its working directory {cwd} is not a directory; name another"
    return f"its working directory {cwd} cannot be entered: {os.strerror(number)}"
