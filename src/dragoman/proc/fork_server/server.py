"""The fork server forks a monitor for each child."""

import gc
import os
import sys
import time

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
    import socket

    from dragoman.proc.fork_server.monitor import RETRY_MS, ChildMonitor, report
    from dragoman.proc.fork_server.system import (
        LINE,
        PR_SET_CHILD_SUBREAPER,
        HostPoll,
        children,
        open_process,
        prctl,
        reap,
        send,
    )
else:  # the same without the enums of the wrapper modules, which cost another 8 ms
    import _signal as signal
    import _socket as socket

    from monitor import RETRY_MS, ChildMonitor, report
    from system import LINE, PR_SET_CHILD_SUBREAPER, HostPoll, children, open_process, prctl, reap, send

DESCRIPTORS = 4
"""The number of descriptors per start: a monitor's line, and the stdin, stdout and stderr of its child."""

MONITOR_END_S = 5.0
"""How long monitors may take after the host's death. They need milliseconds, so a slower one is killed as stuck."""


class ForkServer:
    """Forks a monitor for each child, and kills the processes that a dead monitor left behind."""

    def __init__(self, host: int | None, *, is_subreaper: bool) -> None:
        self._poll = HostPoll(host)
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, LINE)
        self._is_subreaper = is_subreaper
        self._monitors: set[int] = set()
        self._deadline = float("inf")

    def run(self) -> None:
        """Run until the host and all children are gone."""
        left = True
        while self._poll.is_connected or left:
            if self._poll.wait(None if self._poll.is_connected else RETRY_MS):
                self._receive()
            ended, left = reap()
            self._monitors -= ended.keys()
            left = self._kill_orphans() and left

    def _kill_orphans(self) -> bool:
        # A child that is not a monitor was adopted from a dead monitor.
        orphans = set(children() or ()) - self._monitors if self._is_subreaper else set[int]()
        if not self._poll.is_connected:
            self._deadline = min(self._deadline, time.monotonic() + MONITOR_END_S)
        if time.monotonic() > self._deadline:
            orphans |= self._monitors
        return send(os.kill, orphans, signal.SIGKILL) or bool(self._monitors)

    def _receive(self) -> None:
        try:
            data, descriptors = receive_descriptors(self._line)
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._poll.disconnect()
        elif len(descriptors) == DESCRIPTORS:
            self._fork_monitor(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork_monitor(self, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            report(b"failed fork %d" % (error.errno or 0), descriptors[0])
            return
        if pid == 0:
            os.dup2(descriptors[0], LINE)
            os.close(descriptors[0])
            ChildMonitor(self._poll.host, is_subreaper=self._is_subreaper).run(descriptors[1:])
            os._exit(0)
        self._monitors.add(pid)


def receive_descriptors(line: "socket.socket") -> tuple[bytes, list[int]]:
    """Receive one byte from the line and the descriptors that came with it."""
    data, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(DESCRIPTORS * 4))
    descriptors: list[int] = []
    for level, kind, body in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            whole = len(body) - len(body) % 4
            descriptors += [int.from_bytes(body[at : at + 4], sys.byteorder) for at in range(0, whole, 4)]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return data, descriptors


def main() -> None:
    """Run the fork server for the process whose pid is the argument."""
    # We were started with these signals blocked, so that a Ctrl-C before this point does not end us.
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    server = ForkServer(open_process(int(sys.argv[2])), is_subreaper=prctl(PR_SET_CHILD_SUBREAPER, 1))
    gc.freeze()  # keeps memory shared with the monitors
    server.run()
