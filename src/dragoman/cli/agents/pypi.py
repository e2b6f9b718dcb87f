"""Agents of PyPI: pip finds all packages with their hashes first, and then installs those and nothing else.

Only wheels count. A source package runs its own code to say what it needs, which would be before anybody has agreed.
"""

import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

import msgspec

from dragoman.cli.agents.installer import INSTALL_S, RESOLVE_S, InstallFailed, InstallPlan, run_tool
from dragoman.cli.agents.known import Package

_SPEC = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[A-Za-z0-9,._ -]+\])?(?:(?:==|@)([A-Za-z0-9][A-Za-z0-9.!+_-]*))?")
_LOCK = "requirements.txt"

_ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PYTHONPATH", "PYTHONHOME")
"""Variables by which pip would install into another place than the environment, or see packages of another."""


class _Metadata(msgspec.Struct):
    name: str
    version: str


class _Archive(msgspec.Struct, frozen=True):
    hashes: dict[str, str] = {}


class _Download(msgspec.Struct):
    url: str
    archive_info: _Archive = _Archive()


class _Found(msgspec.Struct):
    metadata: _Metadata
    download_info: _Download
    is_direct: bool = False
    requested: bool = False

    @property
    def sha256(self) -> str:
        return self.download_info.archive_info.hashes.get("sha256", "")


class _Report(msgspec.Struct):
    install: list[_Found]


class PypiInstaller:
    """Installs one package of PyPI with all that it needs, into a virtual environment of this Python."""

    def __init__(self, package: Package) -> None:
        found = _SPEC.fullmatch(package.package)
        if found is None:
            raise InstallFailed(
                f"{package.package!r} is no package of PyPI; expected a name with a version, such as name==1.2.3"
            )
        self._package = package
        version = f"=={found[3]}" if found[3] and found[3] != "latest" else ""
        self._name, self._requirement = found[1], f"{found[1]}{found[2] or ''}{version}"

    def plan(self, place: Path) -> InstallPlan:
        """Make the environment, and ask pip for the packages and their hashes."""
        run_tool([sys.executable, "-m", "venv", "venv"], cwd=place, timeout_s=RESOLVE_S)
        options = ("--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", "report.json")
        try:
            _run_pip(place, [*options, self._requirement], RESOLVE_S)
        except InstallFailed as error:
            raise InstallFailed(
                f"{error}\nOnly wheels for Python {sys.version_info[0]}.{sys.version_info[1]} are installed, "
                "because a source package runs its code before you could be asked."
            ) from None
        found = msgspec.json.decode((place / "report.json").read_bytes(), type=_Report).install
        for each in found:
            if each.is_direct or not each.sha256:
                raise InstallFailed(
                    f"{each.metadata.name} comes from {each.download_info.url} without a hash of the index, so nobody "
                    "could tell whether it was changed; start the agent with uvx if you want it so"
                )
        lines = [f"{each.metadata.name}=={each.metadata.version} --hash=sha256:{each.sha256}\n" for each in found]
        (place / _LOCK).write_text("".join(lines))
        [main] = [each for each in found if each.requested]
        notes = [f"with {len(found) - 1:,} other packages, each pinned by its hash"] if len(found) > 1 else []
        return InstallPlan(
            "PyPI", f"{main.metadata.name}=={main.metadata.version}", f"sha256:{main.sha256}", tuple(notes)
        )

    def install(self, place: Path) -> tuple[str, ...]:
        """Install the wheels of the report."""
        options = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", _LOCK)
        _run_pip(place, options, INSTALL_S)
        return (str(self._program(place)), *self._package.args)

    def _program(self, place: Path) -> Path:
        """Return the command that uvx would start: the one of the package's name, or the only one."""
        programs = place / "venv" / "bin"
        wanted = self._package.cmd or self._name
        if (programs / wanted).is_file():
            return programs / wanted
        commands = self._commands(place)
        if len(commands) == 1 and not self._package.cmd:
            return programs / commands[0]
        if not commands:
            raise InstallFailed(f"{self._name} has no command, so it is no agent that could be started")
        raise InstallFailed(f"{self._name} has the commands {', '.join(commands)}, and none is {wanted}")

    def _commands(self, place: Path) -> list[str]:
        folders = [str(folder) for folder in (place / "venv" / "lib").glob("python*/site-packages")]
        found = next(iter(distributions(name=self._name, path=folders)), None)
        return (
            [] if found is None else sorted({each.name for each in found.entry_points.select(group="console_scripts")})
        )


def _run_pip(place: Path, words: Sequence[str], timeout_s: float) -> None:
    python = str(place / "venv" / "bin" / "python")
    command = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q", "install", *words]
    env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    run_tool(command, cwd=place, timeout_s=timeout_s, env=env)
