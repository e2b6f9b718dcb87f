"""`dragoman mcp add` and `dragoman mcp remove`: the servers of an agent file."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.assistant.profile import FILE_NAME, ProfileError
from dragoman.assistant.profile.choice import TSAGENT_FILE_NAMES
from dragoman.assistant.profile.editing import EditRefused, ImpossibleEdit, add_server, remove_server
from dragoman.assistant.profile.settings import PREFIX
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain
from dragoman.home import home

REFUSED = 1


def edit_servers(options: argparse.Namespace) -> int:
    """Add or remove; 1 when the file cannot be changed, 2 when it or the command line is wrong."""
    try:
        return _add(options) if options.action == "add" else _remove(options)
    except (ImpossibleEdit, ProfileError) as problem:
        return _fail(options.action, problem, USAGE)
    except EditRefused as problem:
        return _fail(options.action, problem, REFUSED)


def _add(options: argparse.Namespace) -> int:
    path = _agent_file(options.agent)
    entry = _entry(options, path)
    if path.parent == home():
        _make_home(path)
    add_server(path, options.name, entry)
    print(f"Added {options.name} to {path}.{_ask_again(path)}\n`dragoman mcp` shows whether it works.")
    _warn(entry, path)
    return 0


def _remove(options: argparse.Namespace) -> int:
    path = _agent_file(options.agent)
    remove_server(path, options.name)
    print(f"Removed {options.name} from {path}.{_ask_again(path)}")
    return 0


def _entry(options: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Return the server as the file is to have it; raises UsageError."""
    command: list[str] | None = options.command
    entry: dict[str, Any] = {}
    if command is not None and options.url is None:
        if not command:
            raise UsageError("there is no command after --; name the program of the server")
        if options.header or options.sse:
            raise UsageError("--header and --sse go with a URL; a command takes its secrets from --env")
        entry = {"command": _place(command[0], path), "args": command[1:], "env": dict(options.env)}
    elif options.url is not None and command is None:
        if options.env:
            raise UsageError("--env goes with a command; a server at a URL takes its secrets from --header")
        kind = "sse" if options.sse else None
        entry = {"type": kind, "url": options.url, "headers": dict(options.header)}
    else:
        raise UsageError("expected either a URL or -- and a command")
    entry["include"] = options.include
    entry = {key: value for key, value in entry.items() if value}
    return {**entry, "roots": False} if options.no_roots else entry


def _place(command: str, path: Path) -> str:
    """Return a command for the file: a path was meant from here, and the file reads it from its own directory."""
    if "/" not in command or path.parent == Path.cwd():
        return command
    return str(Path(command).absolute())


def _agent_file(given: str | None) -> Path:
    """Return the file to edit; raises EditRefused where a new one would put another out of use."""
    if given is not None:
        return Path(given).absolute()
    here = Path.cwd() / FILE_NAME
    if here.exists():
        return here
    path = home() / FILE_NAME
    for name in () if path.exists() else TSAGENT_FILE_NAMES:
        if path.with_name(name).exists():
            other = f"{path.with_name(name)} counts now, and would not any more"
            raise EditRefused(str(path), f"{other}; if that is what you want, name the file with --agent")
    return path


def _make_home(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EditRefused(str(path), f"its directory cannot be made: {error.strerror}") from None


def _ask_again(path: Path) -> str:
    is_project = path == Path.cwd() / FILE_NAME and path.parent != home()
    return " As it has changed, a session here asks you to agree to it." if is_project else ""


def _warn(entry: Mapping[str, Any], path: Path) -> None:
    option = "header" if "url" in entry else "env"
    pairs: Mapping[str, str] = entry.get("headers" if "url" in entry else "env", {})
    for name, value in pairs.items():
        if not value.startswith(PREFIX):
            variable = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
            _say(
                f"The value of {name} stands in {path} now, in plain text. If it is a secret, remove the server "
                f"and add it with --{option} {name}={PREFIX}{variable}, which is looked up when it is used."
            )
    if "?" in entry.get("url", ""):
        _say(f"What follows the ? of the address stands in {path} now; a secret is better given with --header.")


def _say(text: str) -> None:
    complain("mcp add", text)


def _fail(verb: str, problem: Exception, code: int) -> int:
    complain(f"mcp {verb}", problem)
    return code
