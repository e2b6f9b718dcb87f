"""The options that several commands share, each with one name, one meaning and one help text.

An old spelling that was documented goes on working and is left out of the help: `--out` for `--output`, `--json` for
`--format json`, `--format terminal` for `--format text`.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from dragoman.errors import DragomanError
from dragoman.text.match import closest

TOKEN_VARIABLE = "DRAGOMAN_TOKEN"  # noqa: S105 -- the name of the variable, not a token

MAX_PORT = 65535

FOR_PEOPLE_OR_PROGRAMS = {"text": "for people", "json": "for programs"}
"""The formats of a command whose result is not a document."""


class UsageError(DragomanError):
    """The command line is wrong, or names what is not there: the command ends with its usage and exit code 2."""


class TakesOptions(Protocol):
    """A parser, or a group of it."""

    def add_argument(self, *names: str, **settings: Any) -> Any:
        """Add an option."""
        ...


def add_cwd(parser: TakesOptions, *, default: str | None = ".", default_words: str = "the current one") -> None:
    """Take the directory of the session."""
    words = f"the session's directory (default: {default_words})"
    parser.add_argument("--cwd", metavar="DIR", default=default, help=words)


def add_mcp(parser: TakesOptions) -> None:
    """Take files with MCP servers."""
    _add_repeated(
        parser,
        "--mcp",
        "FILE",
        "MCP servers that the client brings: a .mcp.json, a VS Code mcp.json or Zed settings",
    )


def add_policy(parser: TakesOptions) -> None:
    """Take the policy: the actions that the agent may do."""
    _add_repeated(
        parser,
        "--policy",
        "P",
        "what the agent may do: deny, reads, all, ask, or a rule such as allow:write:docs/**; the first rule that "
        "matches counts; default: ask in a terminal, else deny",
    )


def add_format(
    parser: TakesOptions,
    formats: Mapping[str, str],
    *,
    old_names: Mapping[str, str] | None = None,
    had_json: bool = False,
) -> None:
    """Take the format of the result: the first of `formats` unless another is named.

    `old_names` are those that formats had before; `had_json` takes `--json` too.
    """

    def read(name: str) -> str:
        return (old_names or {}).get(name, name)

    first, *_ = formats
    listed = ", ".join(f"{name} ({words})" if words else name for name, words in formats.items())
    parser.add_argument(
        "--format",
        choices=tuple(formats),
        default=first,
        type=read,
        help=f"how to write the result: {listed}; default: {first}",
    )
    if had_json:
        parser.add_argument("--json", dest="format", action="store_const", const="json", help=argparse.SUPPRESS)


def add_output(parser: TakesOptions, content: str = "the result", default_words: str = "stdout") -> None:
    """Take the file for the result."""
    words = f"write {content} to this file (default: {default_words})"
    parser.add_argument("--output", metavar="FILE", help=words)
    parser.add_argument("--out", dest="output", help=argparse.SUPPRESS)


def add_agent_file(parser: TakesOptions) -> None:
    """Take the agent file."""
    parser.add_argument(
        "--agent",
        metavar="FILE",
        help="the agent file, for dragoman's own agent (default: dragoman.yaml in the session's directory, else in "
        "$DRAGOMAN_HOME)",
    )


def add_agents_file(parser: TakesOptions) -> None:
    """Take a file that names agents."""
    parser.add_argument(
        "--agents", metavar="FILE", help="a file that names agents and their commands, as $DRAGOMAN_HOME/agents.json"
    )


def add_model(parser: TakesOptions) -> None:
    """Take the model."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the model to talk with: guide, script:FILE, anthropic:NAME, openai:NAME, ollama:NAME and the like "
        "(default: the agent file's, else $DRAGOMAN_MODEL, else guide, which needs no key and no network)",
    )


def add_store(parser: TakesOptions, effect: str = "keep sessions in this database") -> None:
    """Take the address of the database that keeps sessions."""
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        help=f"{effect}, such as postgresql://USER@HOST/NAME, in place of files (default: DRAGOMAN_STORE)",
    )


def add_earlier_session(parser: argparse.ArgumentParser) -> None:
    """Take the session to go on with."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--session", metavar="ID", help="go on with this session")
    group.add_argument(
        "--continue", dest="is_continued", action="store_true", help="go on with the newest session of the directory"
    )


def add_url(parser: TakesOptions) -> None:
    """Take the address of an agent that runs already, and its token."""
    parser.add_argument(
        "--url",
        metavar="URL",
        help="an agent that runs already, such as http://127.0.0.1:8421/acp of dragoman serve; "
        f"its token is taken from --token-file or ${TOKEN_VARIABLE}, and that of the bridge of this home is known",
    )
    add_token_file(parser)


def add_token_file(parser: TakesOptions) -> None:
    """Take the file that has the token of an address."""
    words = f"the file that has the token for the URL (default: the token in ${TOKEN_VARIABLE}, else this home's)"
    parser.add_argument("--token-file", metavar="FILE", help=words)


def add_runner(parser: TakesOptions) -> None:
    """Take the place where the agent runs."""
    parser.add_argument(
        "--in",
        dest="place",
        metavar="PLACE",
        help="run the agent there: docker:IMAGE, a container, or ssh:HOST, another machine; it has the files and the "
        "commands of that place",
    )
    _add_repeated(
        parser, "--map", "LOCAL=REMOTE", "a directory of this machine, and its name where --in runs the agent"
    )
    _add_repeated(parser, "--env", "NAME", "a variable of this environment that the agent gets where --in runs it")


def add_timeout(parser: TakesOptions, content: str, default_s: float | None = None, default_words: str = "") -> None:
    """Take the seconds after which to give up waiting."""
    shown = default_words or (f"{default_s:g}" if default_s is not None else "no limit")
    words = f"give up waiting for {content} after S seconds (default: {shown})"
    parser.add_argument("--timeout", metavar="S", type=seconds, default=default_s, help=words)


def seconds(given: str) -> float:
    """Read a number of seconds."""
    value = float(given)
    if not 0 < value < float("inf"):
        raise ValueError(given)
    return value


def port(given: str) -> int:
    """Read the number of a port."""
    number = int(given)
    if not 0 <= number <= MAX_PORT:
        raise ValueError(given)
    return number


_AGE = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS_S = {"m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def age(given: str) -> timedelta:
    """Read a time such as 30d."""
    found = _AGE.fullmatch(given)
    if found is None:
        raise argparse.ArgumentTypeError("expected a number and m, h, d or w, such as 30d")
    return timedelta(seconds=int(found[1]) * _UNITS_S[found[2]])


# argparse says "invalid … value".
seconds.__name__ = "number of seconds"
port.__name__ = "port, 0 to 65535,"


def pair(given: str) -> tuple[str, str]:
    """Read NAME=VALUE."""
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


def word_of(kind: str, known: Iterable[str]) -> Callable[[str], str]:
    """Return a reader for one of these words, which names the nearest for another."""
    words = tuple(known)

    def read(given: str) -> str:
        if given not in words:
            raise argparse.ArgumentTypeError(describe_unknown(kind, given, words))
        return given

    return read


def describe_unknown(kind: str, given: str, known: Iterable[str]) -> str:
    """Say that there is no such command, action, option or name, and which is meant or could be."""
    words = sorted(known)
    near = closest(given, words)
    step = f"did you mean {near}?" if near else f"expected one of {', '.join(words)}"
    return f"there is no {kind} {given!r}; {step}"


def _add_repeated(parser: TakesOptions, name: str, metavar: str, words: str) -> None:
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=f"{words} (repeatable)")
