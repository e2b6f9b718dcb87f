"""The place of an agent, and the command line that starts it there.

The command lines contain no values of variables, because every user of a machine can read the arguments of its
processes. `docker` reads the values from its own environment by name. Over ssh, the first line on stdin is a line of
shell that sets them. Then the agent replaces the shell.

If `docker run` is killed, its container survives, because the engine owns the processes. The container only sees the
end of its stdin. A shell in the container therefore passes stdin to the agent. If the agent still runs some seconds
after the end of stdin, the shell kills it, and the container ends.

When an ssh connection ends, sshd closes the stdin of a program without a terminal and does nothing else. A program that
hangs does not notice that. A process next to the agent therefore checks every second whether sshd still runs. If not,
it kills the agent's process group.
"""

import os
import re
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import msgspec

from dragoman.errors import DragomanError

RunnerKind = Literal["docker", "ssh", "sandbox"]

SSH_LOST = 255
"""The exit code of `ssh` for its own errors. Any other code is the agent's."""

DOCKER_FAILED = 125
"""The exit code of `docker run` if it could not start the container."""

RUNNER_PREFIX = "dragoman runner: "
"""Prefix of the runner's own lines on stderr."""

_KINDS: dict[str, RunnerKind] = {"docker": "docker", "ssh": "ssh"}
_EXPECTED = "expected docker:IMAGE, ssh:HOST or sandbox"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3")
"""Options for ssh: without a terminal, without questions to the user, and with dead connections detected in 45 s."""

_WATCH = (
    "(trap : TERM; while kill -0 $PPID && kill -0 $$; do sleep 1; done; kill -TERM -$$; sleep 2; kill -KILL -$$) "
    "</dev/null >/dev/null 2>&1 &"
)
_CONTAINER_SCRIPT = """\
exec 3<&0 </dev/null
stopped=
trap 'stopped=1; trap : TERM; kill -TERM 0' TERM
{ trap : TERM; sh -c 'echo $PPID'; cat <&3; exec >/dev/null 2>&1; sleep 3; kill -KILL $$; } |
{ trap : TERM; exec 3<&-; read -r relay; "$@"; code=$?; kill -KILL $relay 2>/dev/null; exit $code; } &
[ -z "$stopped" ] || kill -TERM 0
while :; do wait $! 2>/dev/null; code=$?; kill -0 $! 2>/dev/null || break; done
trap '' TERM
wait $! 2>/dev/null; last=$?; [ $last = 127 ] || code=$last
exit $code
"""
"""The main process of the container. The container ends when this shell ends.

The pipeline has two parts. The first part writes its process id and then passes stdin on. The second part runs the
agent and exits with its code.

SIGTERM. Both parts ignore it with a trap. The agent has no such trap and receives the signal with its process group. A
signal that arrives while the parts start is sent again afterwards.

Exit code. A signal interrupts `wait`, even after the agent has ended and `wait` waits for the first part. The shell
therefore calls `wait` once more after the agent is gone. The code 127 means that the previous `wait` returned the code.
"""

_SCRIPT = f'IFS= read -r setup && eval "$setup" || exit 126; {_WATCH} exec "$@"'


class InvalidPlaceError(DragomanError):
    """A place, a path mapping or a variable name is invalid."""


class Place(msgspec.Struct, frozen=True):
    """The place of an agent: a container image, an ssh host, or a sandbox on this machine."""

    kind: RunnerKind
    target: str = ""
    """The image, or the host in the form that `ssh` accepts. Empty for a sandbox."""
    paths: tuple[tuple[str, str], ...] = ()
    """Pairs of a local directory and its remote name."""
    variables: tuple[str, ...] = ()
    """Names of the local environment variables that are passed to the agent."""
    writable: tuple[str, ...] = ()
    """The paths that an agent in a sandbox may change, the directory of its sessions first."""

    @property
    def shown(self) -> str:
        """The place as the user writes it."""
        return f"{self.kind}:{self.target}" if self.target else self.kind

    def with_paths(self, *pairs: tuple[str, str]) -> Self:
        """Return a copy with these directory pairs. Raises InvalidPlaceError."""
        for here, there in pairs:
            _check_paths(self.kind, here, there)
        return msgspec.structs.replace(self, paths=pairs)

    def with_writable(self, directory: str) -> Self:
        """Return a copy in which the agent may also change this directory, in which it starts."""
        return msgspec.structs.replace(self, writable=(directory, *self.writable))

    def local_command(self, command: Sequence[str]) -> list[str]:
        """Return the local command that runs an agent in this place."""
        mapped = [word for here, there in self.paths for word in ("--map", f"{here}={there}")]
        named = [word for name in self.variables for word in ("--pass-env", name)]
        writable = [word for path in self.writable for word in ("--writable", path)]
        return [sys.executable, "-m", "dragoman.runner", self.shown, *mapped, *named, *writable, "--", *command]

    def start_command(self, command: Sequence[str]) -> list[str]:
        """Return the command line of `docker` or `ssh`."""
        if self.kind == "ssh":
            there = shlex.join(["sh", "-c", _SCRIPT, "dragoman", *command])
            # Without exec, the login shell would stay between sshd and the agent.
            return [*_SSH, "--", self.target, f"exec {there}"]
        mounted = [word for here, there in self.paths for word in ("--volume", f"{here}:{there}")]
        named = [word for name in self.variables for word in ("--env", name)]
        name = f"dragoman-{secrets.token_hex(6)}"
        start = ["docker", "run", "--rm", "--interactive", "--init", "--name", name, "--entrypoint", "sh"]
        return [*start, *mounted, *named, self.target, "-c", _CONTAINER_SCRIPT, "dragoman", *command]

    def first_line(self, environment: Mapping[str, str]) -> bytes:
        """Return the line to send before the messages. Over ssh it sets the variables."""
        if self.kind != "ssh":
            return b""
        pairs = [(name, environment[name]) for name in self.variables if name in environment]
        return os.fsencode("".join(f"export {name}={shlex.quote(value)}; " for name, value in pairs)) + b":\n"


def read_place(
    text: str, mapped: Sequence[str] = (), variables: Sequence[str] = (), writable: Sequence[str] = ()
) -> Place:
    """Parse `docker:IMAGE`, `ssh:HOST` or `sandbox`, with its mappings, variables and paths.

    Raises InvalidPlaceError.
    """
    kind, colon, target = text.partition(":")
    found = "sandbox" if text == "sandbox" else _KINDS.get(kind)
    # A target that begins with - would be an option of docker or ssh.
    if found is None or (found != "sandbox" and (not colon or not target or target.startswith("-"))):
        raise InvalidPlaceError(f"{text!r} is not a place to run the agent; {_EXPECTED}")
    if found == "sandbox" and mapped:
        raise InvalidPlaceError("a sandbox has the paths of this machine; leave out --map")
    if found != "sandbox" and writable:
        raise InvalidPlaceError(f"--writable is for --run-in sandbox; leave it out for {found}")
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise InvalidPlaceError(f"{name!r} is not a variable name; expected letters, digits and underscores")
        if found == "ssh" and "\n" in os.environ.get(name, ""):
            raise InvalidPlaceError(
                f"the value of {name} has several lines, which cannot be sent over ssh; set it on that machine"
            )
    paths = tuple(os.path.abspath(os.path.expanduser(path)) for path in writable)  # noqa: PTH100, PTH111 -- links stay
    return Place(found, target, tuple(_read_pair(found, each) for each in mapped), tuple(variables), paths)


def _read_pair(kind: RunnerKind, text: str) -> tuple[str, str]:
    here, equals, there = text.partition("=")
    if not equals or not here or not there.startswith("/"):
        raise InvalidPlaceError(
            f"{text!r} is not a directory mapping; expected LOCAL=REMOTE, with an absolute REMOTE path"
        )
    there = there.rstrip("/") or "/"
    here = os.path.abspath(os.path.expanduser(here))  # noqa: PTH100, PTH111 -- links stay as they are
    _check_paths(kind, here, there)
    return here, there


def _check_paths(kind: RunnerKind, here: str, there: str) -> None:
    """Refuse a path that `--map` or docker's `--volume` would split. Raises InvalidPlaceError."""
    separators = "=:," if kind == "docker" else "="
    for path in (here, there):
        if found := [each for each in separators if each in path]:
            raise InvalidPlaceError(
                f"{path!r} contains {found[0]!r}, which separates paths for {kind}; rename the directory, or map "
                "one above it"
            )
