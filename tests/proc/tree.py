"""A nasty family: each member ignores SIGTERM and the end of its stdin, and appends its pid to the file named.

    the program ── a child in its group
                └─ (gone) ── a daemon: forked twice, own session, empty environment, no stdio of its parents
                                └── a child of the daemon in a session of its own
                └─ (gone) ── an orphan in the group of the program

With `leave` the program itself announces the others and exits with code 7.
"""

import os
import signal
import sys
import time

FILE = sys.argv[1]
LEAVE = sys.argv[2:] == ["leave"]
LIFETIME_S = 300  # should a test fail, nobody stays for ever


def announce() -> None:
    file = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"%d\n" % os.getpid())
    os.close(file)


def live() -> None:
    announce()
    time.sleep(LIFETIME_S)
    os._exit(0)


def detach() -> None:
    """Be a daemon by the book, and forget where we come from."""
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
