"""The options that several commands share, each with one name, one meaning and one help text."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from dragoman.errors import DragomanError
from dragoman.sandbox import SANDBOX_MODES
from dragoman.text import visible
from dragoman.text.match import closest

TOKEN_VARIABLE = "DRAGOMAN_TOKEN"  # noqa: S105 -- the name of the variable, not a token

MAX_PORT = 65535

FOR_PEOPLE_OR_PROGRAMS = {"text": "for people", "json": "for programs"}
"""The formats of commands whose result is not a document."""


class UsageError(DragomanError):
    """The command line is wrong or names something missing. The command prints its usage and exits with code 2."""


class OptionContainer(Protocol):
    """A parser or an argument group."""

    def add_argument(self, *names: str, **settings: Any) -> Any:
        """Add an option."""
        ...


def add_cwd(parser: OptionContainer, *, default: str | None = ".", default_text: str = "the current directory") -> None:
    """Add the option for the session's directory."""
    help_text = f"the session's directory (default: {default_text})"
    parser.add_argument("--cwd", metavar="DIR", default=default, help=help_text)


def add_mcp(parser: OptionContainer) -> None:
    """Add the option for files with MCP servers."""
    _add_repeated(
        parser,
        "--mcp",
        "FILE",
        "a file with MCP servers to offer as the client: .mcp.json, VS Code mcp.json or Zed settings",
    )


def add_policy(parser: OptionContainer) -> None:
    """Add the option for the permission policy."""
    _add_repeated(
        parser,
        "--policy",
        "P",
        "what the agent may do: deny, reads, all, ask, or a rule such as allow:write:docs/**; the first "
        "matching rule applies; default: ask in a terminal, otherwise deny",
    )


def add_format(parser: OptionContainer, formats: Mapping[str, str]) -> None:
    """Add the option for the output format. The first of `formats` is the default."""
    first, *_ = formats
    listed = ", ".join(f"{name} ({description})" if description else name for name, description in formats.items())
    parser.add_argument(
        "--format",
        choices=tuple(formats),
        default=first,
        help=f"output format: {listed}; default: {first}",
    )


def add_output(parser: OptionContainer, content: str = "the result") -> None:
    """Add the option for the output file."""
    parser.add_argument("--output", metavar="FILE", help=f"write {content} to this file (default: stdout)")


def add_agent_file(parser: OptionContainer) -> None:
    """Add the option for the agent file."""
    parser.add_argument(
        "--agent",
        metavar="FILE",
        help="the agent file, for dragoman's own agent (default: dragoman.yaml in the session's directory, else in "
        "$DRAGOMAN_HOME)",
    )


def add_sandbox(parser: OptionContainer) -> None:
    """Add the option for the sandbox of our own agent's commands."""
    parser.add_argument(
        "--sandbox",
        choices=SANDBOX_MODES,
        help="run the commands of dragoman's own agent in a sandbox of the system: workspace (they change only the "
        "session's directories and have no network) or workspace+network (default: the agent file's, else off)",
    )


def add_agents_file(parser: OptionContainer) -> None:
    """Add the option for the file that lists agents."""
    parser.add_argument(
        "--agents-file",
        metavar="FILE",
        help="a file that lists agents and their commands, as $DRAGOMAN_HOME/agents.json",
    )


def add_model(parser: OptionContainer) -> None:
    """Add the option for the model."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the model: guide, script:FILE or PROVIDER:NAME, such as openai:gpt-5 "
        "(default: the agent file's, else $DRAGOMAN_MODEL, else guide, which needs no key and no network). For another "
        "agent, chat and run set its option for the model",
    )


def add_store(parser: OptionContainer, effect: str = "store sessions in this database") -> None:
    """Add the option for the database that stores sessions."""
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        help=f"{effect}, such as postgresql://USER@HOST/NAME, instead of files (default: DRAGOMAN_STORE)",
    )


def add_earlier_session(parser: argparse.ArgumentParser) -> None:
    """Add the options that continue an earlier session."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--session", metavar="ID", help="continue this session")
    group.add_argument(
        "--continue", dest="is_continued", action="store_true", help="continue the newest session of the directory"
    )


def add_url(parser: OptionContainer) -> None:
    """Add the options for the address and token of a running agent."""
    parser.add_argument(
        "--url",
        metavar="URL",
        help="a running agent, such as http://127.0.0.1:8421/acp of dragoman serve; "
        f"the token comes from --token-file or ${TOKEN_VARIABLE}; for this home's own bridge it is found automatically",
    )
    add_token_file(parser)


def add_token_file(parser: OptionContainer) -> None:
    """Add the option for the file with the token for the URL."""
    help_text = f"the file with the token for the URL (default: the token in ${TOKEN_VARIABLE}, else this home's)"
    parser.add_argument("--token-file", metavar="FILE", help=help_text)


def add_runner(parser: OptionContainer) -> None:
    """Add the options that run the agent in a container or on another machine."""
    parser.add_argument(
        "--run-in",
        dest="place",
        metavar="PLACE",
        help="run the agent in a container (docker:IMAGE), on another machine (ssh:HOST), or in a sandbox of this "
        "system, in which it can change only the directory of --cwd (sandbox), with its files and commands",
    )
    _add_repeated(parser, "--writable", "PATH", "another path that an agent in the sandbox may change")
    _add_repeated(parser, "--map", "LOCAL=REMOTE", "map a local directory to its path where --run-in runs the agent")
    _add_repeated(parser, "--pass-env", "NAME", "pass an environment variable to where --run-in runs the agent")


def add_timeout(
    parser: OptionContainer, name: str, content: str, default_s: float | None = None, default_text: str = ""
) -> None:
    """Add an option for a time limit in seconds. Each kind of wait has its own option name."""
    shown = default_text or (f"{default_s:g}" if default_s is not None else "no limit")
    help_text = f"stop waiting for {content} after S seconds (default: {shown})"
    parser.add_argument(name, metavar="S", type=seconds, default=default_s, help=help_text)


def seconds(text: str) -> float:
    """Parse a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got {text!r}")
    return value


def count(text: str) -> int:
    """Parse a number of things."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def port(text: str) -> int:
    """Parse a port number."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {MAX_PORT}, got {text!r}")
    return number


_AGE = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS_S = {"m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def age(text: str) -> timedelta:
    """Parse an age such as 30d."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("expected a number and m, h, d or w, such as 30d")
    return timedelta(seconds=int(found[1]) * _UNITS_S[found[2]])


def pair(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


def word_of(kind: str, known: Iterable[str]) -> Callable[[str], str]:
    """Return a parser that accepts one of these words and suggests the nearest one for others."""
    choices = tuple(known)

    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(describe_unknown(kind, text, choices))
        return text

    return read


def describe_unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return a message that the name is unknown, with the nearest known name or all of them."""
    names = sorted(map(visible, known))
    near = closest(name, names)
    step = f"did you mean {near}?" if near else f"expected one of {', '.join(names)}"
    return f"there is no {kind} {name!r}; {step}"


def _add_repeated(parser: OptionContainer, name: str, metavar: str, help_text: str) -> None:
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=f"{help_text} (repeatable)")
