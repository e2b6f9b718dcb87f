"""Our own searcher for machines without ripgrep: `python -m dragoman.assistant.tools.searcher ROOT PATH PATTERN`.

It has its own process, because a Python regular expression can run forever and only killing the process stops it. Its
output has the format of the ripgrep commands in `search_files`: the matching names, one per line; a line with only a
NUL; then `path NUL number : text` for each matching line. An invalid pattern exits with code 2 and a message on stderr.
Paths are relative to PATH.
"""

import os
import re
import sys
from collections.abc import Iterator

from dragoman.files import Boundary, FoundPath, IgnoreRules, PathError

MAX_LINE_CHARS = 300
"""Characters shown of a line, enough to recognize it. Minified code has lines of megabytes."""

MAX_SEARCHED_BYTES = 10 * 1024 * 1024
"""Larger files are data, not hand-written text. ripgrep has the same limit."""


def main() -> None:
    """Search, and write the matches."""
    root, path, pattern = sys.argv[1:]
    try:
        regex = re.compile(pattern)
    except re.error as error:
        sys.exit(_refuse(error))
    tree = _Tree(Boundary([root]), path)
    files = list(tree.files())
    if tree.is_directory:
        _write(*(f"{name}\n" for name in files if regex.search(name)))
    _write("\0\n")
    for name in files:
        _write(*_lines(tree.read(name), name, regex))


class _Tree:
    """A directory in a root, or one file, without files ignored by `.gitignore`."""

    def __init__(self, boundary: Boundary, path: str) -> None:
        self._boundary = boundary
        self._path = path
        self._rules = IgnoreRules(boundary)
        self.is_directory = _is_directory(boundary, path)
        # a directory named explicitly is searched
        self._all = path != "." and self._rules.ignores(path, is_directory=True)

    def files(self) -> Iterator[str]:
        """Yield the paths of all files to search."""
        if not self.is_directory:
            yield os.path.basename(self._path)  # noqa: PTH119 -- it stays a string
            return
        for found in self._boundary.walk(self._path, enter=self._wants):
            if found.kind == "file" and self._wants(found):
                yield found.path

    def read(self, name: str) -> str:
        """Return the text of a file, or an empty string if it is binary, too large or missing."""
        path = self._absolute(name) if self.is_directory else self._path
        try:
            data = self._boundary.read_bytes(path, MAX_SEARCHED_BYTES)
        except PathError:
            return ""
        return "" if b"\0" in data else data.decode(errors="replace")

    def _wants(self, found: FoundPath) -> bool:
        path = self._absolute(found.path)
        if path.rpartition("/")[2] == ".git":
            return False
        return self._all or not self._rules.ignores(path, is_directory=found.kind == "directory")

    def _absolute(self, name: str) -> str:
        return name if self._path == "." else f"{self._path}/{name}"


def _is_directory(boundary: Boundary, path: str) -> bool:
    try:
        boundary.list_directory(path)
    except PathError:
        return False
    return True


def _lines(text: str, name: str, regex: re.Pattern[str]) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        if regex.search(line.removesuffix("\r")):
            yield f"{name}\0{number}:{line[:MAX_LINE_CHARS]}\n"


def _write(*lines: str) -> None:
    try:
        sys.stdout.buffer.write("".join(lines).encode(errors="replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has enough matches
        os._exit(0)


def _refuse(error: re.error) -> int:
    where = "" if error.pos is None else f" at character {error.pos + 1}"
    sys.stderr.write(f"{error.msg}{where}\n")
    return 2


if __name__ == "__main__":
    main()
