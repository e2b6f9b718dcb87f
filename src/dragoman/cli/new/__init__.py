"""`dragoman new`: write a project for the user's own agent."""

import argparse
from pathlib import Path

import msgspec

from dragoman.cli.exit_codes import DONE, FAILED
from dragoman.cli.new.project import ProjectError, write_project
from dragoman.cli.output import print_error, print_json


def main(options: argparse.Namespace) -> int:
    """Write the project into a new directory. Return 1 if it exists or cannot be written."""
    try:
        project = write_project(Path.cwd(), options.name)
    except ProjectError as problem:
        print_error("new", problem)
        return FAILED
    if options.format == "json":
        print_json(msgspec.json.encode({"path": str(project.directory), "files": project.files}))
    else:
        print(f"Wrote {project.directory}: {', '.join(project.files)}.\nNext: {project.next_step}")
    return DONE
