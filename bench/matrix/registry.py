"""The agents of a local `registry.json` next to this file, started like agents of the ACP registry.

The file is written by hand in the format of the registry, with agents that npx or uvx can fetch. `python -m
bench.matrix.registry` prints the npx packages, for the installation.
"""

from pathlib import Path

from bench import commands
from bench.commands import Command
from bench.matrix.subject import Subject
from bench.measure import MissingError
from dragoman.catalog.known import REGISTRY_FILE
from dragoman.catalog.registry import InstallError, Manifest, PackageCommand, choose_distribution, read_registry

NPM_CACHE = commands.INSTALLED_PEERS / "npm"
"""The cache of npx, which by default is in the home. Each subject has a new home."""
UV_CACHE = commands.INSTALLED_PEERS / "uv"


def registry_agents() -> tuple[Subject, ...]:
    """Return a subject for each agent of the file."""
    return tuple(_subject(manifest) for manifest in _manifests())


def npx_packages() -> list[str]:
    """Return the packages that npx fetches."""
    ways = [choose_distribution(manifest) for manifest in _manifests() if manifest.distribution.npx]
    return [way.package for way in ways if isinstance(way, PackageCommand) and way.runner == "npx"]


def _manifests() -> list[Manifest]:
    return read_registry(Path(__file__).parent / REGISTRY_FILE)


def _subject(manifest: Manifest) -> Subject:
    def find() -> Command:
        try:
            way = choose_distribution(manifest)
        except InstallError as error:
            raise MissingError(str(error)) from None
        if not isinstance(way, PackageCommand):
            raise MissingError("it is an archive, and only packages are tried here")
        return way.command

    ways = manifest.distribution
    package = ways.npx or ways.uvx
    return Subject(
        name=manifest.id,
        about=f"{manifest.description}, by its entry in a local `registry.json`: "
        f"`{package.package if package else ''}`, without a key, so that it is asked nothing",
        version=lambda: manifest.version,
        command=find,
        prompt=False,
        env={
            "npm_config_cache": str(NPM_CACHE),
            "UV_CACHE_DIR": str(UV_CACHE),
            **(package.env if package is not None else {}),
        },
    )


if __name__ == "__main__":
    print("\n".join(npx_packages()))
