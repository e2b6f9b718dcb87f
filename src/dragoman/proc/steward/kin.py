"""The children of this process, those it has adopted as a subreaper included."""

# Importing pathlib would cost 8 ms.
# ruff: noqa: PTH112, PTH123, PTH208

import os

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def reap() -> tuple[dict[int, int], bool]:
    """The status of each child that has ended, by its pid, and whether any is left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = status


def send(kill: "Callable[[int, int], None]", targets: "Iterable[int]", number: int) -> bool:
    """Send a signal to each target; False if there is none that we may signal."""
    reached = False
    for target in targets:
        try:
            kill(target, number)
            reached = True
        except (ProcessLookupError, PermissionError):
            continue
    return reached


def children() -> list[int] | None:
    """The pids of our own children, adopted ones too, or None where the system does not tell."""
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return scan_children(me)


def scan_children(parent: int) -> list[int] | None:
    """The same the slow way, for kernels without CONFIG_PROC_CHILDREN."""
    if not os.path.isdir("/proc/self"):
        return None
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name of the program comes before, in parentheses, and may hold anything.
                if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                    found.append(int(name))
        except OSError:
            continue
    return found
