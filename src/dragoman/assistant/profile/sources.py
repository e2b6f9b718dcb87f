"""The files that an agent file consists of: itself, and those that it names; their bytes are read once and hashed.

A person agrees to the text, so a change of a named file is a change of the agent file.
"""

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from dragoman.assistant.yaml import YamlProblem, printable
from dragoman.errors import DragomanError

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class MarkdownFile(msgspec.Struct, frozen=True):
    """A text and its head (front matter), or None without one; line numbers in the head are those of the file."""

    text: str
    head: str | None = None


def split_head(content: str) -> MarkdownFile:
    """Take the head off a Markdown text."""
    found = _HEAD.match(content)
    if found is None:
        return MarkdownFile(content)
    return MarkdownFile(content[found.end() :], f"\n{found[1]}")


MAX_BYTES = 1 << 20
"""Longest file: written by hand, all are shorter; a longer one may be an attack."""

MAX_FILES = 500
"""Most files of one directory: more than a person writes as rules, and read in a moment."""

_OUTSIDE = "is outside the project, and a project's agent file may only name files inside"


class ProfileError(DragomanError):
    """An agent file is wrong: all its problems, each with its line; line 0 is the file itself."""

    def __init__(self, file: str, problems: Sequence[YamlProblem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(_place(file, problem) for problem in problems))


class Sources:
    """The files beside an agent file; a confined agent file may only name files below its own directory."""

    def __init__(self, path: Path, data: bytes, *, confined: bool) -> None:
        self.path = path
        self.lines: Mapping[str, int] = {}
        """Where each key stands, once that is known."""
        self._confined = confined
        self._hash = hashlib.sha256(data)

    @property
    def digest(self) -> str:
        """The hash of all that was read so far."""
        return self._hash.hexdigest()

    def beside(self, name: str) -> Path:
        """Return the path that a name means, relative to the agent file."""
        return self.path.parent / Path(name).expanduser()

    def place(self, key: str, name: str) -> str:
        """Return the path that a key names, as a text; raises ProfileError."""
        try:
            return str(self.beside(name))
        except RuntimeError:
            raise self.refuse(key, f"{printable(name)} is no path: nobody has that home") from None

    def read_text(self, key: str, name: str) -> str:
        """Return the text of a file that a key names; raises ProfileError."""
        try:
            target = self.beside(name)
            if not self._may_read(target):
                raise self.refuse(key, f"{printable(name)} {_OUTSIDE}")
            text = read_bytes(target).decode("utf-8-sig")
        except OSError as error:
            raise self.refuse(key, f"{printable(name)} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise self.refuse(key, f"{printable(name)} is not UTF-8 text") from None
        except (ValueError, RuntimeError):
            raise self.refuse(key, f"{printable(name)} is no path") from None
        self._hash.update(hashlib.sha256(text.encode()).digest())
        return text

    def list_folder(self, key: str, name: str, suffix: str) -> list[str]:
        """Return the names of the files with this suffix in a directory, sorted; raises ProfileError."""
        try:
            folder = self.beside(name)
            if not self._may_read(folder):
                raise self.refuse(key, f"{printable(name)} {_OUTSIDE}")
            found = sorted(each for each in os.listdir(folder) if each.endswith(suffix) and not each.startswith("."))  # noqa: PTH208 -- names, not paths
        except OSError as error:
            raise self.refuse(key, f"{printable(name)} cannot be read: {error.strerror}") from None
        except (ValueError, RuntimeError):
            raise self.refuse(key, f"{printable(name)} is no path") from None
        if len(found) > MAX_FILES:
            raise self.refuse(key, f"{printable(name)} has more than {MAX_FILES} files")
        # A file that is renamed is another rule, though its words are the same.
        self._hash.update(hashlib.sha256("\0".join(found).encode("utf-8", "surrogateescape")).digest())
        return [os.path.join(name, each) for each in found]  # noqa: PTH118 -- as the file has it, for messages

    def refuse(self, key: str, words: str) -> ProfileError:
        """Return the error for a problem with a key."""
        return ProfileError(str(self.path), [YamlProblem(self.lines.get(key, 0), f"{printable(key)}: {words}")])

    def _may_read(self, target: Path) -> bool:
        return not self._confined or target.resolve().is_relative_to(self.path.parent.resolve())


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a whole regular file: a FIFO would wait for ever, and a device has no end; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise OSError(0, f"it has more than {max_bytes:,} bytes")
    return data


def _place(file: str, problem: YamlProblem) -> str:
    return f"{file}:{problem.line}: {problem.text}" if problem.line else f"{file}: {problem.text}"
