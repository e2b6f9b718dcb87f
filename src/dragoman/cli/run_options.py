"""The command line of `dragoman run`."""

import argparse

from dragoman.cli.agent_url import add_url_options

_EXIT_CODES = (
    "Exit codes: 0 done, 1 the agent failed, 2 usage, 3 stopped at a limit, 4 refused, 5 cancelled, "
    "6 something that it asked for was not allowed, 124 timeout, 130 killed by a second Ctrl-C."
)


def make_parser() -> argparse.ArgumentParser:
    """Return what reads all that stands before `--`."""
    parser = argparse.ArgumentParser(
        prog="dragoman run",
        usage="%(prog)s [OPTIONS] PROMPT|- [--url URL | -- CMD ...]",
        description="Start an agent, give it one prompt and print its answer as it streams. "
        "CMD is any ACP agent, URL one that runs already; without either, dragoman's own is used.",
        epilog=_EXIT_CODES,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what to say to the agent; - reads it from stdin")
    parser.add_argument(
        "--file", metavar="F", action="append", default=[], help="a file that goes with the prompt (repeatable)"
    )
    parser.add_argument(
        "--mcp",
        metavar="FILE",
        action="append",
        default=[],
        help="MCP servers for the session: a .mcp.json, a VS Code mcp.json or Zed settings (repeatable)",
    )
    parser.add_argument(
        "--policy",
        metavar="P",
        action="append",
        default=[],
        help="what the agent may do: deny, reads, all, ask, or a rule such as allow:write:docs/** (repeatable, the "
        "first that matches wins); default: ask in a terminal, else deny",
    )
    sessions = parser.add_mutually_exclusive_group()
    sessions.add_argument("--session", metavar="ID", help="go on with this session")
    sessions.add_argument(
        "--continue", dest="goes_on", action="store_true", help="go on with the newest session of this directory"
    )
    parser.add_argument("--model", metavar="NAME", help="the model that dragoman's own agent talks with")
    parser.add_argument("--agent", metavar="FILE", help="the agent file of dragoman's own agent")
    add_url_options(parser)
    parser.add_argument(
        "--format",
        choices=("text", "json", "ndjson"),
        default="text",
        help="text streams the answer; json prints one object at the end; ndjson prints the raw conversation",
    )
    parser.add_argument("--timeout", metavar="S", type=_seconds, help="cancel after this many seconds")
    return parser


def _seconds(given: str) -> float:
    seconds = float(given)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


_seconds.__name__ = "number of seconds"  # argparse says "invalid number of seconds value"
