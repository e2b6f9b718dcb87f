"""The state of the whole process. A test that changes it makes another test fail, and that one is blamed.

Warning filters are not included, because pytest restores them. Logger filters are not included either: libraries add
some when they are imported, and the filters of `dragoman.library_logs` have no effect while dragoman is idle.
"""

import logging
import os
import resource
import signal
import sys
from contextlib import suppress
from logging import NullHandler
from pathlib import Path

SHARED_PROGRAMS = (b"dragoman.bridge.front.render_worker", b"multiprocessing.resource_tracker")
SHARED_CHILDREN: set[int] = set()
"""Children that outlive the test that started them, because later ones use them."""

_SIGNALS = signal.valid_signals() & {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGTSTP,
    signal.SIGWINCH,
    signal.SIGXFSZ,
}
_LIMITS = ("RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE")


def read_process_state():
    """Return each part of the state by its name. Parts that exist many times are named by kind and name."""
    return {
        **{("logger", name): logger for name, logger in _loggers()},
        **{("variable", name): value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        **{("handler of", number.name): signal.getsignal(number) for number in _SIGNALS},
        **{("limit", name): resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        **{("child", child): "running" for child in _children()},
        "logging.disable": logging.root.manager.disable,
        "working directory": os.getcwd(),
        "sys.path": tuple(sys.path),
        "streams": tuple(map(id, (sys.__stdin__, sys.__stdout__, sys.__stderr__))),
        "switch interval": sys.getswitchinterval(),
        "umask": _read_umask(),
    }


def list_changes(before, after, *, with_libraries=True):
    """Return a line for each part that has changed, optionally without new loggers of other libraries."""
    changes = []
    if before == after:
        return changes
    for name in before.keys() | after.keys():
        kind = name[0] if isinstance(name, tuple) else name
        was = before.get(name, _NEW_LOGGER if kind == "logger" else None)
        is_foreign = kind == "logger" and name not in before and not name[1].startswith("dragoman")
        if was != after.get(name) and (with_libraries or not is_foreign):
            changes.append(f"{name}: {was!r} became {after.get(name)!r}")
    return sorted(changes)


_NEW_LOGGER = (logging.NOTSET, False, True, ())


def _loggers():
    """Yield the state of each logger: level, disabled, propagate and handlers."""
    for name, logger in [("root", logging.root), *logging.root.manager.loggerDict.items()]:
        if isinstance(logger, logging.Logger):
            handlers = logger.handlers and tuple(each for each in logger.handlers if type(each) is not NullHandler)
            yield name, (logger.level, logger.disabled, logger.propagate, handlers or ())


def _children():
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # the thread has ended
            yield from filter(_is_left, task.read_text().split())


def _is_left(pid):
    """Return whether a child is running and is not shared by the tests of a worker."""
    if int(pid) in SHARED_CHILDREN:
        return False
    process = Path("/proc") / pid
    try:
        is_dead = (process / "stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
        return not is_dead and not any(name in (process / "cmdline").read_bytes() for name in SHARED_PROGRAMS)
    except OSError:
        return False


def _read_umask():
    status = Path("/proc/self/status")
    if status.exists():  # os.umask() can only be read by changing it for all threads
        return next((line for line in status.read_text().splitlines() if line.startswith("Umask")), None)
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
