"""The command line. Each command has one module or folder, imported only when the command runs."""

import os
import stat
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import FAILED, INTERRUPTED, READER_GONE, USAGE
from dragoman.descriptors import complete_outputs, open_missing
from dragoman.errors import DragomanError
from dragoman.home import home_name

if TYPE_CHECKING:
    from dragoman.cli.parser import CommandParser

COMMANDS = {
    "agent": "serve ACP on stdin and stdout, for an editor to start",
    "agents": "list the known agents",
    "attach": "connect an editor, on stdin and stdout, to a running bridge",
    "chat": "chat with an agent in the terminal",
    "check": "check an agent, a client or a recording against the protocol's rules",
    "completion": "print a shell completion script",
    "editor": "print the configuration that makes an editor start dragoman",
    "init": "write an agent file",
    "login": "store the API key of a provider",
    "logout": "delete the API key of a provider",
    "mcp": "show the MCP servers that a session would get, or edit them",
    "new": "create a project for your own agent",
    "run": "send one prompt to an agent and print the answer",
    "schema": "print the JSON schema of the agent file",
    "serve": "serve an agent to browsers and ACP clients",
    "sessions": "list, export, copy or delete an agent's sessions",
    "store": "manage the database that stores sessions",
    "tap": "record and check the traffic between an editor and an agent",
}

WITHOUT_HOME = frozenset({"completion", "editor", "new", "schema"})
"""Commands that neither store anything nor look anything up."""

_MODULES = {"logout": "login"}
"""Commands that live in the module of another command."""

_HELP_OPTIONS = frozenset({"-h", "--help"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    If the reader of stdout goes away (`dragoman … | head`), the command ends silently.
    """
    open_missing()
    complete_outputs()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(arguments)
        finally:
            _flush_stdout()
    except BrokenPipeError:
        _discard_stdout()
        return READER_GONE


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "--help"
    if name in COMMANDS:
        if name not in WITHOUT_HOME and not _HELP_OPTIONS.intersection(arguments):
            warn_of_shared_home()
        return _run_command(name, arguments[1:])
    if name in ("-h", "--help", "help"):
        print(_help())
        return 0
    if name in ("-V", "--version"):
        from dragoman import __version__

        print(f"dragoman {__version__}")
        return 0
    from dragoman.cli.options import describe_unknown

    print(f"dragoman: {describe_unknown('command', name, COMMANDS)}\n\n{_help()}", file=sys.stderr)
    return USAGE


def _run_command(name: str, arguments: Sequence[str]) -> int:
    try:
        if name == "agent" and not arguments:  # Editors start it this way, and argparse costs 1 MB and 5 ms.
            return import_module("dragoman.cli.agent").main()
        from dragoman.cli.commands import build_parser

        return _parse_and_run(name, build_parser(name), arguments)
    except KeyboardInterrupt:  # before or after the command handles Ctrl-C itself
        return INTERRUPTED
    except DragomanError as error:
        from dragoman.cli.output import print_error

        print_error(name, error)
        return FAILED


def _parse_and_run(name: str, parser: "CommandParser", arguments: Sequence[str]) -> int:
    from dragoman.cli.options import UsageError

    parser, options = parser.read(arguments)
    try:
        return import_module(f"dragoman.cli.{_MODULES.get(name, name)}").main(options)
    except UsageError as error:
        parser.error(str(error))


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_stdout()
        step = "check that the disk or pipe behind stdout has space"
        print(f"dragoman: stdout cannot be written: {error.strerror}; {step}", file=sys.stderr)
        raise SystemExit(FAILED) from None


def _discard_stdout() -> None:
    """Send the rest of the buffer to /dev/null. Otherwise Python writes it at exit and complains."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return (
        "dragoman: the session layer of the Agent Client Protocol\n\n"
        f"usage: dragoman COMMAND [OPTIONS]\n\n{rows}\n\n"
        "Run `dragoman COMMAND --help` for details and `dragoman --version` for the version."
    )


def warn_of_shared_home() -> None:
    """Warn on stderr if other users own the home directory or can write to it. Each command calls this once."""
    name = home_name()
    try:
        status = os.stat(name)  # noqa: PTH116 -- pathlib takes 3 ms
    except OSError:
        return  # created later for this user only, or a later error explains it
    problem = _home_problem(status, name)
    if problem is not None and sys.stderr is not None:
        print(
            f"dragoman: warning: {name}, where dragoman stores sessions, keys and approvals, {problem}",
            file=sys.stderr,
        )


def _home_problem(status: os.stat_result, name: str) -> str | None:
    own_directory = "set DRAGOMAN_HOME to a directory of your own"
    if status.st_uid != os.geteuid():
        return f"belongs to another user (uid {status.st_uid}), who can read and change it; {own_directory}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be changed by other users; run `chmod go-w {name}`, or {own_directory}"
    return None
