"""What passes between the bridge and its render worker: a byte (1: with colours), four bytes of length, the text."""

from typing import BinaryIO


def write_frame(stream: BinaryIO, coloured: bool, text: str) -> None:
    """Send one frame."""
    data = text.encode()
    stream.write(bytes([coloured]) + len(data).to_bytes(4, "big") + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[bool, str] | None:
    """Return the next frame; None when the other side is gone."""
    head = stream.read(5)
    if len(head) < 5:
        return None
    size = int.from_bytes(head[1:], "big")
    data = stream.read(size)
    return (bool(head[0]), data.decode()) if len(data) == size else None
