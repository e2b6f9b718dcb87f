"""A file that is not there yet, with a name near the one asked for: an editor starts its agent again and again."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from dragoman.check.tap.voice import say
from dragoman.protocol.recorder import NotRecorded

T = TypeVar("T")

MAX_NAMES = 10_000
"""Names that are tried: more recordings than anybody looks through."""


def make_new(path: str, make: Callable[[Path], T]) -> T:
    """Make a file by this name or, where there is one, with -2, -3 and so on before its suffix.

    `make` has to refuse a file that is there; what else it raises is raised. A directory or a device by that name is
    not what was meant, and is refused.
    """
    for candidate in _names(Path(path)):
        try:
            made = make(candidate)
        except (NotRecorded, OSError) as error:
            if error.errno != errno.EEXIST or not candidate.is_file():
                raise
        else:
            if candidate != Path(path):
                say(f"{path} is there already; writing to {candidate}")
            return made
    raise FileExistsError(errno.EEXIST, f"there are {MAX_NAMES:,} files of this name; name another")


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in range(2, MAX_NAMES + 1):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")
