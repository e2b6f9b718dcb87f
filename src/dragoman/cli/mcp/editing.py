"""`dragoman mcp add` and `dragoman mcp remove`: the servers of an agent file."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.assistant.profile import FILE_NAME, ProfileError
from dragoman.assistant.profile.choice import TSAGENT_FILE_NAMES
from dragoman.assistant.profile.editing import InvalidEditError, ProfileEditError, add_server, remove_server
from dragoman.assistant.profile.settings import PREFIX
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error
from dragoman.home import home

REFUSED = 1


def edit_servers(options: argparse.Namespace) -> int:
    """Add or remove a server. Return 1 if the file cannot be changed, 2 if it or the command line is invalid."""
    try:
        return _add(options) if options.action == "add" else _remove(options)
    except (InvalidEditError, ProfileError) as problem:
        return _fail(options.action, problem, USAGE)
    except ProfileEditError as problem:
        return _fail(options.action, problem, REFUSED)


def _add(options: argparse.Namespace) -> int:
    path = _agent_file(options.agent)
    entry = _entry(options, path)
    if path.parent == home():
        _make_home(path)
    add_server(path, options.name, entry)
    print(f"Added {options.name} to {path}.{_approval_note(path)}\n`dragoman mcp` shows its state.")
    _warn(entry, path)
    return 0


def _remove(options: argparse.Namespace) -> int:
    path = _agent_file(options.agent)
    remove_server(path, options.name)
    print(f"Removed {options.name} from {path}.{_approval_note(path)}")
    return 0


def _entry(options: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Return the server's entry for the file. Raises UsageError."""
    # A server is either a command with its environment or a URL with its headers. Empty settings are not written.
    command: list[str] | None = options.command
    entry: dict[str, Any] = {}
    if command is not None and options.url is None:
        if not command:
            raise UsageError("no command after --; add the server's command")
        if options.header or options.sse:
            raise UsageError("--header and --sse need a URL; pass secrets of a command with --env")
        entry = {"command": _place(command[0], path), "args": command[1:], "env": dict(options.env)}
    elif options.url is not None and command is None:
        if options.env:
            raise UsageError("--env needs a command; pass secrets of a URL with --header")
        kind = "sse" if options.sse else None
        entry = {"type": kind, "url": options.url, "headers": dict(options.header)}
    else:
        raise UsageError("expected either a URL or -- and a command")
    entry["include"] = options.include
    entry = {key: value for key, value in entry.items() if value}
    return {**entry, "roots": False} if options.no_roots else entry


def _place(command: str, path: Path) -> str:
    """Return the command for the file. A path is made absolute, because the file resolves it elsewhere."""
    if "/" not in command or path.parent == Path.cwd():
        return command
    return str(Path(command).absolute())


def _agent_file(value: str | None) -> Path:
    """Return the file to edit. Raises ProfileEditError if a new file would hide an existing agent file."""
    if value is not None and not Path(value).is_dir():
        return Path(value).absolute()
    here = Path.cwd() / FILE_NAME
    if value is None and here.exists():
        return here
    path = (home() if value is None else Path(value).absolute()) / FILE_NAME
    for name in () if path.exists() else TSAGENT_FILE_NAMES:
        if path.with_name(name).exists():
            other = f"{path.with_name(name)} is the current agent file and would no longer be used"
            raise ProfileEditError(str(path), f"{other}; to create it anyway, pass its path with --agent")
    return path


def _make_home(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ProfileEditError(str(path), f"its directory cannot be created: {error.strerror}") from None


def _approval_note(path: Path) -> str:
    is_project = path == Path.cwd() / FILE_NAME and path.parent != home()
    return " Because it changed, the next session here asks you to approve it." if is_project else ""


def _warn(entry: Mapping[str, Any], path: Path) -> None:
    option = "header" if "url" in entry else "env"
    pairs: Mapping[str, str] = entry.get("headers" if "url" in entry else "env", {})
    for name, value in pairs.items():
        if not value.startswith(PREFIX):
            variable = "".join(letter if letter.isalnum() else "_" for letter in name).upper()
            _say(
                f"{name} is now stored in {path} as plain text. If it is a secret, remove the server and add "
                f"it again with --{option} {name}={PREFIX}{variable}, which is read when the server starts."
            )
    if "?" in entry.get("url", ""):
        _say(f"The query of the URL is now stored in {path}; pass secrets with --header instead.")


def _say(text: str) -> None:
    print_error("mcp add", text)


def _fail(verb: str, problem: Exception, code: int) -> int:
    print_error(f"mcp {verb}", problem)
    return code
