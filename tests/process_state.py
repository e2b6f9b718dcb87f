"""What belongs to the whole process: a test that leaves it changed makes another one fail, and that one is blamed.

Warnings filters are not here: pytest puts them back itself. Nor are filters of loggers: libraries add theirs when they
are imported, and those of `dragoman.library_logs` do nothing while dragoman does nothing.
"""

import logging
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SHARED_PROGRAMS = (b"dragoman.gateway.front.render_worker", b"multiprocessing.resource_tracker")
SHARED_CHILDREN: set[int] = set()
"""Children that outlive the test that started them, because later ones use them."""

_LIMITS = ("RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE")


class Logger(NamedTuple):
    """Whether a logger passes records on, and where to."""

    level: int = logging.NOTSET
    disabled: bool = False
    propagate: bool = True
    handlers: tuple[logging.Handler, ...] = ()


def read_process_state():
    """Give each part of the state by its name."""
    return {
        **{f"the logger {name}": logger for name, logger in _loggers()},
        **{f"the variable {name}": value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        **{f"the handler of {number.name}": signal.getsignal(number) for number in _signals()},
        **{f"the limit {name}": resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        **{f"the child {child}": "running" for child in _children()},
        "logging.disable": logging.root.manager.disable,
        "the working directory": os.getcwd(),
        "sys.path": tuple(sys.path),
        "the streams of the process": tuple(map(id, (sys.__stdin__, sys.__stdout__, sys.__stderr__))),
        "the switch interval": sys.getswitchinterval(),
        "the umask": _read_umask(),
    }


def tell_changes(before, after):
    """Give a line for each part that is not what it was."""
    was = {**{name: Logger() for name, value in after.items() if isinstance(value, Logger)}, **before}
    return [
        f"{name}: {was.get(name, 'nothing')!r} became {after.get(name, 'nothing')!r}"
        for name in sorted(was.keys() | after.keys())
        if was.get(name) != after.get(name)
    ]


def is_foreign(name):
    """Tell whether this is the logger of a library."""
    return name.startswith("the logger ") and not name.startswith("the logger dragoman")


def _loggers():
    for name, logger in [("root", logging.root), *logging.root.manager.loggerDict.items()]:
        if isinstance(logger, logging.Logger):
            handlers = tuple(each for each in logger.handlers if not isinstance(each, logging.NullHandler))
            yield name, Logger(logger.level, logger.disabled, logger.propagate, handlers)


def _signals():
    """All signals but the alarm, which is pytest-timeout's."""
    return signal.valid_signals() & set(signal.Signals) - {signal.SIGALRM}


def _children():
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # a thread that ended meanwhile
            yield from filter(_is_left, task.read_text().split())


def _is_left(pid):
    """Tell whether a child runs, and is none of those that the tests of a worker share."""
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
    if status.exists():  # os.umask() tells it only by changing it, for all threads
        return next((line for line in status.read_text().splitlines() if line.startswith("Umask")), None)
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
