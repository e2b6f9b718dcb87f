"""The project that `dragoman new NAME` writes: a program, its tests, a pyproject.toml and a README."""

import re
import sys
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

from dragoman import __version__
from dragoman.cli.editor import snippets
from dragoman.errors import DragomanError
from dragoman.files.private_file import next_step

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class ProjectError(DragomanError):
    """The project cannot be written."""


class KitProject(NamedTuple):
    """A written project."""

    directory: Path
    files: list[str]
    next_step: str


def write_project(parent: Path, name: str) -> KitProject:
    """Write an agent project into a new directory of the same name.

    Raises ProjectError and leaves nothing behind on failure.
    """
    if not _NAME.fullmatch(name):
        raise ProjectError(
            f"{name!r} is not a valid agent name; use lower-case letters, digits and single hyphens, as in my-notes"
        )
    directory = parent / name
    module = f"{name.replace('-', '_')}_agent"
    files = {path: template.substitute(_values(name, module, directory)) for path, template in _templates(module)}
    try:
        directory.mkdir()
    except FileExistsError:
        raise ProjectError(f"{directory} already exists and was not changed") from None
    except OSError as error:
        raise ProjectError(_cannot_write(directory, error)) from None
    written: list[Path] = []
    try:
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(exist_ok=True)
            written.append(target)
            target.write_text(text, "utf-8")
    except OSError as error:
        _remove(directory, written)
        raise ProjectError(_cannot_write(directory, error)) from None
    return KitProject(directory, list(files), f"cd {name}, then see README.md; python {module}.py is the agent")


def _templates(module: str) -> list[tuple[str, Template]]:
    folder = resources.files("dragoman.cli.new") / "kit_project"
    names = {
        f"{module}.py": "agent.py.template",
        f"tests/test_{module}.py": "test_agent.py.template",
        "pyproject.toml": "pyproject.toml.template",
        "README.md": "README.md.template",
    }
    return [(path, Template((folder / source).read_text("utf-8"))) for path, source in names.items()]


def _values(name: str, module: str, directory: Path) -> dict[str, str]:
    python = str(Path(sys.executable).absolute())
    command = [python, str(directory / f"{module}.py")]
    [zed] = snippets("zed", command, name)
    return {
        "name": name,
        "module": module,
        "title": name.replace("-", " ").capitalize(),
        "version": __version__,
        "zed_file": zed.file,
        "zed": zed.text,
    }


def _cannot_write(directory: Path, error: OSError) -> str:
    return f"cannot write {directory}: {error.strerror}; {next_step(error, 'check that you can write there')}"


def _remove(directory: Path, files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
    for folder in {file.parent for file in files} - {directory}:
        folder.rmdir()
    directory.rmdir()
