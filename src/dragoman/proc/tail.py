"""The end of what a child wrote, as text of no more than so many bytes."""

import codecs

_CONTINUATION = bytes(range(0x80, 0xC0))
_LONGEST = 3
"""Bytes of a character in UTF-8 that are not its first."""


class Tail:
    """Takes any number of bytes and keeps the last."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.total_bytes = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> bool:
        """Take what came; there may always be more."""
        self.total_bytes += len(data)
        self._kept += data
        if len(self._kept) > 2 * self.max_bytes + _LONGEST:  # seldom, because each time moves it all
            del self._kept[: len(self._kept) - self.max_bytes]
        return True

    def text(self, *, final: bool) -> tuple[str, bool]:
        """Return the end of it, and whether something before it is missing.

        It is cut between two characters, and unless `final` one that has come only in part is held back.
        """
        kept = bytes(self._kept[max(len(self._kept) - self.max_bytes, 0) :])
        cut = len(kept) < self.total_bytes
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(skip_rest(kept) if cut else kept, final)
        # What is no UTF-8 becomes longer: each such byte is shown by a sign of three.
        encoded = text.encode()
        if len(encoded) <= self.max_bytes:
            return text, cut
        return skip_rest(encoded[len(encoded) - self.max_bytes :]).decode(), True


def skip_rest(data: bytes | bytearray) -> bytes:
    """Drop what is left of a character that was cut in two at the beginning."""
    return bytes(data[:_LONGEST].lstrip(_CONTINUATION) + data[_LONGEST:])
