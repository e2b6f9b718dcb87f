"""The monitor of one child: starts it, reports how it ended, and ends all that it started."""

import os

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from dragoman.proc.fork_server.system import (
        LINE,
        PR_SET_CHILD_SUBREAPER,
        PR_SET_PDEATHSIG,
        HostPoll,
        children,
        prctl,
        reap,
        send,
    )
else:
    import _signal as signal

    from system import LINE, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, HostPoll, children, prctl, reap, send

RETRY_MS = 50
"""Between two rounds of SIGKILL; a death starts the next round at once, so this is for those that a round missed."""

GROUP_POLL_MS = 1000
"""Without a subreaper nothing tells that the last of a group has gone: look once a second."""


class ChildMonitor:
    """Starts one child, reports how it ended, and ends all that it started."""

    def __init__(self, host: int | None, *, is_subreaper: bool) -> None:
        self._is_subreaper = is_subreaper and prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._poll = HostPoll(host)
        self._child = 0
        self._killing = False

    def run(self, stdio: list[int]) -> None:
        """Serve until the child is gone and so is all it has started."""
        order = read_order()
        if order is None:
            return
        try:
            self._child = start(order, stdio)
        except StartFailure as failure:
            report(b"failed " + failure.words)
            return
        report(b"started %d" % self._child)
        while self._reap():
            if self._killing and not self._signal(signal.SIGKILL):
                return
            if self._poll.wait(self._timeout_ms()):
                self._obey()
            self._killing = self._killing or not self._poll.is_connected

    def _timeout_ms(self) -> int | None:
        if self._killing:
            return RETRY_MS
        return None if self._is_subreaper else GROUP_POLL_MS

    def _obey(self) -> None:
        orders = read(64)
        if not orders:
            self._poll.disconnect()
        if b"T" in orders:
            self._signal(signal.SIGTERM)
        if b"K" in orders:
            self._killing = True

    def _reap(self) -> bool:
        ended, left = reap()
        if self._child in ended:
            report(b"exited %d" % ended[self._child])
        return left or (not self._is_subreaper and send(os.killpg, {self._child}, 0))

    def _signal(self, number: int) -> bool:
        # The group of an unreaped child of ours is never a stranger's: its number is not given
        # out again while it has a member, and only processes of our child can have joined it.
        kept = children() if self._is_subreaper else None
        groups = {self._child} if kept is None else {os.getpgid(pid) for pid in kept}
        return send(os.killpg, groups, number)


def read_order() -> bytes | None:
    """Read one order from the line; None if the line ends before the order does."""
    header = read_exactly(4)
    return header and read_exactly(int.from_bytes(header, "big"))


def read_exactly(size: int) -> bytes | None:
    """Read `size` bytes from the line; None if it ends before."""
    data = bytearray()
    while len(data) < size:
        piece = read(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def read(size: int) -> bytes:
    """Read the available bytes of the line; none at its end."""
    try:
        return os.read(LINE, size)
    except ConnectionError:  # closed with something of ours unread
        return b""


def report(words: bytes, line: int = LINE) -> None:
    """Send a report to the host, if it is still connected."""
    try:
        os.write(line, words + b"\n")
    except ConnectionError:
        return


class StartFailure(Exception):
    """The step that failed before a fork became the program asked for."""

    def __init__(self, stage: bytes, number: int) -> None:
        self.words = b"%s %d" % (stage, number)


def start(order: bytes, stdio: list[int]) -> int:
    """Start the program of an order and return its pid; raises StartFailure."""
    # The fork writes its failure into this pipe; a successful exec closes the pipe, so that nothing is read from it.
    reading, writing = os.pipe()
    monitor = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        raise StartFailure(b"fork", error.errno or 0) from None
    if pid == 0:
        become(order, stdio, monitor, writing)
    for descriptor in (writing, *stdio):
        os.close(descriptor)
    stage, _, number = os.read(reading, 64).partition(b" ")
    os.close(reading)
    if stage:
        os.waitpid(pid, 0)
        raise StartFailure(stage, int(number))
    return pid


def become(order: bytes, stdio: list[int], monitor: int, failure_pipe: int) -> "NoReturn":
    """Turn this fresh fork into the program of an order, or write into `failure_pipe` why not."""
    directory, count, *rest = order.split(b"\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    try:
        os.setsid()
        restore_signals()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != monitor:  # it died before the kernel was told to watch it
            os._exit(1)
        for number, descriptor in enumerate(stdio):
            os.dup2(descriptor, number)
        enter(directory)
        execute(arguments, dict(variable.split(b"=", 1) for variable in variables))
    except StartFailure as failure:
        os.write(failure_pipe, failure.words)
    finally:
        os._exit(127)


def restore_signals() -> None:
    """Give the program the dispositions and the mask of a fresh login."""
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL, SIGSTOP and those that libc keeps
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def enter(directory: bytes) -> None:
    """Make a directory the working directory."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise StartFailure(b"cwd", error.errno or 0) from None


def execute(arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Become the command, looked up in the PATH of its own environment if it has no slash."""
    failure = StartFailure(b"missing", 0)
    for path in candidates(arguments[0], environment):
        try:
            os.execve(path, arguments, environment)  # noqa: S606 -- no shell: that is the point
        except (FileNotFoundError, NotADirectoryError) as error:
            if os.path.isfile(path):  # noqa: PTH113 -- pathlib costs 8 ms
                raise StartFailure(b"interpreter", error.errno or 0) from None
        except PermissionError as error:
            # A folder of the PATH that may not be searched says nothing about the command.
            if path == arguments[0] or os.path.exists(path):  # noqa: PTH110 -- as above
                failure = StartFailure(b"exec", error.errno or 0)
        except OSError as error:
            raise StartFailure(b"exec", error.errno or 0) from None
    raise failure


def candidates(command: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    """Return the paths at which a command may be; the first that works counts."""
    if b"/" in command:
        return [command]
    folders = environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    # An empty entry would mean the working directory, which is the last place to take a command from unasked.
    return [folder + b"/" + command for folder in folders if folder]
