"""The numbered, decoded lines of a recording, plain or gzipped."""

import gzip
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from dragoman.errors import DragomanError
from dragoman.wire.message import BAD_JSON, replace_lone_surrogates

_GZIP = b"\x1f\x8b"
_SHOWN_CHARACTERS = 60


class TraceError(DragomanError):
    """A file is not a known recording, or is damaged at a line."""

    def __init__(self, path: str, problem: str, line: int = 0) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        super().__init__(f"{path}, line {line}: {problem}" if line else f"{path}: {problem}")


class NumberedObject(NamedTuple):
    """A line that is a JSON object."""

    number: int
    value: dict[str, Any]


class Source:
    """A recording as stored in a file. Raises TraceError if it cannot be read or is empty."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.data = _read(self.path)
        self.torn = False
        """Whether the last line is incomplete."""
        if not self.data.strip():
            raise self.unreadable("the file is empty")

    @property
    def first_line(self) -> bytes:
        """The first line that is not blank."""
        return self.data.lstrip().partition(b"\n")[0]

    def lines(self) -> Iterator[bytes]:
        """Yield the lines with their newlines."""
        yield from self.data.splitlines(keepends=True)

    def objects(self) -> Iterator[NumberedObject]:
        """Yield each line as an object. Skip an incomplete last line.

        Raises TraceError at a line that is not an object.
        """
        lines = self.data.split(b"\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            value = _decode(line)
            if isinstance(value, dict):
                yield NumberedObject(number, cast("dict[str, Any]", value))
            elif number == len(lines) and number > 1:
                self.torn = True
            else:
                raise self.unreadable(_explain(line), number)

    def unreadable(self, problem: str, line: int = 0) -> TraceError:
        """Return the error about this file."""
        return TraceError(self.path, problem, line)


def _read(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).removeprefix(BOM_UTF8)
    except EOFError:
        return _decompress_torn(path)
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(path, f"cannot be read: {reason}") from None


def _decompress_torn(path: str) -> bytes:
    """Return the readable part of an incomplete gzipped file."""
    try:
        return zlib.decompressobj(wbits=31).decompress(Path(path).read_bytes()).removeprefix(BOM_UTF8)
    except zlib.error as error:
        raise TraceError(path, f"cannot be decompressed: {error}") from None


def _decode(line: bytes) -> Any:
    for candidate in (line, replace_lone_surrogates(line)):
        if candidate is not None:
            try:
                return msgspec.json.decode(candidate)
            except BAD_JSON:
                continue
    return None


def _explain(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return f"expected one JSON object per line, found {shown!r}"
