"""Reading an agent file: its bytes once, and those of the file that it names."""

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman.agent.profile.instructions import TextFile
from dragoman.agent.profile.model import ModelSettings
from dragoman.agent.profile.problem import ProfileError
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.shape import Shape
from dragoman.agent.yaml.nodes import Misread, Problem
from dragoman.agent.yaml.words import printable

if TYPE_CHECKING:
    from dragoman.agent.yaml.values import Reading

MAX_BYTES = 1 << 20
"""Written by hand, or by somebody who wants us to choke on it."""

PATH_MODELS = ("script", "local")
"""The kinds of model whose name is a path."""


class Loaded(msgspec.Struct, frozen=True):
    """A profile and the hash of all the bytes that made it."""

    profile: Profile
    digest: str


def load_profile(path: Path, *, confined: bool = False) -> Loaded:
    """Read an agent file; a confined one may only name files below its own directory.

    Raises ProfileError, and FileNotFoundError when there is none.
    """
    try:
        data = _read(path)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refuse(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _refuse(path, "is not UTF-8 text") from None
    return _load(path, data, text, confined=confined)


def parse_profile(text: str, path: Path) -> Profile:
    """Make a profile of the text of an agent file; raises ProfileError."""
    return _load(path, text.encode(), text, confined=False).profile


def _load(path: Path, data: bytes, text: str, *, confined: bool) -> Loaded:
    # Most sessions have no agent file, and need none of this.
    from dragoman.agent.yaml.values import read_yaml

    try:
        reading = read_yaml(text, Shape)
    except Misread as misread:
        raise ProfileError(str(path), misread.problems) from None
    shape, digest = reading.value, hashlib.sha256(data)
    instructions = shape.instructions
    if isinstance(instructions, TextFile):
        included = _include(path, instructions.file, reading, confined=confined)
        # What was agreed to are the words, so a change of the named file is a change of this one.
        digest.update(hashlib.sha256(included.encode()).digest())
        instructions = included
    profile = Profile(_place_model(shape.model, path), instructions, shape.permissions, shape.limits)
    return Loaded(profile, digest.hexdigest())


def _place_model(model: str | ModelSettings | None, path: Path) -> ModelSettings | None:
    if model is None:
        return None
    settings = ModelSettings(model) if isinstance(model, str) else model
    kind, _, rest = settings.name.partition(":")
    if kind not in PATH_MODELS or not rest:
        return settings
    return msgspec.structs.replace(settings, name=f"{kind}:{_beside(path, rest)}")


def _include(path: Path, name: str, reading: "Reading[Shape]", *, confined: bool) -> str:
    target = _beside(path, name)
    try:
        if not confined or target.resolve().is_relative_to(path.parent.resolve()):
            return _read(target).decode()
        problem = "is outside the project, and a project's agent file may only name files inside"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = "is not UTF-8 text"
    except (ValueError, RuntimeError):
        problem = "is no path"
    line = reading.lines["instructions.file"]
    raise ProfileError(str(path), [Problem(line, f"instructions.file: {printable(name)} {problem}")])


def _beside(path: Path, name: str) -> Path:
    return path.parent / Path(name).expanduser()


def _read(path: Path) -> bytes:
    """Read a whole regular file: a FIFO would wait for ever, and a device has no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise OSError(0, f"it has more than {MAX_BYTES:,} bytes")
    return data


def _refuse(path: Path, problem: str) -> ProfileError:
    return ProfileError(str(path), [Problem(0, problem)])
