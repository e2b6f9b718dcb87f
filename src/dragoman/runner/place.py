"""The place of an agent, and the command line that starts it there.

Neither command line has a value of a variable in it, because every user of a machine can read the arguments of its
programs. `docker` takes values from its own environment by their names. Over ssh they are the first line on stdin, a
line of shell that sets them; then the agent takes the place of the shell.

A container outlives `docker run` that is killed: its processes belong to the engine, which tells it nothing but the end
of its stdin. So a shell in the container passes stdin on, and ends the agent and with it the container if it is still
there some seconds after that end.

sshd tells a program without a terminal nothing when the connection ends, but for the end of its stdin, which a program
that hangs does not read. So a process beside the agent looks every second whether sshd is still there, and ends the
agent and all that it has started (they are one process group) when it is not.
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

RunnerKind = Literal["docker", "ssh"]

SSH_LOST = 255
"""The exit code of `ssh` itself; any other is that of the agent."""

DOCKER_FAILED = 125
"""The exit code of `docker run` that has started nothing."""

RUNNER_PREFIX = "dragoman runner: "
"""Begins the lines on stderr that are the runner's own."""

_KINDS: dict[str, RunnerKind] = {"docker": "docker", "ssh": "ssh"}
_EXPECTED = "expected docker:IMAGE or ssh:HOST"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3")
"""Without a terminal and without questions, which nobody could answer; a dead connection is noticed in 45 s."""

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
"""The first part of the pipeline passes stdin on, after its own number; the second runs the agent, and has its code.

The container ends with its main process, this shell, whatever else runs in it. A part that has a trap for SIGTERM lives
on; the agent, which has none of it, gets the signal with its whole group. One that comes while the parts are being
started is passed on then.

A signal breaks a `wait` off, even one that has already taken the end of the agent and waits for the first part. So the
code is asked for once more when the agent is gone; 127 means that the `wait` before had it.
"""

_SCRIPT = f'IFS= read -r setup && eval "$setup" || exit 126; {_WATCH} exec "$@"'


class BadPlace(DragomanError):
    """A place, a mapping of paths or a variable for it is not what it should be."""


class Place(msgspec.Struct, frozen=True):
    """Where an agent runs."""

    kind: RunnerKind
    target: str
    """The image, or the host as `ssh` takes it."""
    paths: tuple[tuple[str, str], ...] = ()
    """Directories here with their names there."""
    variables: tuple[str, ...] = ()
    """Names of variables of our environment that the agent gets."""

    @property
    def shown(self) -> str:
        """Its name for people."""
        return f"{self.kind}:{self.target}"

    def with_paths(self, *pairs: tuple[str, str]) -> Self:
        """Return it with other directories."""
        return msgspec.structs.replace(self, paths=pairs)

    def local_command(self, command: Sequence[str]) -> list[str]:
        """Return the command of this machine that runs an agent there."""
        mapped = [word for here, there in self.paths for word in ("--map", f"{here}={there}")]
        named = [word for name in self.variables for word in ("--env", name)]
        return [sys.executable, "-m", "dragoman.runner", self.shown, *mapped, *named, "--", *command]

    def start_command(self, command: Sequence[str]) -> list[str]:
        """Return the command line of `docker` or `ssh`."""
        if self.kind == "ssh":
            there = shlex.join(["sh", "-c", _SCRIPT, "dragoman", *command])
            return [*_SSH, "--", self.target, f"exec {there}"]  # the login shell must not stay between sshd and us
        mounted = [word for here, there in self.paths for word in ("--volume", f"{here}:{there}")]
        named = [word for name in self.variables for word in ("--env", name)]
        name = f"dragoman-{secrets.token_hex(6)}"
        start = ["docker", "run", "--rm", "--interactive", "--init", "--name", name, "--entrypoint", "sh"]
        return [*start, *mounted, *named, self.target, "-c", _CONTAINER_SCRIPT, "dragoman", *command]

    def first_line(self, environment: Mapping[str, str]) -> bytes:
        """Return what goes to stdin before the messages: over ssh, the line that sets the variables."""
        if self.kind != "ssh":
            return b""
        given = [(name, environment[name]) for name in self.variables if name in environment]
        return os.fsencode("".join(f"export {name}={shlex.quote(value)}; " for name, value in given)) + b":\n"


def read_place(given: str, mapped: Sequence[str] = (), variables: Sequence[str] = ()) -> Place:
    """Read `docker:IMAGE` or `ssh:HOST`, mappings LOCAL=REMOTE and names of variables; raises BadPlace."""
    kind, colon, target = given.partition(":")
    found = _KINDS.get(kind)
    if found is None or not colon or not target or target.startswith("-"):
        raise BadPlace(f"{given!r} names no place for an agent; {_EXPECTED}")
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise BadPlace(f"{name!r} is no name of a variable; expected letters, digits and underscores")
        if found == "ssh" and "\n" in os.environ.get(name, ""):
            raise BadPlace(f"the value of {name} has several lines, which cannot be sent over ssh; set it there")
    return Place(found, target, tuple(map(_read_pair, mapped)), tuple(variables))


def _read_pair(given: str) -> tuple[str, str]:
    here, equals, there = given.partition("=")
    if not equals or not here or not there.startswith("/"):
        raise BadPlace(f"{given!r} maps no directory; expected LOCAL=REMOTE, with the absolute path of the latter")
    there = there.rstrip("/") or "/"
    return os.path.abspath(os.path.expanduser(here)), there  # noqa: PTH100, PTH111 -- links stay as they are
