"""Build the distributions and check their contents. With `--release`, check the conditions for publishing too.

The wheel is built from the sdist, as `python -m build` does. The wheel must contain exactly the files of src/dragoman.
Only users who install it would notice a missing page, schema or licence.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.metadata import Metadata
from packaging.version import Version

from dragoman import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src"

LICENCES = {"licenses/LICENSE", "licenses/NOTICE"}
INFORMATION = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", *LICENCES}
"""The files of the wheel that describe the package."""

MUST_HAVES = {
    "dragoman/py.typed",
    "dragoman/assistant/profile/agent-file.schema.json",
    "dragoman/bridge/web/index.html",
    "dragoman/protocol/schema/v1/schema.json",
    "dragoman/protocol/schema/v2/schema.json",
}
"""Files that are named one by one, so that a rule which excludes too much is found."""


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it. Return both."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.stdout)
    return folder / f"dragoman-{__version__}.tar.gz", folder / f"dragoman-{__version__}-py3-none-any.whl"


def judge_wheel(wheel: Path) -> Iterator[str]:
    """Yield the faults of a wheel."""
    about = f"dragoman-{__version__}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        metadata = archive.read(f"{about}METADATA")
    wanted = _source_files() | {f"{about}{name}" for name in INFORMATION}
    yield from (f"{wheel.name} has no {name}" for name in sorted(wanted - names))
    yield from (f"{wheel.name} has {name}, which is no part of it" for name in sorted(names - wanted))
    yield from (f"there is no {name} any more; mend the list" for name in sorted(MUST_HAVES - _source_files()))
    yield from judge_metadata(metadata)


def judge_metadata(text: bytes) -> Iterator[str]:
    """Yield the faults of the metadata. Raises the faults that `packaging` finds."""
    metadata = Metadata.from_email(text, validate=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if str(metadata.version) != __version__:
        yield f"the metadata has the version {metadata.version}, the package {__version__}"
    if (metadata.description or "").strip() != (ROOT / "README.md").read_text().strip():
        yield "the description is not README.md"
    missing = project["optional-dependencies"].keys() - {str(name) for name in metadata.provides_extra or ()}
    yield from (f"the metadata has no extra {extra}" for extra in sorted(missing))


def judge_sdist(sdist: Path) -> Iterator[str]:
    """Yield the faults of a source distribution. A wheel must be buildable from it, with its licences."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {f"src/{name}" for name in _source_files()} | {"LICENSE", "NOTICE", "README.md", "pyproject.toml"}
    yield from (f"{sdist.name} has no {name}" for name in sorted(wanted - names))


def judge_release(tag: str | None) -> Iterator[str]:
    """Yield the reasons against publishing this version: its number, the changelog, the tag."""
    # Without a tag, the section may still be unreleased. With a tag, it needs a date, and the tag its version.
    version = Version(__version__)
    if version.is_devrelease or version.local:
        yield f"{__version__} is no version to publish"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    [heading] = re.findall(r"^## (.*)", changelog, re.MULTILINE)[:1] or [""]
    is_dated = re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", heading)
    if tag is None and not is_dated and heading != f"{__version__} (unreleased)":
        yield f"CHANGELOG.md must start with the section {__version__} (unreleased), or {__version__} - YYYY-MM-DD"
    if tag is not None and not is_dated:
        yield f"CHANGELOG.md must start with the section {__version__} - YYYY-MM-DD"
    if tag is not None and tag != f"v{__version__}":
        yield f"the tag is {tag}, and the version {__version__} wants v{__version__}"


def _source_files() -> set[str]:
    """Return the files of the package that are not ignored, by their names in the wheel."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "dragoman"],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in listed.stdout.splitlines() if (SOURCE / name).exists()}


def main() -> int:
    """Build and check. Report everything that is wrong, and return 1 if something is."""
    parser = argparse.ArgumentParser(description="Build the distributions and check them.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="the folder for them (default: dist)")
    parser.add_argument("--release", action="store_true", help="check version and changelog as well")
    parser.add_argument("--tag", help="the tag that is to be published, such as v0.1.0")
    options = parser.parse_args()
    sdist, wheel = build(options.output)
    faults = [*judge_wheel(wheel), *judge_sdist(sdist)]
    if options.release or options.tag:
        faults.extend(judge_release(options.tag))
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(wheel)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
