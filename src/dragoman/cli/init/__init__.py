"""`dragoman init`: write an agent file or a project of the kit, or show the schema or an editor's configuration."""

import argparse
import json
import os
import sys
from importlib import resources
from pathlib import Path

import msgspec

from dragoman.assistant.profile.choice import FILE_NAME
from dragoman.cli.init.editors import agent_command, attach_command, snippets
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain
from dragoman.files.private_file import next_step
from dragoman.home import BadHome, home


def main(options: argparse.Namespace) -> int:
    """Do one of the four; 1 when a file is there already or cannot be written."""
    as_json = options.format == "json"
    if (options.url or options.token_file) and not options.editor:
        raise UsageError("--url and --token-file are for --editor: say which editor is to attach to that bridge")
    if options.token_file and not options.url:
        raise UsageError("--token-file is for --url; leave it out, or say where the bridge is")
    if options.kit is not None:
        return _start_kit(options.kit, as_json=as_json)
    if options.editor:
        command = attach_command(options.url, options.token_file) if options.url else agent_command()
        return _show(options.editor, command, as_json=as_json)
    if options.schema:
        schema = resources.files("dragoman.assistant.profile") / "agent-file.schema.json"
        print(schema.read_text("utf-8"), end="")
        return 0
    try:
        directory = home() if options.home else Path.cwd()
    except BadHome as error:
        return _fail(str(error))
    return _write(directory / FILE_NAME, as_json=as_json)


def _write(path: Path, *, as_json: bool) -> int:
    template = resources.files("dragoman.assistant.profile") / "template.yaml"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Exclusive, so that a file which appears in between is not overwritten; for the owner, as it may hold a key.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _fail(f"{path} is there already; it is left as it is")
    except OSError as error:
        step = next_step(error, "see that this user may write there")
        return _fail(f"cannot write {path}: {error.strerror}; {step}")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 -- it is a descriptor
            file.write(template.read_bytes())
    except OSError as error:
        path.unlink(missing_ok=True)  # or the next try would find it there already
        return _fail(f"cannot write {path}: {error.strerror}")
    if as_json:
        print(json.dumps({"path": str(path)}))
    else:
        print(f"Wrote {path}.\nEvery line of it is a comment yet: take the # away where you want something else.")
    return 0


def _show(editor: str, command: list[str], *, as_json: bool) -> int:
    shown = snippets(editor, command)
    if as_json:
        print(json.dumps({"editor": editor, "command": command, "snippets": msgspec.to_builtins(shown)}))
        return 0
    # The lines alone go to stdout, so that they can be piped; where they go is said beside them.
    for snippet in shown:
        where = f"{snippet.product}: add this to {snippet.file}; it needs {snippet.needs}, or later."
        print(f"{where} {snippet.hint}", file=sys.stderr, flush=True)
        print(f"{snippet.text}\n", flush=True)
    return 0


def _fail(problem: str) -> int:
    complain("init", problem)
    return 1


def _start_kit(name: str, *, as_json: bool) -> int:
    from dragoman.cli.init.kit import KitProblem, write_project

    try:
        project = write_project(Path.cwd(), name)
    except KitProblem as problem:
        return _fail(str(problem))
    if as_json:
        print(json.dumps({"path": str(project.directory), "files": project.files}))
    else:
        print(f"Wrote {project.directory}: {', '.join(project.files)}.\nNext: {project.next_step}")
    return 0
