"""`dragoman mcp add` and `dragoman mcp remove`: the servers of an agent file."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from dragoman.agent.profile import FILE_NAME, EditRefused, ImpossibleEdit, Include, ProfileError
from dragoman.agent.profile.editing import add_server, remove_server
from dragoman.agent.profile.lookup import TSAGENT_FILE_NAMES
from dragoman.agent.profile.secret import PREFIX
from dragoman.cli.home import home
from dragoman.cli.output import complain

REFUSED = 1
BAD_INPUT = 2


def main(verb: str, argv: Sequence[str]) -> int:
    """Add or remove; 1 when the file cannot be changed, 2 when it or the command line is wrong."""
    try:
        return _add(argv) if verb == "add" else _remove(argv)
    except (ImpossibleEdit, ProfileError) as problem:
        return _fail(verb, problem, BAD_INPUT)
    except EditRefused as problem:
        return _fail(verb, problem, REFUSED)


def _add(argv: Sequence[str]) -> int:
    own, command = _split(argv)
    parser = _add_parser()
    options = parser.parse_intermixed_args(own)
    path = _agent_file(options.agent)
    entry = _entry(parser, options, command, path)
    if path.parent == home():
        _make_home(path)
    add_server(path, options.name, entry)
    print(f"Added {options.name} to {path}.{_ask_again(path)}\n`dragoman mcp` shows whether it works.")
    _warn(entry, path)
    return 0


def _remove(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="dragoman mcp remove", description="Remove an MCP server from the agent file; all else stays as it is."
    )
    parser.add_argument("name", metavar="NAME", help="the server's name")
    _add_agent(parser)
    options = parser.parse_intermixed_args(argv)
    path = _agent_file(options.agent)
    remove_server(path, options.name)
    print(f"Removed {options.name} from {path}.{_ask_again(path)}")
    return 0


def _entry(
    parser: argparse.ArgumentParser, options: argparse.Namespace, command: Sequence[str] | None, path: Path
) -> dict[str, Any]:
    """Return the server as the file is to have it; a wrong command line ends the program."""
    entry: dict[str, Any] = {}
    if command is not None and options.url is None:
        if not command:
            parser.error("there is no command after --")
        if options.header or options.sse:
            parser.error("--header and --sse go with a URL; a command takes its secrets from --env")
        entry = {"command": _place(command[0], path), "args": command[1:], "env": dict(options.env)}
    elif options.url is not None and command is None:
        if options.env:
            parser.error("--env goes with a command; a server at a URL takes its secrets from --header")
        kind = "sse" if options.sse else None
        entry = {"type": kind, "url": options.url, "headers": dict(options.header)}
    else:
        parser.error("expected either a URL or -- and a command")
    entry["include"] = options.include
    return {key: value for key, value in entry.items() if value}


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
                f"The value of {name} stands in {path} now, for whoever reads it. If it is a secret, remove the server "
                f"and add it with --{option} {name}={PREFIX}{variable}, which is looked up when it is used."
            )
    if "?" in entry.get("url", ""):
        _say(f"What follows the ? of the address stands in {path} now; a secret is better given with --header.")


def _say(text: str) -> None:
    complain("mcp add", text)


def _fail(verb: str, problem: Exception, code: int) -> int:
    complain(f"mcp {verb}", problem)
    return code


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """Cut a command line at its first `--`."""
    if "--" not in argv:
        return argv, None
    cut = argv.index("--")
    return argv[:cut], argv[cut + 1 :]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


def _add_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman mcp add",
        usage="%(prog)s [-h] NAME [--env NAME=VALUE]... [--include MODE] [--agent FILE] -- COMMAND ARGS...\n"
        "       %(prog)s [-h] NAME [--header NAME=VALUE]... [--sse] [--include MODE] [--agent FILE] URL",
        description="Add an MCP server to the agent file; comments, order and all else in it stay as they are.",
        epilog=f"A VALUE may be {PREFIX}VARIABLE: then it is looked up when it is used, and stands in no file.",
    )
    parser.add_argument("name", metavar="NAME", help="what people and models call it")
    parser.add_argument("url", metavar="URL", nargs="?", help="the address of a server that runs already")
    repeated: dict[str, Any] = {"metavar": "NAME=VALUE", "action": "append", "type": _pair, "default": []}
    parser.add_argument("--env", help="an environment variable for the command", **repeated)
    parser.add_argument("--header", help="an HTTP header for every request to the URL", **repeated)
    parser.add_argument("--sse", action="store_true", help="the URL speaks the older of the two HTTP transports")
    parser.add_argument(
        "--include",
        metavar="MODE",
        choices=get_args(Include),
        help="when its tools are put before the model: always (default), manual (by /include) or agent (by search)",
    )
    _add_agent(parser)
    return parser


def _add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent", metavar="FILE", help=f"the file to edit (default: ./{FILE_NAME} if it is there, else the home's)"
    )
