"""The files of an agent file: itself and the files it names. Each is read once and hashed.

The user approves the text, so a changed file counts as a changed agent file.
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
from dragoman.text import visible

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class MarkdownFile(msgspec.Struct, frozen=True):
    """A text and its front matter, or None. Line numbers in the front matter count from the start of the file."""

    text: str
    head: str | None = None


def split_head(content: str) -> MarkdownFile:
    """Split a Markdown text into its front matter and the rest."""
    found = _HEAD.match(content)
    if found is None:
        return MarkdownFile(content)
    return MarkdownFile(content[found.end() :], f"\n{found[1]}")


MAX_BYTES = 1 << 20
"""The longest file. All hand-written files are shorter, and a longer one may be an attack."""

MAX_FILES = 500
"""The most files of one directory. Real projects have fewer rules, and this many are read quickly."""

_OUTSIDE = "is outside the project, and a project's agent file may only name files inside"


class ProfileError(DragomanError):
    """An agent file is invalid. Lists all problems with their lines. Line 0 is the file itself."""

    def __init__(self, file: str, problems: Sequence[YamlProblem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(_place(file, problem) for problem in problems))


class Sources:
    """The files next to an agent file. A confined agent file may name only files below its own directory."""

    def __init__(self, path: Path, data: bytes, *, confined: bool) -> None:
        self.path = path
        self.lines: Mapping[str, int] = {}
        """The line of each key, once it is known."""
        self._confined = confined
        self._hash = hashlib.sha256(data)

    @property
    def digest(self) -> str:
        """The hash of everything read so far."""
        return self._hash.hexdigest()

    def path_of(self, name: str) -> Path:
        """Return the path of a name, relative to the agent file."""
        return self.path.parent / Path(name).expanduser()

    def place(self, key: str, name: str) -> str:
        """Return the path in a key as text. Raises ProfileError."""
        try:
            return str(self.path_of(name))
        except RuntimeError:
            raise self.refuse(key, f"{printable(name)} is not a valid path: the user does not exist") from None

    def read_text(self, key: str, name: str) -> str:
        """Return the text of the file in a key. Raises ProfileError."""
        try:
            target = self.path_of(name)
            if not self._may_read(target):
                raise self.refuse(key, f"{printable(name)} {_OUTSIDE}")
            text = read_bytes(target).decode("utf-8-sig")
        except OSError as error:
            raise self.refuse(key, f"{printable(name)} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise self.refuse(key, f"{printable(name)} is not UTF-8 text") from None
        except (ValueError, RuntimeError):
            raise self.refuse(key, f"{printable(name)} is not a valid path") from None
        self._hash.update(hashlib.sha256(text.encode()).digest())
        return text

    def list_folder(self, key: str, name: str, suffix: str) -> list[str]:
        """Return the sorted names of the files with this suffix in a directory. Raises ProfileError."""
        try:
            folder = self.path_of(name)
            if not self._may_read(folder):
                raise self.refuse(key, f"{printable(name)} {_OUTSIDE}")
            found = sorted(each for each in os.listdir(folder) if each.endswith(suffix) and not each.startswith("."))  # noqa: PTH208 -- names, not paths
        except OSError as error:
            raise self.refuse(key, f"{printable(name)} cannot be read: {error.strerror}") from None
        except (ValueError, RuntimeError):
            raise self.refuse(key, f"{printable(name)} is not a valid path") from None
        if len(found) > MAX_FILES:
            raise self.refuse(key, f"{printable(name)} has more than {MAX_FILES} files")
        # Hash the names as well, because a renamed file is a different rule.
        self._hash.update(hashlib.sha256("\0".join(found).encode("utf-8", "surrogateescape")).digest())
        return [os.path.join(name, each) for each in found]  # noqa: PTH118 -- as the file has it, for messages

    def refuse(self, key: str, problem: str) -> ProfileError:
        """Return the error for a problem with a key."""
        return ProfileError(str(self.path), [YamlProblem(self.lines.get(key, 0), f"{printable(key)}: {problem}")])

    def _may_read(self, target: Path) -> bool:
        return not self._confined or target.resolve().is_relative_to(self.path.parent.resolve())


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a whole regular file. Raises OSError.

    A FIFO would block forever, and a device has no end.
    """
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
    shown = visible(file)
    return f"{shown}:{problem.line}: {problem.text}" if problem.line else f"{shown}: {problem.text}"
