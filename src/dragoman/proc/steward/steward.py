"""The steward itself: forks a warden for each child."""

import gc
import os
import sys
import time

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal
    import socket

    from dragoman.proc.steward.kernel import PR_SET_CHILD_SUBREAPER, open_process, prctl
    from dragoman.proc.steward.kin import children, reap, send
    from dragoman.proc.steward.warden import Warden, say
    from dragoman.proc.steward.watch import LINE, Watch
else:  # the same without the enums that the wrappers make, which cost another 8 ms
    import _signal as signal
    import _socket as socket

    from kernel import PR_SET_CHILD_SUBREAPER, open_process, prctl
    from kin import children, reap, send
    from warden import Warden, say
    from watch import LINE, Watch

DESCRIPTORS = 4
"""The line of a warden, and the stdin, stdout and stderr of its child."""

RETRY_MS = 50
"""Between two rounds of SIGKILL; a death starts the next round at once, so this is for what a round overlooked."""

WARDEN_END_S = 5.0
"""After our death a warden needs milliseconds; one that takes this long is stuck, and the steward does its work."""


class Steward:
    """Forks a warden for each child, and ends what a dead warden has left."""

    def __init__(self, host: int | None, *, adopts: bool) -> None:
        self._watch = Watch(host)
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, LINE)
        self._adopts = adopts
        self._wardens: set[int] = set()
        self._deadline = float("inf")

    def run(self) -> None:
        """Serve until the host is gone and so are all children."""
        left = True
        while self._watch.hears or left:
            if self._watch.wait(None if self._watch.hears else RETRY_MS):
                self._receive()
            ended, left = reap()
            self._wardens -= ended.keys()
            left = self._kill_strays() and left

    def _kill_strays(self) -> bool:
        strays = set(children() or ()) - self._wardens if self._adopts else set[int]()
        if not self._watch.hears:
            self._deadline = min(self._deadline, time.monotonic() + WARDEN_END_S)
        if time.monotonic() > self._deadline:
            strays |= self._wardens
        return send(os.kill, strays, signal.SIGKILL) or bool(self._wardens)

    def _receive(self) -> None:
        try:
            data, descriptors = receive_descriptors(self._line)
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._watch.stop_hearing()
        elif len(descriptors) == DESCRIPTORS:
            self._hire(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _hire(self, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            say(b"failed fork %d" % (error.errno or 0), descriptors[0])
            return
        if pid == 0:
            os.dup2(descriptors[0], LINE)
            os.close(descriptors[0])
            Warden(self._watch.host, adopts=self._adopts).run(descriptors[1:])
            os._exit(0)
        self._wardens.add(pid)


def receive_descriptors(line: "socket.socket") -> tuple[bytes, list[int]]:
    """One byte from the line and the descriptors that came with it."""
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
    """Be the steward of the process whose pid is the argument."""
    # We were started with these blocked: Ctrl-C in the moment before must not end us either.
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    steward = Steward(open_process(int(sys.argv[2])), adopts=prctl(PR_SET_CHILD_SUBREAPER, 1))
    gc.freeze()  # what the wardens share with us stays shared
    steward.run()
