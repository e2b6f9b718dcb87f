"""`dragoman init`: write a commented agent file."""

import argparse
import os
from importlib import resources
from pathlib import Path

import msgspec

from dragoman.assistant.profile.choice import FILE_NAME
from dragoman.cli.exit_codes import DONE, FAILED
from dragoman.cli.output import print_error, print_json
from dragoman.files.private_file import next_step
from dragoman.home import InvalidHomeError, home


def main(options: argparse.Namespace) -> int:
    """Write the file. Return 1 if it exists or cannot be written."""
    try:
        directory = home() if options.home else Path.cwd()
    except InvalidHomeError as error:
        return _fail(str(error))
    return _write(directory / FILE_NAME, as_json=options.format == "json")


def _write(path: Path, *, as_json: bool) -> int:
    template = resources.files("dragoman.assistant.profile") / "template.yaml"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # O_EXCL avoids overwriting a file that appears at this moment. Mode 0600, because the file may hold a key.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _fail(f"{path} already exists and was not changed")
    except OSError as error:
        step = next_step(error, "check that you can write there")
        return _fail(f"cannot write {path}: {error.strerror}; {step}")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 -- takes a descriptor
            file.write(template.read_bytes())
    except OSError as error:
        path.unlink(missing_ok=True)  # otherwise the next attempt finds an incomplete file
        return _fail(f"cannot write {path}: {error.strerror}")
    if as_json:
        print_json(msgspec.json.encode({"path": str(path)}))
    else:
        print(f"Wrote {path}.\nEvery line is a comment. Remove the # from the settings you want to change.")
    return DONE


def _fail(problem: str) -> int:
    print_error("init", problem)
    return FAILED
