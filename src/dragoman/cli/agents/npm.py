"""Agents of npm: a lock with the hash of every package is made first, and `npm ci` installs that lock and nothing else.

The lock is made from the index's metadata alone, so no code of a package runs before the person has agreed. Scripts
that packages run while they are installed are named in the question.
"""

import re
import shutil
from pathlib import Path

import msgspec

from dragoman.cli.agents.installer import INSTALL_S, RESOLVE_S, InstallFailed, InstallPlan, run_tool
from dragoman.cli.agents.known import Package

_SPEC = re.compile(r"((?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)(?:@([A-Za-z0-9][A-Za-z0-9.+-]*))?")
_SHOWN_SCRIPTS = 8


class _Locked(msgspec.Struct, rename="camel"):
    version: str = ""
    integrity: str = ""
    resolved: str = ""
    in_bundle: bool = False
    has_install_script: bool = False
    bin: dict[str, str] = {}


class _Lock(msgspec.Struct):
    packages: dict[str, _Locked]


class NpmInstaller:
    """Installs one package of npm with all that it needs."""

    def __init__(self, package: Package) -> None:
        found = _SPEC.fullmatch(package.package)
        if found is None:
            raise InstallFailed(
                f"{package.package!r} is no package of npm; expected a name with a version, such as name@1.2.3"
            )
        self._package = package
        self._name, self._version = found[1], found[2] or "latest"
        self._npm = shutil.which("npm") or "npm"

    def plan(self, place: Path) -> InstallPlan:
        """Make the lock."""
        # A manifest of its own: without one npm would look for one in the directories above.
        manifest = {"private": True, "dependencies": {self._name: self._version}}
        (place / "package.json").write_bytes(msgspec.json.encode(manifest))
        options = ("--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
        run_tool([self._npm, "install", *options], cwd=place, timeout_s=RESOLVE_S)
        packages = self._read_lock(place)
        main = self._main(packages)
        notes = [f"with {len(packages) - 1:,} other packages, each pinned by its hash"] if len(packages) > 1 else []
        scripts = sorted({_name_of(path) for path, each in packages.items() if each.has_install_script})
        if scripts:
            more = f" and {len(scripts) - _SHOWN_SCRIPTS} more" if len(scripts) > _SHOWN_SCRIPTS else ""
            notes.append(f"scripts run while it is installed: {', '.join(scripts[:_SHOWN_SCRIPTS])}{more}")
        return InstallPlan("npm", f"{self._name}@{main.version}", main.integrity, tuple(notes))

    def install(self, place: Path) -> tuple[str, ...]:
        """Install the lock."""
        command = self._command(self._main(self._read_lock(place)).bin)
        run_tool([self._npm, "ci", "--no-audit", "--no-fund"], cwd=place, timeout_s=INSTALL_S)
        program = place / "node_modules" / ".bin" / command
        if not program.exists():
            raise InstallFailed(f"{self._name} was installed, but has no command {command}")
        return (str(program), *self._package.args)

    def _read_lock(self, place: Path) -> dict[str, _Locked]:
        lock = msgspec.json.decode((place / "package-lock.json").read_bytes(), type=_Lock)
        packages = {path: each for path, each in lock.packages.items() if path}
        for path, each in packages.items():
            if not each.integrity and not each.in_bundle:
                raise InstallFailed(
                    f"{_name_of(path)} comes from {each.resolved or 'an unknown place'} without a hash, so nobody "
                    f"could tell whether it was changed; start the agent with npx if you want it so"
                )
        return packages

    def _main(self, packages: dict[str, _Locked]) -> _Locked:
        return packages[f"node_modules/{self._name}"]

    def _command(self, commands: dict[str, str]) -> str:
        """Return the command that npx would start."""
        wanted = self._package.cmd or self._name.rpartition("/")[2]
        if wanted in commands or not commands:
            return wanted
        if len(set(commands.values())) == 1 and not self._package.cmd:
            return next(iter(commands))
        raise InstallFailed(f"{self._name} has the commands {', '.join(sorted(commands))}, and none is {wanted}")


def _name_of(path: str) -> str:
    return path.rpartition("node_modules/")[2]
