"""What a command wrote: its beginning and its end, when all of it would be too much."""

from dragoman.proc.pipes import skip_continuation

HEAD_BYTES = 8 * 1024
"""The beginning says what ran and what went wrong first."""

TAIL_BYTES = 24 * 1024
"""The end holds the summary; with the head about 8,000 tokens, which a turn can take many times over."""

LIVE_BYTES = 4 * 1024
"""A screen or two: each update is sent, and logged, in full."""


class BoundedOutput:
    """Takes any number of bytes and keeps few."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> bool:
        """Take what came; there may always be more."""
        self.total_bytes += len(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL_BYTES:  # seldom, because each time moves it all
            del self._tail[:-TAIL_BYTES]
        return True

    @property
    def text(self) -> str:
        """All of it, or its beginning and its end with a word between them that says how much is missing."""
        tail = self._tail[-TAIL_BYTES:]
        missing = self.total_bytes - len(self._head) - len(tail)
        if not missing:
            return _decode(self._head + tail)
        return f"{_decode_start(self._head)}\n[… {missing:,} bytes left out …]\n{_decode_end(tail)}"

    @property
    def cut(self) -> bool:
        """Whether something is missing."""
        return self.total_bytes > HEAD_BYTES + TAIL_BYTES

    @property
    def live(self) -> str:
        """The last of it, while more may come."""
        latest = (self._head + self._tail)[-LIVE_BYTES:]
        return _decode(latest) if len(latest) == self.total_bytes else f"[…]\n{_decode_end(latest)}"


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")


def _decode_start(data: bytearray) -> str:
    """Decode what was cut at its end; a character that was cut in two is dropped, not shown as damage."""
    return _decode(data).removesuffix("\N{REPLACEMENT CHARACTER}")


def _decode_end(data: bytearray) -> str:
    """Decode what was cut at its beginning, in the same way."""
    return _decode(skip_continuation(data))
