"""The command that starts a child: its environment, the order for the monitor, and the reason of a failed start.

Errors show the command without its arguments and variables without their values, because both may be secret.
"""

import errno
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from dragoman.errors import CommandNotFoundError, StartError
from dragoman.text.secret import is_secret_name

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The variables that a child inherits by default. They contain none of our keys and tokens."""

EVERYTHING: Final[Collection[str]] = ("*",)
"""A value for `inherit`: the child inherits our whole environment, secrets included."""


_ADVICE = {
    errno.EACCES: "it is not executable. Make it executable (chmod +x), or start it with its interpreter",
    errno.EPERM: "it is not executable. Make it executable (chmod +x), or start it with its interpreter",
    errno.ENOEXEC: "it is not a program for this machine and has no #! line. Start it with its interpreter",
    errno.E2BIG: "its arguments and environment are too long for this system. Pass large ones in a file",
    errno.EAGAIN: "the system cannot start another process. End some, or raise the limit (ulimit -u)",
    errno.ENOMEM: "the system is out of memory",
    errno.EMFILE: "too many files are open. Close some, or raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this system",
}


def without_secrets() -> dict[str, str]:
    """Return our environment without variables whose names look secret, because a model must not see our keys."""
    return {name: value for name, value in os.environ.items() if not is_secret_name(name)}


def make_environment(variables: Mapping[str, str] | None, inherit: Collection[str] | None) -> dict[str, str]:
    """Return the variables that `inherit` names, overridden by `variables`."""
    if inherit is EVERYTHING:
        return {**os.environ, **(variables or {})}
    names = INHERITED if inherit is None else inherit
    return {**{name: os.environ[name] for name in names if name in os.environ}, **(variables or {})}


def encode_order(command: Sequence[str], cwd: str, environment: Mapping[str, str]) -> bytes:
    """Encode an order for a monitor in the format that `fork_server/__init__.py` describes.

    Raises StartError if a program cannot receive one of the values.
    """
    _check_command(command, cwd)
    _check_environment(command[0], environment)
    variables = [f"{name}={value}" for name, value in environment.items()]
    try:
        body = b"\0".join(os.fsencode(field) for field in (cwd, str(len(command)), *command, *variables))
    except UnicodeEncodeError as error:
        raise StartError(ascii(command[0]), f"the system cannot encode its arguments: {error.reason}") from None
    return len(body).to_bytes(4, "big") + body


def _check_command(command: Sequence[str], cwd: str) -> None:
    if not command or not command[0]:
        raise StartError("''", "the command is empty. Name the program to start")
    if "\0" in cwd or any("\0" in argument for argument in command):
        shown = command[0].replace("\0", "\\0")
        raise StartError(shown, "its arguments or working directory contain a NUL character. Remove it")


def _check_environment(command: str, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name:
            raise StartError(command, f"{name!r} cannot be the name of an environment variable")
        if "\0" in value:
            raise StartError(command, f"the value of the environment variable {name} contains a NUL character")


def read_answer(command: str, cwd: str, answer: bytes) -> int | None:
    """Return the pid in a monitor's answer, or None if the monitor died without an answer.

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
        return CommandNotFoundError(command)
    if stage == "cwd":
        return StartError(command, _explain_directory(cwd, int(number)))
    if stage == "interpreter":
        return StartError(command, "its interpreter or loader does not exist. Install it")
    return StartError(command, explain_errno(int(number)))


def explain_errno(number: int) -> str:
    """Return a sentence that explains an errno of a start, with the fix."""
    return _ADVICE.get(number) or os.strerror(number)


def _explain_directory(cwd: str, number: int) -> str:
    if number == errno.ENOENT:
        return f"its working directory {cwd} does not exist. Create it or name another"
    if number == errno.ENOTDIR:
        return f"its working directory {cwd} is not a directory. Name another"
    return f"its working directory {cwd} cannot be entered: {os.strerror(number)}"
