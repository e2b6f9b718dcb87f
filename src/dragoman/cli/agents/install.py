"""`dragoman agents install NAME` and `remove NAME`.

Installing saves the agent's command from the registry. The user sees the whole command first and must agree. npx or
uvx fetch a package each time the agent starts. An archive is downloaded before the question, because its hash is shown
there, and is unpacked afterwards.
"""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from dragoman.catalog.archive import fetch_archive, program_path, unpack_archive
from dragoman.catalog.installed import AgentEnvironments, NewEnvironment, Receipt, Source
from dragoman.catalog.known import REGISTRY_FILE
from dragoman.catalog.registry import Binary, Manifest, PackageCommand, choose_distribution, read_registry
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.options import UsageError, describe_unknown
from dragoman.text import one_line, visible

_YES = ("y", "yes")


def install_agent(name: str, home: Path, *, is_agreed: bool) -> int:
    """Install an agent from the registry after the user agrees to its command. Raises DragomanError."""
    manifest = _find(name, home)
    if not is_agreed and not _has_terminal():
        raise UsageError(f"cannot ask for confirmation to install {name}: stdin is not a terminal; add --yes")
    way = choose_distribution(manifest)
    with AgentEnvironments(home).preparing(name) as environment:
        is_installed = (
            _install_package(manifest, way, environment, is_agreed=is_agreed)
            if isinstance(way, PackageCommand)
            else _install_archive(manifest, way, environment, is_agreed=is_agreed)
        )
    if not is_installed:
        print("Nothing was installed.", file=sys.stderr)
        return FAILED
    print(one_line(f"{name} is installed. Start it with: dragoman chat -- {name}"))
    return 0


def _install_package(manifest: Manifest, way: PackageCommand, environment: NewEnvironment, *, is_agreed: bool) -> bool:
    note = f"{way.runner} downloads the package and its dependencies when the agent starts"
    print_entry(manifest, (f"{way.runner}: {way.package}", note), way.command, way.env)
    if not is_agreed and not _confirm():
        return False
    environment.commit(_receipt(manifest, way.command, way.env, way.runner, way.package))
    return True


def _install_archive(manifest: Manifest, binary: Binary, environment: NewEnvironment, *, is_agreed: bool) -> bool:
    print(f"Fetching {visible(binary.archive)} …", file=sys.stderr)
    archive = fetch_archive(binary, environment.path)
    command = (str(program_path(binary, environment.path)), *binary.args)
    checked = "the checksum matches the registry" if binary.sha256 else "the registry has no checksum for it"
    facts = (f"archive: {binary.archive}", f"sha256:{archive.digest}", f"{archive.size:,} bytes; {checked}")
    print_entry(manifest, facts, command, binary.env)
    if not is_agreed and not _confirm():
        return False
    unpack_archive(binary, archive.path, environment.path)
    receipt = _receipt(manifest, command, binary.env, "archive", binary.archive)
    environment.commit(
        msgspec.structs.replace(receipt, environment=environment.path.name, digest=f"sha256:{archive.digest}")
    )
    return True


def _receipt(
    manifest: Manifest, command: Sequence[str], env: Mapping[str, str], source: Source, package: str
) -> Receipt:
    about = {"title": manifest.name, "version": manifest.version, "description": manifest.description}
    return Receipt(manifest.id, tuple(command), source, package, env=env, **about)


def remove_agent(name: str, home: Path) -> int:
    """Remove the installed agent of this name. Raises DragomanError."""
    environments = AgentEnvironments(home)
    if not environments.remove(name):
        known = [each.name for each in environments.read()]
        if not known:
            raise UsageError("no agent was installed with dragoman agents install")
        raise UsageError(describe_unknown("installed agent", name, known))
    print(one_line(f"{name} was removed."))
    return 0


def _find(name: str, home: Path) -> Manifest:
    entries = {entry.id: entry for entry in read_registry(home / REGISTRY_FILE)}
    if not entries:
        raise UsageError(
            f"there is no copy of the ACP registry in {home / REGISTRY_FILE}; download it with dragoman agents update "
            "FILE|URL"
        )
    if name not in entries:
        raise UsageError(describe_unknown("agent in the registry named", name, entries))
    return entries[name]


def print_entry(manifest: Manifest, facts: Iterable[str], command: Sequence[str], env: Mapping[str, str]) -> None:
    """Print everything that the user must agree to: every word of the command and every variable, unshortened."""
    about = f": {manifest.description}" if manifest.description else ""
    print(one_line(f"{manifest.name or manifest.id} {manifest.version}{about}"), file=sys.stderr)
    variables = [f"with {name}={shlex.quote(value)}" for name, value in env.items()]
    for line in (*facts, f"command: {shlex.join(command)}", *variables):
        print(f"  {visible(line)}", file=sys.stderr)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _confirm() -> bool:
    """Ask the user at the terminal. End of input means no."""
    print("Install it? It will run with your permissions. [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in _YES
