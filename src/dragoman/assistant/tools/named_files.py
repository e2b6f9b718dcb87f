"""Finds the files inside the session's directories that the words of a command name, and hashes their contents.

Each word is tried in every way in which a program may read it. This includes each part between the characters `=:,@+%`,
each end of a path (`/mounted/run.sh`) or option (`-fx.mk`), and the name of a module. It is tried from each directory
in which the command may run, and from each directory that another word names (`env -C sub ./run.sh`). This also finds
unrelated files. They cause an additional question and no harm.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence

from dragoman.assistant.tools.plain_command import UnclearCommandError
from dragoman.files.content import identify_content

MAX_FILES = 256
"""The most files of one command. A command that names more is never approved permanently."""

MAX_BYTES = 64 * 1024 * 1024
"""The total size of these files, which are read each time the command is checked."""

MAX_LOOKUPS = 20_000
"""The most names that are tried. This takes about 0.1 s."""

MAX_DIRECTORIES = 32
"""The most directories from which names are tried."""

MAX_WORD_CHARS = 512

MODULE_ENDINGS = (".py", "/__init__.py", "/__main__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js", ".rb", ".pl", ".pm")
"""Suffixes that languages add to the name of a module."""

_ENDS = re.compile(r"[=:,@+%]|$")
_STARTS = re.compile(r"^|[ /=:,@+%]")


class NamedFiles:
    """Collects the files. Raises UnclearCommandError if there are too many, or if a content cannot be fixed."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = {_identify(root) for root in roots} - {None}
        self._found: dict[str, str] = {}
        self._bytes = 0
        self._lookups = 0

    def digest(self) -> str:
        """Return one digest of all files and their paths, or an empty string without files."""
        if not self._found:
            return ""
        listed = "\0".join(f"{path}\0{content}" for path, content in sorted(self._found.items()))
        return f"sha256:{hashlib.sha256(listed.encode(errors='surrogateescape')).hexdigest()}"

    def is_inside(self, path: str) -> bool:
        """Return whether a path is inside the session's directories, without resolving links."""
        return any(_identify(each) in self._roots for each in ancestors(path))

    def collect(
        self, words: Iterable[str], directories: Sequence[str], searched: Iterable[str] = (), *, whole: bool = False
    ) -> tuple[bool, list[str]]:
        """Collect the files that words name from these directories, and programs from the `searched` directories.

        Return whether there were any, and the directories that the words name. With `whole`, only the complete word and
        the part after `=` are tried as paths.
        """
        pieces = _pieces(words, whole=whole)
        bases, named, any_files = list(directories), list[str](), False
        seen = {_identify(base) for base in bases}
        for base in bases:  # the loop appends the directories that it finds
            for piece in pieces:
                if piece.startswith("/") and base is not bases[0]:
                    continue
                path = os.path.join(base, piece)  # noqa: PTH118 -- the kernel resolves links and `..`
                kind = self._look_up(path)
                any_files |= kind == "file"
                if kind == "directory" and (identity := _identify(path)) not in seen:
                    seen.add(identity)
                    bases.append(path)
                    named.append(path)
            if len(bases) > MAX_DIRECTORIES:
                raise UnclearCommandError("it names too many directories")
        for directory in searched:
            for piece in pieces:
                any_files |= "/" not in piece and self._look_up(f"{directory}/{piece}") == "file"
        return any_files, named

    def add_target(self, path: str) -> None:
        """Record the target of an output file. Its content does not matter."""
        self._found[f"> {path}"] = os.path.realpath(path)

    def _look_up(self, path: str) -> str:
        """Add a file that is inside, or a link inside that points outside. Return the kind of the path."""
        self._lookups += 1
        if self._lookups > MAX_LOOKUPS:
            raise UnclearCommandError("it refers to too many other files")
        try:
            status = os.stat(path)  # noqa: PTH116 -- faster for many paths
        except (OSError, ValueError):
            return ""
        if stat.S_ISDIR(status.st_mode):
            return "directory"
        plain = os.path.normpath(path)
        if plain == os.devnull:
            return ""
        if not stat.S_ISREG(status.st_mode) or plain.startswith(("/dev/", "/proc/")):
            raise UnclearCommandError(f"{path} is not a regular file")
        real = os.path.realpath(path)
        if self.is_inside(real):
            self._add(real)
        elif self.is_inside(path):
            self._found[path] = f"-> {real}"
        else:
            return ""
        return "file"

    def _add(self, path: str) -> None:
        if path in self._found:
            return
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise UnclearCommandError(f"{path} cannot be read") from error
        try:
            self._bytes += os.fstat(descriptor).st_size
            if len(self._found) >= MAX_FILES or self._bytes > MAX_BYTES:
                raise UnclearCommandError("it names too many files, or too large ones")
            self._found[path] = str(identify_content(descriptor).sha256)
        except OSError as error:
            raise UnclearCommandError(f"{path} cannot be read") from error
        finally:
            os.close(descriptor)


def ancestors(path: str) -> Iterator[str]:
    """Yield a path and all its parent directories, without resolving links."""
    while path:
        yield path
        above = os.path.dirname(path)  # noqa: PTH120 -- faster on text
        path = above if above != path else ""


def _pieces(words: Iterable[str], *, whole: bool) -> list[str]:
    """Return the parts of words that may be paths."""
    pieces: dict[str, None] = {}
    for word in words:
        if whole:
            pieces |= dict.fromkeys((word, word.partition("=")[2]))
        elif len(word) > MAX_WORD_CHARS:
            raise UnclearCommandError("a word is very long")
        else:
            starts = range(len(word)) if word.startswith("-") else [each.end() for each in _STARTS.finditer(word)]
            for end in _ENDS.finditer(word):
                pieces |= dict.fromkeys(word[start : end.start()] for start in starts)
            pieces |= dict.fromkeys(_modules(word))
        if len(pieces) > MAX_LOOKUPS:
            raise UnclearCommandError("it refers to too many other files")
    return [piece for piece in pieces if piece]


def _modules(word: str) -> Iterator[str]:
    """Yield the module files that a word may name: `-r ./setup`, `main:app`, `package.module`."""
    for part in _ENDS.split(word):
        for name in {part, part[2:] if part.startswith("-") else part, part.replace(".", "/")}:
            yield from (name + ending for ending in MODULE_ENDINGS if name)


def _identify(path: str) -> tuple[int, int] | None:
    """Return device and inode of a directory, because its path can be spelled in many ways."""
    try:
        status = os.stat(path)  # noqa: PTH116 -- faster on text
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
