"""The sandbox of Linux: the command line of `bwrap`.

The whole file system is mounted read-only, then each place of the layout over it. `/tmp`, `/var/tmp` and `/dev/shm` are
private and empty. `/run` is empty, because it has the sockets of D-Bus, Docker and agents. The process has its own
processes, users, hostname and System V objects, no capabilities, and cannot gain privileges. `seccomp` says what else
it cannot do. When `bwrap` ends, the kernel kills everything in its PID namespace.
"""

import os
import shutil
from collections.abc import Sequence

from dragoman.sandbox.layout import SOCKET_VARIABLES, Layout

_PROGRAM_DIRECTORIES = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
"""Where `bwrap` may be. PATH may name directories that a command in the sandbox can write."""

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108 -- these are new and empty in the sandbox
_KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/fs", "/proc/acpi", "/proc/scsi")
"""Root owns these files, and needs no capability to write most of them."""
_OPEN_FILTER = 'exec 9<"$0" && exec "$@"'


def find_program() -> str | None:
    """Return the path of `bwrap`, or None if it is not installed."""
    return shutil.which("bwrap", path=_PROGRAM_DIRECTORIES)


def command_line(program: str, filter_path: str, layout: Layout, command: Sequence[str], cwd: str) -> list[str]:
    """Return the command line that runs a command in the sandbox."""
    empty = [*_PRIVATE, *(path for path in ("/run", "/var/run") if os.path.isdir(path) and not os.path.islink(path))]  # noqa: PTH112, PTH114 -- strings
    mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    read_only = [*filter(os.path.exists, _KERNEL_SETTINGS), *_needed_of_run(layout)]
    mounts += [word for path in empty for word in ("--tmpfs", path)]
    mounts += [word for path in read_only for word in ("--ro-bind", path, path)]
    sealed: list[str] = []
    for path, kind in layout.places:
        if kind != "hidden":
            mounts += ["--bind" if kind == "writable" else "--ro-bind", path, path]
        elif os.path.isdir(path):  # noqa: PTH112 -- a string
            mounts += ["--tmpfs", path]
            sealed += ["--remount-ro", path]
        else:
            mounts += ["--dev-bind", "/dev/null", path]  # it reads as an empty file
    return [
        *("/bin/sh", "-c", _OPEN_FILTER, filter_path, program, "--seccomp", "9"),
        *_NAMESPACES,
        *(() if layout.has_network else ("--unshare-net",)),
        *("--cap-drop", "ALL", "--new-session", "--die-with-parent"),
        *mounts,
        *sealed,
        *(word for name in SOCKET_VARIABLES for word in ("--unsetenv", name)),
        *("--setenv", "TMPDIR", _PRIVATE[0], "--chdir", os.path.realpath(cwd), "--", *command),
    ]


def explain_failure(stderr: str) -> str:
    """Return the reason and the fix for a `bwrap` that could not start."""
    reason = stderr.strip().splitlines()[-1] if stderr.strip() else "it gave no reason"
    return (
        f"bwrap cannot create a sandbox here ({reason}). Allow user namespaces. On Ubuntu: sudo sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0. In a container: start it with more privileges, or turn the "
        "sandbox off, because the container is one"
    )


NOT_INSTALLED = "bwrap is not installed. Install bubblewrap, for example: sudo apt-get install bubblewrap"


def _needed_of_run(layout: Layout) -> list[str]:
    """Return the parts of `/run` that programs need: those of NixOS, and the name servers."""
    needed = ["/run/current-system", "/run/opengl-driver"]
    if layout.has_network:
        needed.append(os.path.realpath("/etc/resolv.conf"))
    return [path for path in needed if path.startswith("/run/") and os.path.exists(path)]  # noqa: PTH110 -- a string
