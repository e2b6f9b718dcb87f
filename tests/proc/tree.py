"""A stubborn process tree. Each process ignores SIGTERM and the end of its stdin, and appends its pid to FILE.

    the program ── a child in its process group
                └─ (gone) ── a daemon: forked twice, new session, empty environment, no inherited stdio
                                └── a child of the daemon in another session
                └─ (gone) ── an orphan in the process group of the program

With `leave`, the program itself does not announce its pid and exits with code 7.
"""

import os
import signal
import sys
import time

FILE = sys.argv[1]
LEAVE = sys.argv[2:] == ["leave"]
LIFETIME_S = 300  # bounds the processes that a failed test leaves


def announce() -> None:
    file = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"%d\n" % os.getpid())
    os.close(file)


def live() -> None:
    announce()
    time.sleep(LIFETIME_S)
    os._exit(0)


def detach() -> None:
    """Become a daemon and drop every trace of the parent."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, FILE, "daemon"], {})


def fork(then) -> int:
    pid = os.fork()
    if pid == 0:
        then()
        os._exit(0)
    return pid


def fork_twice(then) -> None:
    os.waitpid(fork(lambda: fork(then)), 0)


for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)

if sys.argv[2:] == ["daemon"]:
    fork(lambda: (os.setsid(), live()))
    live()
fork(live)
fork_twice(detach)
fork_twice(live)
if LEAVE:
    sys.exit(7)
live()
