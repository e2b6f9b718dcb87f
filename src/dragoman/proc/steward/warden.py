"""A warden: keeps one child and all that comes of it."""

import os

TYPE_CHECKING = False  # importing typing costs 5 ms
if TYPE_CHECKING:
    import signal

    from dragoman.proc.steward.kernel import PR_SET_CHILD_SUBREAPER, prctl
    from dragoman.proc.steward.kin import children, reap, send
    from dragoman.proc.steward.program import StartFailure, start
    from dragoman.proc.steward.watch import LINE, Watch
else:
    import _signal as signal

    from kernel import PR_SET_CHILD_SUBREAPER, prctl
    from kin import children, reap, send
    from program import StartFailure, start
    from watch import LINE, Watch

RETRY_MS = 50
"""Between two rounds of SIGKILL; a death starts the next round at once, so this is for what a round overlooked."""

GROUP_POLL_MS = 1000
"""Without a subreaper nothing tells that the last of a group has gone: look once a second."""


class Warden:
    """Starts one child, tells how it ends, and ends whatever comes of it."""

    def __init__(self, host: int | None, *, adopts: bool) -> None:
        self._adopts = adopts and prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._watch = Watch(host)
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
            say(b"failed " + failure.report)
            return
        say(b"started %d" % self._child)
        while self._reap():
            if self._killing and not self._signal(signal.SIGKILL):
                return
            if self._watch.wait(self._timeout_ms()):
                self._obey()
            self._killing = self._killing or not self._watch.hears

    def _timeout_ms(self) -> int | None:
        if self._killing:
            return RETRY_MS
        return None if self._adopts else GROUP_POLL_MS

    def _obey(self) -> None:
        orders = read(64)
        if not orders:
            self._watch.stop_hearing()
        if b"T" in orders:
            self._signal(signal.SIGTERM)
        if b"K" in orders:
            self._killing = True

    def _reap(self) -> bool:
        ended, left = reap()
        if self._child in ended:
            say(b"exited %d" % ended[self._child])
        return left or (not self._adopts and send(os.killpg, {self._child}, 0))

    def _signal(self, number: int) -> bool:
        # The group of an unreaped child of ours is never a stranger's: its number is not given
        # out again while it has a member, and only what our child started can have joined it.
        kept = children() if self._adopts else None
        groups = {self._child} if kept is None else {os.getpgid(pid) for pid in kept}
        return send(os.killpg, groups, number)


def read_order() -> bytes | None:
    """One order from the line, or None if it ends before the order does."""
    header = read_exactly(4)
    return header and read_exactly(int.from_bytes(header, "big"))


def read_exactly(size: int) -> bytes | None:
    """So many bytes from the line, or None if it ends before."""
    data = bytearray()
    while len(data) < size:
        piece = read(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def read(size: int) -> bytes:
    """What there is on the line, or nothing at its end."""
    try:
        return os.read(LINE, size)
    except ConnectionError:  # closed with something of ours unread
        return b""


def say(words: bytes, line: int = LINE) -> None:
    """Report to the host, if it still listens."""
    try:
        os.write(line, words + b"\n")
    except ConnectionError:
        return
