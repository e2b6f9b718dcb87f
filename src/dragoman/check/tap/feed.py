"""The pipe from the pumps to the recorder process, and its frames. A pump never waits for the recorder.

A frame is a header of 13 bytes followed by the bytes that passed. The header contains the kind, the length of those
bytes, and the time in nanoseconds since 1970.

A pump usually writes a frame directly into the pipe, in one system call of a few microseconds. If the recorder is slow
and the pipe is full, frames wait in memory, up to a limit, and a thread sends them. Beyond the limit frames are
dropped, and a frame of the kind SKIPPED contains the number of missing bytes.
"""

import fcntl
import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

_HEADER = struct.Struct("<BIQ")
HEADER_BYTES = _HEADER.size


class FrameKind(IntEnum):
    """The kinds of frames."""

    CLIENT = 1
    """Bytes from the client."""
    AGENT = 2
    """Bytes from the agent."""
    EVENT = 3
    """An event of the agent's process, as text."""
    SKIPPED = 4
    """The number of dropped bytes before this frame, in digits."""


class Frame(NamedTuple):
    """One frame: bytes that passed, or an event."""

    kind: int
    time_ns: int
    data: bytes


def header(kind: int, length: int) -> bytes:
    """Return the header for this many bytes of a kind, with the current time."""
    return _HEADER.pack(kind, length, time.time_ns())


class FrameReader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Append bytes and yield the frames that they complete."""
        self._held += data
        start = 0
        while len(self._held) - start >= HEADER_BYTES:
            kind, length, time_ns = _HEADER.unpack_from(self._held, start)
            end = start + HEADER_BYTES + length
            if end > len(self._held):
                break
            yield Frame(kind, time_ns, bytes(memoryview(self._held)[start + HEADER_BYTES : end]))
            start = end
        del self._held[:start]


PIPE_BYTES = 1024 * 1024
"""The maximum pipe size for an unprivileged user on Linux: 0.2 s at 20,000 messages per second."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""15 s of such a stream, if the recorder does not run at all."""


class Feed:
    """Sends frames to the recorder. `put` may be called from any thread."""

    def __init__(self, pipe: int, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        self._pipe = pipe
        self._max_waiting_bytes = max_waiting_bytes
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._skipped_bytes = 0
        self._sender: threading.Thread | None = None
        self.lost = False
        """Whether the recorder has exited."""
        os.set_blocking(pipe, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def put(self, kind: FrameKind, data: bytes) -> None:
        """Send a frame without waiting."""
        with self._lock:
            if self.lost:
                return
            # Frames stay in order. While some wait, the next one is queued after them.
            if self._waiting or self._skipped_bytes:
                self._keep(kind, data)
            else:
                self._send_or_keep(header(kind, len(data)), data)

    def close(self, timeout_s: float) -> int:
        """Send the waiting frames within a timeout and close the pipe. Return the number of unsent bytes."""
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

    def _keep(self, kind: FrameKind, data: bytes) -> None:
        if self._waiting_bytes + len(data) > self._max_waiting_bytes:
            self._skipped_bytes += len(data)
            return
        if self._skipped_bytes:
            self._wait(self._skipped_frame())
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
        """Send the frames that fit. Return whether some are left."""
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
            # Everything is sent, and bytes were dropped after it. This thread sends their count in its next round.
            frame = self._skipped_frame()
            self._waiting.append(frame)
            self._waiting_bytes += len(frame)
        return bool(self._waiting)

    def _skipped_frame(self) -> bytes:
        count = b"%d" % self._skipped_bytes
        self._skipped_bytes = 0
        return header(FrameKind.SKIPPED, len(count)) + count
