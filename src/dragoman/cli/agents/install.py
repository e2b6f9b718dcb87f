"""`dragoman agents install NAME` and `remove NAME`.

An entry of the registry becomes an environment in which everything is pinned by a hash. The person sees what it is and
agrees before any of it runs. Whatever fails or is interrupted leaves no half of it: see `agent_environments`.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from dragoman.cli.agents.archive import ArchiveInstaller
from dragoman.cli.agents.installer import Installer, InstallFailed, InstallPlan
from dragoman.cli.agents.known import REGISTRY_FILE, Distribution, Manifest, platform_name, read_registry
from dragoman.cli.agents.npm import NpmInstaller
from dragoman.cli.agents.pypi import PypiInstaller
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.options import UsageError, describe_unknown
from dragoman.client.agent_environments import AgentEnvironments, Receipt
from dragoman.text import one_line

_YES = ("y", "yes")


def install_agent(name: str, home: Path, *, is_agreed: bool) -> int:
    """Install an agent of the registry, once somebody has agreed; raises DragomanError."""
    manifest = _find(name, home)
    if not is_agreed and not _has_terminal():
        raise UsageError(
            f"nobody can be asked here whether to install {name}; say --yes to install it without a question"
        )
    environments = AgentEnvironments(home)
    installer, variables = _choose(manifest.distribution)
    print(one_line(f"Looking up {name} {manifest.version} …"), file=sys.stderr)
    with environments.preparing(name) as environment:
        plan = installer.plan(environment.path)
        _show(manifest, plan, environments.folder(name))
        if not is_agreed and not _agrees():
            print("Nothing was installed.", file=sys.stderr)
            return FAILED
        print("Installing …", file=sys.stderr)
        command = installer.install(environment.path)
        environment.commit(
            Receipt(
                name,
                environment.path.name,
                command,
                plan.source,
                plan.package,
                plan.digest,
                title=manifest.name,
                version=manifest.version,
                description=manifest.description,
                env=variables,
            )
        )
    print(one_line(f"{name} is installed. Talk with it: dragoman chat -- {name}"))
    return 0


def remove_agent(name: str, home: Path) -> int:
    """Delete what was installed by this name; raises DragomanError."""
    environments = AgentEnvironments(home)
    if not environments.remove(name):
        known = [each.name for each in environments.read()]
        if not known:
            raise UsageError("no agent is installed by dragoman agents install, so there is nothing to remove")
        raise UsageError(describe_unknown("installed agent", name, known))
    print(one_line(f"{name} is removed."))
    return 0


def _find(name: str, home: Path) -> Manifest:
    entries = {entry.id: entry for entry in read_registry(home / REGISTRY_FILE)}
    if not entries:
        raise UsageError(
            f"there is no copy of the ACP registry in {home / REGISTRY_FILE}; take one with dragoman agents update "
            "FILE|URL"
        )
    if name not in entries:
        raise UsageError(describe_unknown("agent of the registry", name, entries))
    return entries[name]


def _choose(ways: Distribution) -> tuple[Installer, Mapping[str, str]]:
    """Return the installer for this machine, and the variables of the agent; raises InstallFailed."""
    if ways.npx is not None and shutil.which("npm") is not None:
        return NpmInstaller(ways.npx), ways.npx.env
    if ways.uvx is not None:
        return PypiInstaller(ways.uvx), ways.uvx.env
    binary = ways.binary.get(platform_name())
    if binary is not None:
        return ArchiveInstaller(binary), binary.env
    if ways.npx is not None:
        raise InstallFailed("it is a package of npm, and npm is not installed; install Node.js first")
    raise InstallFailed(f"the registry has nothing for {platform_name()}")


def _show(manifest: Manifest, plan: InstallPlan, folder: Path) -> None:
    about = f": {manifest.description}" if manifest.description else ""
    print(one_line(f"{manifest.name or manifest.id} {manifest.version}{about}"), file=sys.stderr)
    for line in (f"{plan.source}: {plan.package}", plan.digest, *plan.notes, f"into {folder}"):
        print("  " + one_line(line), file=sys.stderr)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _agrees() -> bool:
    """Ask at the terminal; the end of input is a no."""
    print("Install it? It runs with your rights. [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in _YES
