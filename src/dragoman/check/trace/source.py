"""The lines of a recording: numbered, decoded, from a plain file or a gzipped one."""

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


class TraceUnreadable(DragomanError):
    """A file is no recording that is understood, or it is damaged at a line."""

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
    """A recording as it is in the file. Raises TraceUnreadable when it cannot be read, or is empty."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.data = _read(self.path)
        self.torn = False
        """Whether the last line was cut short."""
        if not self.data.strip():
            raise self.unreadable("there is nothing in it")

    @property
    def first_line(self) -> bytes:
        """The first line that is not blank."""
        return self.data.lstrip().partition(b"\n")[0]

    def lines(self) -> Iterator[bytes]:
        """Yield the lines with their newlines."""
        yield from self.data.splitlines(keepends=True)

    def objects(self) -> Iterator[NumberedObject]:
        """Yield each line as the object that it is; a last one that was cut short is left out.

        Raises TraceUnreadable at a line that is no object.
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

    def unreadable(self, problem: str, line: int = 0) -> TraceUnreadable:
        """Return the error about this file."""
        return TraceUnreadable(self.path, problem, line)


def _read(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).removeprefix(BOM_UTF8)
    except EOFError:
        return _decompress_torn(path)
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceUnreadable(path, f"it cannot be read: {reason}") from None


def _decompress_torn(path: str) -> bytes:
    """Return the readable part of a gzipped file that was cut short."""
    try:
        return zlib.decompressobj(wbits=31).decompress(Path(path).read_bytes()).removeprefix(BOM_UTF8)
    except zlib.error as error:
        raise TraceUnreadable(path, f"it cannot be decompressed: {error}") from None


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
    return f"expected a JSON object a line, and found {shown!r}"
