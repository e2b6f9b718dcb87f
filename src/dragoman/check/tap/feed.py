"""The way from the pumps to the scribe. What passes never waits for it.

As a rule what a pump tells goes straight into a pipe, in one system call of a few microseconds. When the scribe is
behind and the pipe is full, it waits here in memory, up to a limit, and a thread sends it after. Beyond the limit it is
not told at all, and the scribe is told how much that was.
"""

import fcntl
import os
import select
import threading
from collections import deque
from contextlib import suppress

from dragoman.check.tap.frame import Kind, header

PIPE_BYTES = 1024 * 1024
"""The most that an unprivileged user's pipe holds on Linux: a fifth of a second at 20,000 messages a second."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""A quarter of a minute of such a stream, should the scribe not run at all."""


class Feed:
    """Sends frames to the scribe; any thread may put."""

    def __init__(self, pipe: int, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self._pipe = pipe
        self._max_waiting_bytes = max_waiting_bytes
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._skipped_bytes = 0
        self._sender: threading.Thread | None = None
        self.lost = False
        """Whether the scribe is gone."""
        os.set_blocking(pipe, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def put(self, kind: Kind, data: bytes) -> None:
        """Tell what passes, without waiting."""
        with self._lock:
            if self.lost:
                return
            if self._waiting or self._skipped_bytes:
                self._keep(kind, data)
            else:
                self._send_or_keep(header(kind, len(data)), data)

    def close(self, timeout_s: float) -> int:
        """Send what waits, for so long at most, and end; return how many bytes were left untold."""
        sender = self._sender
        if sender is not None:
            sender.join(timeout_s)
        with self._lock:
            left = 0 if self.lost else self._waiting_bytes + self._skipped_bytes
            self.lost = True
            with suppress(OSError):
                os.close(self._pipe)
        return left

    def _send_or_keep(self, head: bytes, data: bytes) -> None:
        try:
            sent = os.writev(self._pipe, (head, data))
        except BlockingIOError:
            sent = 0
        except OSError:
            self.lost = True
            return
        if sent < len(head) + len(data):
            self._wait((head + data)[sent:])

    def _keep(self, kind: Kind, data: bytes) -> None:
        if self._waiting_bytes + len(data) > self._max_waiting_bytes:
            self._skipped_bytes += len(data)
            return
        if self._skipped_bytes:
            told = b"%d" % self._skipped_bytes
            self._skipped_bytes = 0
            self._wait(header(Kind.SKIPPED, len(told)) + told)
        self._wait(header(kind, len(data)) + data)

    def _wait(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._sender is None or not self._sender.is_alive():
            self._sender = threading.Thread(target=self._send_after, name="tap feed", daemon=True)
            self._sender.start()

    def _send_after(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLOUT)
        while True:
            poll.poll()
            with self._lock:
                if not self._send_waiting():
                    self._sender = None
                    return

    def _send_waiting(self) -> bool:
        """Send what fits; tell whether something is left."""
        while self._waiting and not self.lost:
            data = self._waiting[0]
            try:
                sent = os.write(self._pipe, data)
            except BlockingIOError:
                return True
            except OSError:
                self.lost = True
                break
            self._waiting_bytes -= sent
            if sent < len(data):
                self._waiting[0] = data[sent:]
            else:
                self._waiting.popleft()
        if self.lost:
            self._waiting.clear()
        elif self._skipped_bytes:
            self._tell_skipped()
        return bool(self._waiting)

    def _tell_skipped(self) -> None:
        told = b"%d" % self._skipped_bytes
        self._skipped_bytes = 0
        frame = header(Kind.SKIPPED, len(told)) + told
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
