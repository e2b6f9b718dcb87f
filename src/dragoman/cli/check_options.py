"""The command line of `dragoman check`."""

import argparse
from collections.abc import Callable

from dragoman.check.reports import FORMATS
from dragoman.cli.agent_url import add_url_options

AddParser = Callable[..., argparse.ArgumentParser]

EPILOG = (
    "Exit codes: 0 nothing failed, 1 a rule failed that the specification demands or recommends (--level must: demands "
    "alone), 2 an error of the checker, or of its use."
)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all its actions."""
    parser = argparse.ArgumentParser(
        prog="dragoman check",
        description="Judge an agent, a client or a recorded conversation by the rules of the Agent Client Protocol.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_agent(actions.add_parser)
    _add_client(actions.add_parser)
    _add_trace(actions.add_parser)
    _add_matrix(actions.add_parser)
    return parser


def _add_agent(add: AddParser) -> None:
    agent = add(
        "agent",
        help="drive an agent as its client",
        usage="dragoman check agent [OPTIONS] [--url URL | -- CMD ...]",
        description="Drive an agent as its client would, also with what no good client sends, and judge what it says. "
        "CMD is any ACP agent; without it, dragoman's own is judged.",
        epilog=EPILOG,
    )
    add_url_options(agent)
    agent.add_argument("--prompt", metavar="TEXT", action="append", help="what to ask it; may be given several times")
    agent.add_argument("--script", metavar="FILE", help="turns with their answers to permission requests, as YAML")
    agent.add_argument("--no-prompt", action="store_true", help="ask it nothing: no key is needed then")
    agent.add_argument("--auth", metavar="ID", help="the method to authenticate with before the first session")
    agent.add_argument(
        "--without",
        metavar="CAPABILITY",
        action="append",
        choices=["fs", "terminal", "elicitation"],
        help="do not offer fs, terminal or elicitation to it; may be given several times",
    )
    agent.add_argument(
        "--start-timeout", metavar="S", type=float, default=15.0, help="seconds to start and answer initialize (15)"
    )
    agent.add_argument("--timeout", metavar="S", type=float, default=5.0, help="seconds for a plain answer (5)")
    agent.add_argument("--turn-timeout", metavar="S", type=float, default=60.0, help="seconds for a turn (60)")
    _add_report_options(agent)


def _add_client(add: AddParser) -> None:
    client = add(
        "client",
        help="be an agent that tries a client's patience",
        usage="dragoman check client [OPTIONS] (--listen [PORT] | -- CMD ...)",
        description="Be an agent with a script of surprises, and judge what the client sends and how it takes them. "
        "CMD is started once for each of them; {agent} in it is where the command of the agent goes, else at its end.",
        epilog=EPILOG,
    )
    client.add_argument(
        "--listen",
        metavar="PORT",
        nargs="?",
        type=int,
        const=0,
        help="wait for a client that somebody points at us, until Ctrl-C",
    )
    client.add_argument("--timeout", metavar="S", type=float, default=30.0, help="seconds for it to end each time (30)")
    _add_report_options(client)


def _add_trace(add: AddParser) -> None:
    trace = add(
        "trace",
        help="judge a recorded conversation",
        usage="dragoman check trace FILE [OPTIONS]",
        description="Judge a recorded conversation: of dragoman's tap or client, of acpx, of the Rust conductor, or "
        "any JSON messages, one a line, with or without their direction. It may be gzipped.",
        epilog=EPILOG,
    )
    trace.add_argument("file", metavar="FILE", help="the recording")
    trace.add_argument("--role", choices=["agent", "client", "both"], default="both", help="whom to judge (both)")
    _add_report_options(trace)


def _add_matrix(add: AddParser) -> None:
    matrix = add(
        "matrix",
        help="put several reports side by side",
        usage="dragoman check matrix [OPTIONS] NAME=FILE ...",
        description="Write one Markdown table of several reports that --format json has written.",
    )
    matrix.add_argument("reports", metavar="NAME=FILE", nargs="+", help="what a column is called, and its report")
    matrix.add_argument("--output", metavar="FILE", help="write to a file (default: stdout)")


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=list(FORMATS), default="terminal", help="how to write it (terminal)")
    parser.add_argument("--output", metavar="FILE", help="write the report to a file (default: stdout)")
    parser.add_argument("--verbose", action="store_true", help="terminal: show what passed and what was not exercised")
    parser.add_argument("--name", metavar="NAME", help="what the report calls it")
    parser.add_argument(
        "--level", choices=["must", "should"], default="should", help="the least grave rules that count (should)"
    )
    parser.add_argument("--baseline", metavar="FILE", help="known failures, which are shown and do not count")
    parser.add_argument("--write-baseline", action="store_true", help="make what fails now the baseline")
