"""The files inside the session's directories that words name, and one digest of their contents.

A word is tried in every way in which a program may take it: each of its parts between the signs `=:,@+%`, each end of
a path (`/mounted/run.sh`) and of an option (`-fx.mk`), also as the name of a module; from each directory that the
command may be in, and from each directory that another word names (`env -C sub ./run.sh`). That finds files which the
command has nothing to do with; then one question more is asked, and no harm is done.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence

from dragoman.assistant.tools.plain_command import UnclearCommand
from dragoman.files.content import identify_content

MAX_FILES = 256
"""Files of one command; one that names more is not approved for good."""

MAX_BYTES = 64 * 1024 * 1024
"""Of all these files: they are read whenever the command is looked at."""

MAX_LOOKUPS = 20_000
"""Names that are tried, which takes some 0.1 s."""

MAX_DIRECTORIES = 32
"""From which they are tried."""

MAX_WORD_CHARS = 512

MODULE_ENDINGS = (".py", "/__init__.py", "/__main__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js", ".rb", ".pl", ".pm")
"""Endings that languages add to the name of a module."""

_ENDS = re.compile(r"[=:,@+%]|$")
_STARTS = re.compile(r"^|[ /=:,@+%]")


class NamedFiles:
    """Collects them; raises UnclearCommand when there are too many, or the content of one cannot be fixed."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = {_identify(root) for root in roots} - {None}
        self._found: dict[str, str] = {}
        self._bytes = 0
        self._lookups = 0

    def digest(self) -> str:
        """Return one digest of all the files, with their paths; empty when there are none."""
        if not self._found:
            return ""
        listed = "\0".join(f"{path}\0{content}" for path, content in sorted(self._found.items()))
        return f"sha256:{hashlib.sha256(listed.encode(errors='surrogateescape')).hexdigest()}"

    def is_inside(self, path: str) -> bool:
        """Whether a path lies in the session's directories, by its words."""
        return any(_identify(each) in self._roots for each in ancestors(path))

    def collect(
        self, words: Iterable[str], directories: Sequence[str], searched: Iterable[str] = (), *, whole: bool = False
    ) -> tuple[bool, list[str]]:
        """Note the files that words name from these directories, and as programs from those that are searched.

        Return whether there were any, and the directories that the words name. With `whole`, a word is a path as it
        stands, or its part behind `=`.
        """
        pieces = _pieces(words, whole=whole)
        bases, named, any_files = list(directories), list[str](), False
        seen = {_identify(base) for base in bases}
        for base in bases:  # it grows meanwhile
            for piece in pieces:
                if piece.startswith("/") and base is not bases[0]:
                    continue
                path = os.path.join(base, piece)  # noqa: PTH118 -- links and `..` are for the kernel
                kind = self._look_up(path)
                any_files |= kind == "file"
                if kind == "directory" and (identity := _identify(path)) not in seen:
                    seen.add(identity)
                    bases.append(path)
                    named.append(path)
            if len(bases) > MAX_DIRECTORIES:
                raise UnclearCommand("it names too many directories")
        for directory in searched:
            for piece in pieces:
                any_files |= "/" not in piece and self._look_up(f"{directory}/{piece}") == "file"
        return any_files, named

    def note_target(self, path: str) -> None:
        """Note the target of a file that is written; its content does not matter."""
        self._found[f"> {path}"] = os.path.realpath(path)

    def _look_up(self, path: str) -> str:
        """Note a file that is inside, or is named inside and leads out; return its kind."""
        self._lookups += 1
        if self._lookups > MAX_LOOKUPS:
            raise UnclearCommand("it names too much")
        try:
            status = os.stat(path)  # noqa: PTH116 -- very many texts
        except (OSError, ValueError):
            return ""
        if stat.S_ISDIR(status.st_mode):
            return "directory"
        plain = os.path.normpath(path)
        if plain == os.devnull:
            return ""
        if not stat.S_ISREG(status.st_mode) or plain.startswith(("/dev/", "/proc/")):
            raise UnclearCommand(f"{path} is no regular file")
        real = os.path.realpath(path)
        if self.is_inside(real):
            self._note(real)
        elif self.is_inside(path):
            self._found[path] = f"-> {real}"
        else:
            return ""
        return "file"

    def _note(self, path: str) -> None:
        if path in self._found:
            return
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise UnclearCommand(f"{path} cannot be read") from error
        try:
            self._bytes += os.fstat(descriptor).st_size
            if len(self._found) >= MAX_FILES or self._bytes > MAX_BYTES:
                raise UnclearCommand("it names too many files, or too large ones")
            self._found[path] = str(identify_content(descriptor).sha256)
        except OSError as error:
            raise UnclearCommand(f"{path} cannot be read") from error
        finally:
            os.close(descriptor)


def ancestors(path: str) -> Iterator[str]:
    """Give a path and all the directories above it, by its words."""
    while path:
        yield path
        above = os.path.dirname(path)  # noqa: PTH120 -- a text
        path = above if above != path else ""


def _pieces(words: Iterable[str], *, whole: bool) -> list[str]:
    """Return the parts of words that may be paths."""
    pieces: dict[str, None] = {}
    for word in words:
        if whole:
            pieces |= dict.fromkeys((word, word.partition("=")[2]))
        elif len(word) > MAX_WORD_CHARS:
            raise UnclearCommand("a word is very long")
        else:
            starts = range(len(word)) if word.startswith("-") else [each.end() for each in _STARTS.finditer(word)]
            for end in _ENDS.finditer(word):
                pieces |= dict.fromkeys(word[start : end.start()] for start in starts)
            pieces |= dict.fromkeys(_modules(word))
        if len(pieces) > MAX_LOOKUPS:
            raise UnclearCommand("it names too much")
    return [piece for piece in pieces if piece]


def _modules(word: str) -> Iterator[str]:
    """Give the files of modules that a word may name: `-r ./setup`, `main:app`, `package.module`."""
    for part in _ENDS.split(word):
        for name in {part, part[2:] if part.startswith("-") else part, part.replace(".", "/")}:
            yield from (name + ending for ending in MODULE_ENDINGS if name)


def _identify(path: str) -> tuple[int, int] | None:
    """Identify directories by device and inode, because a name may be spelled in many ways."""
    try:
        status = os.stat(path)  # noqa: PTH116 -- a text
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
