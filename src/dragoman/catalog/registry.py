"""Entries of the ACP registry, and the command of each entry on this machine.

The registry is untrusted. A package becomes `npx -y NAME@VERSION ARGS…` or `uvx NAME==VERSION ARGS…`. The name and the
exact version are checked, and only the package's own command is started. A program in an archive is started from the
directory where it was unpacked. No program from an entry is looked up on PATH. No entry is started before the user has
seen its whole command and agreed (`dragoman agents install`).
"""

import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

import msgspec

from dragoman.errors import DragomanError

T = TypeVar("T")

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Limit for a registry file. The real one is a few hundred kilobytes."""

_SYSTEMS = {"darwin": "darwin", "linux": "linux", "win32": "windows"}
_MACHINES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64"}

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NPM = re.compile(r"((?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)(?:@(.+))?")
_NPM_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][A-Za-z0-9.+-]+)?")
_PYPI = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9,._-]+\])?(?:(?:==|@)(.+))?")
_PYPI_VERSION = re.compile(r"\d+(?:\.\d+)*(?:(?:a|b|rc|\.?post|\.dev)\d+)*(?:\+[A-Za-z0-9.]+)?")


class KnownAgentsError(DragomanError):
    """A file of agents cannot be used."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}; correct that file, or move it away")


class InstallError(DragomanError):
    """An agent cannot be installed. The message has the reason and the next step."""


class Package(msgspec.Struct):
    """A package of npm or PyPI, whose own command is the agent."""

    package: str
    args: list[str] = []
    env: dict[str, str] = {}


class Binary(msgspec.Struct):
    """A program in an archive, for one platform."""

    archive: str
    cmd: str
    sha256: str = ""
    args: list[str] = []
    env: dict[str, str] = {}


class Distribution(msgspec.Struct):
    """The packages and archives of an agent."""

    npx: Package | None = None
    uvx: Package | None = None
    binary: dict[str, Binary] = {}


class Manifest(msgspec.Struct):
    """An entry of the registry."""

    id: str
    distribution: Distribution
    name: str = ""
    version: str = ""
    description: str = ""


class _Registry(msgspec.Struct):
    agents: list[Manifest]


class PackageCommand(msgspec.Struct, frozen=True):
    """The command that starts a package. The runner downloads the package."""

    runner: Literal["npx", "uvx"]
    package: str
    """The package with its exact version."""
    args: Sequence[str]
    env: Mapping[str, str]

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command."""
        options = ("-y",) if self.runner == "npx" else ()
        return (self.runner, *options, self.package, *self.args)


def choose_distribution(manifest: Manifest) -> PackageCommand | Binary:
    """Return the package command or archive for this machine. Raises InstallError.

    Packages come before archives, because their runner is already installed and checks them.
    """
    kinds, offered = manifest.distribution, list[str]()
    if kinds.npx is not None:
        offered.append("npx")
        if shutil.which("npx"):
            _check_words(kinds.npx)
            return PackageCommand("npx", _pin_npm(kinds.npx.package, manifest.version), kinds.npx.args, kinds.npx.env)
    if kinds.uvx is not None:
        offered.append("uvx")
        if shutil.which("uvx"):
            _check_words(kinds.uvx)
            return PackageCommand("uvx", _pin_pypi(kinds.uvx.package, manifest.version), kinds.uvx.args, kinds.uvx.env)
    binary = kinds.binary.get(platform_name())
    if binary is not None:
        _check_words(binary)
        _check_program(binary)
        return binary
    if offered:
        raise InstallError(f"it needs {' or '.join(offered)}, which is not on PATH; install Node.js or uv first")
    raise InstallError(f"the registry has no version for {platform_name()}")


def _pin_npm(package: str, version: str) -> str:
    found = _NPM.fullmatch(package)
    if found is None:
        raise InstallError(f"{package!r} is not an npm package; expected a name and a version, such as name@1.2.3")
    return f"{found[1]}@{_exact(found[2], version, _NPM_VERSION, package)}"


def _pin_pypi(package: str, version: str) -> str:
    found = _PYPI.fullmatch(package)
    if found is None:
        raise InstallError(f"{package!r} is not a PyPI package; expected a name and a version, such as name==1.2.3")
    if found[2]:
        raise InstallError(
            f"{package!r} names extras, which are not supported; expected a name and a version, such as name==1.2.3"
        )
    return f"{found[1]}=={_exact(found[3], version, _PYPI_VERSION, package)}"


def _exact(named: str | None, entry_version: str, shape: re.Pattern[str], package: str) -> str:
    """Return the version in the package name, or else the version of the entry. Raises InstallError for a range."""
    version = entry_version if named in (None, "latest") else named
    if not version or shape.fullmatch(version) is None:
        raise InstallError(f"{package!r} has no exact version: {version!r}; expected one such as 1.2.3")
    return version


def _check_words(source: Package | Binary) -> None:
    """Check the variable names, and refuse NUL characters. Raises InstallError."""
    for name, value in source.env.items():
        if _VARIABLE.fullmatch(name) is None:
            raise InstallError(f"{name!r} is not a variable name; expected letters, digits and _")
        if "\0" in value:
            raise InstallError(f"the variable {name} contains a NUL character")
    if any("\0" in word for word in source.args):
        raise InstallError("one of its arguments contains a NUL character")


def _check_program(binary: Binary) -> None:
    """Check that the program is inside the archive. Raises InstallError."""
    program = PurePosixPath(binary.cmd)
    is_inside = program.name and not program.is_absolute() and ".." not in program.parts and "\0" not in binary.cmd
    if not is_inside:
        raise InstallError(f"its program {binary.cmd!r} is not inside its archive; expected a path such as ./agent")


def platform_name() -> str:
    """Return the name of this platform in the registry."""
    return f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(platform.machine().lower(), '?')}"


def read_registry(path: Path) -> list[Manifest]:
    """Return the entries of a registry file, or an empty list if it is missing. Raises KnownAgentsError."""
    text = read_file(path)
    return [] if text is None else decode_registry(path, text)


def decode_registry(path: Path, text: bytes) -> list[Manifest]:
    """Return the entries of a registry. Raises KnownAgentsError."""
    return decode(path, text, _Registry).agents


def read_file(path: Path) -> bytes | None:
    """Return the content of a file of agents, or None if it is missing. Raises KnownAgentsError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KnownAgentsError(path, f"it cannot be read: {error.strerror}") from None
    if len(text) > MAX_FILE_BYTES:
        raise KnownAgentsError(path, f"it has more than {MAX_FILE_BYTES} bytes")
    return text.removeprefix(b"\xef\xbb\xbf")


def decode(path: Path, text: bytes, kind: type[T]) -> T:
    """Decode a file of agents. Raises KnownAgentsError."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise KnownAgentsError(path, f"{error}") from None
