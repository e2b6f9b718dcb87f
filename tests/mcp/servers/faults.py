"""Faults of a server process: crashes, hangs and processes that it leaves behind."""

import os
import signal
import sys
import time

from tests.mcp.servers.options import LIFETIME_S

GARBAGE = {
    "text": b"Server is starting, please wait ...\n",
    "blank": b"\n   \n\r\n",
    "binary": b"\xff\xfe\x00\x80\n",
    "half": b'{"jsonrpc": "2.0", "id": 1, "resu\n',
    "json": b'42\n[]\n{"hello": "world"}\nnull\n',
}


def crash_if_due(options, place):
    """Exit this process if the options require it here."""
    if is_due(options, place):
        crash(options)


def is_due(options, place):
    """Return whether a crash is due here. A single crash may have happened already."""
    return options.crash_at == place and not (options.crash_once and os.path.exists(options.crash_once))


def crash(options):
    """Exit this process as configured."""
    if options.crash_once:
        _append(options.crash_once, "crashed")
    sys.stderr.write(options.crash_stderr)
    sys.stderr.flush()
    if options.crash_code < 0:
        os.kill(os.getpid(), -options.crash_code)
    os._exit(options.crash_code)


def hang():
    """Do nothing for longer than any test waits."""
    time.sleep(LIFETIME_S)
    os._exit(0)


def set_up(options):
    """Apply the options before anything is read. This may not return."""
    sys.stderr.write(options.stderr)
    sys.stderr.flush()
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    announce(options)
    for kind in options.fork:
        _leave_behind(KINDS[kind], options)
    if options.fork_and_exit:
        _go_away(options)
    time.sleep(options.delay_at("start"))
    crash_if_due(options, "start")
    if options.hang_at == "start":
        hang()


def announce(options):
    """Append the pid of this process to the test's file."""
    if options.pid_file:
        _append(options.pid_file, str(os.getpid()))


def _leave_behind(kind, options):
    """Start such a process and wait until it has written its pid."""
    ready, told = os.pipe()

    def live():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        announce(options)
        os.write(told, b".")
        hang()

    kind(live)
    os.read(ready, 1)
    os.close(ready)
    os.close(told)


def _child(live):
    if os.fork() == 0:
        live()


def _session(live):
    if os.fork() == 0:
        os.setsid()
        live()


def _daemon(live):
    between = os.fork()
    if between == 0:
        os.setsid()
        _child(live)
        os._exit(0)
    os.waitpid(between, 0)


KINDS = {"child": _child, "session": _session, "daemon": _daemon}


def _go_away(options):
    """Exit this process. A child continues as the server, or keeps its pipes open."""
    if options.fork_and_exit == "hold":
        _leave_behind(_child, options)
    elif os.fork() == 0:
        announce(options)
        return
    os._exit(0)


def _append(path, line):
    with open(path, "a") as file:
        file.write(line + "\n")
