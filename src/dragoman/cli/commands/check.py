"""The parsers of `dragoman check` and its actions."""

from dragoman.cli import options as shared
from dragoman.cli.parser import CommandParser

_EXIT_CODES = (
    "Exit codes: 0 nothing failed, 1 a required or recommended rule failed (--level must: only required "
    "ones), 2 checker or usage error."
)


def build_check(name: str) -> CommandParser:
    """Return the parser of `check`, including its actions."""
    parser = CommandParser(
        name,
        "Check an agent, a client or a recording against the rules of the Agent Client Protocol.",
        "ACTION [OPTIONS]",
        _EXIT_CODES,
        needs_action=True,
    )
    parser.add_action("agent", "drive an agent as its client", _check_agent(f"{name} agent"))
    parser.add_action("client", "act as a difficult agent and check a client", _check_client(f"{name} client"))
    parser.add_action("trace", "check a recording", _check_trace(f"{name} trace"))
    parser.add_action("matrix", "compare several reports", _check_matrix(f"{name} matrix"))
    parser.add_action("rule", "explain a rule", _check_rule(f"{name} rule"))
    return parser


def _check_agent(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Drive an agent as a client would, including invalid input, and check its behaviour. "
        "CMD is any ACP agent, or the name of one; without it, dragoman's own is checked.",
        "[OPTIONS] [--url URL | -- CMD ...]",
        _EXIT_CODES,
        takes_command=True,
    )
    shared.add_url(parser)
    parser.add_argument("--prompt", metavar="TEXT", action="append", help="a prompt to send (repeatable)")
    parser.add_argument("--script", metavar="FILE", help="turns with their answers to permission requests, as YAML")
    parser.add_argument("--no-prompt", action="store_true", help="send no prompts, so no key is needed")
    parser.add_argument("--auth", metavar="ID", help="the method to authenticate with before the first session")
    parser.add_argument(
        "--no-capability",
        metavar="CAPABILITY",
        action="append",
        choices=["fs", "terminal", "elicitation"],
        help="do not offer fs, terminal or elicitation to it (repeatable)",
    )
    shared.add_timeout(parser, "--start-timeout", "the agent to start and answer initialize", 15.0)
    shared.add_timeout(parser, "--answer-timeout", "the answer to a request other than a prompt", 5.0)
    shared.add_timeout(parser, "--turn-timeout", "the end of a turn", 60.0)
    _add_protocol(parser, "an agent")
    _add_report_options(parser)
    return parser


def _add_protocol(parser: CommandParser, peer: str) -> None:
    parser.add_argument(
        "--protocol",
        choices=["1", "2", "both"],
        help="the version of ACP to judge by; version 2 is a draft (default: 1, and "
        f"also 2 for {peer} that supports it)",
    )


def _check_client(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Act as an agent that behaves in unusual ways, and check what the client sends and how it reacts. "
        "CMD starts the client, once per scene. {agent} in it is replaced by the agent's "
        "command; without it, the command is appended.",
        "[OPTIONS] (--listen [PORT] | -- CMD ...)",
        _EXIT_CODES,
        takes_command=True,
    )
    parser.add_argument(
        "--listen",
        metavar="PORT",
        nargs="?",
        type=shared.port,
        const=0,
        help="wait until Ctrl-C for a client that you start yourself",
    )
    shared.add_timeout(parser, "--exit-timeout", "the client to exit after each start", 30.0)
    _add_protocol(parser, "a client")
    _add_report_options(parser)
    return parser


def _check_trace(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Check a recorded conversation. FILE is a recording of dragoman's tap or client, acpx or the Rust conductor, "
        "or any JSON messages, one per line. It may be gzipped.",
        "FILE [OPTIONS]",
        _EXIT_CODES,
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "--role", choices=["agent", "client", "both"], default="both", help="the side to judge (default: both)"
    )
    _add_report_options(parser)
    return parser


def _check_matrix(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Print a Markdown table that compares several reports written by --format json.",
        "[OPTIONS] NAME=FILE ...",
    )
    parser.add_argument("reports", metavar="NAME=FILE", nargs="+", help="a column name and its report")
    shared.add_output(parser)
    return parser


def _check_rule(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Explain rules: what each requires, its clause in the specification and how to fix a violation. Without an ID, "
        "list all rules.",
        "[ID ...]",
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="the id of a rule, such as ACP-WIRE-001")
    return parser


def _add_report_options(parser: CommandParser) -> None:
    from dragoman.check.reports import FORMATS

    shared.add_format(parser, FORMATS)
    shared.add_output(parser, "the report")
    parser.add_argument("--verbose", action="store_true", help="text: also show what passed and what was not exercised")
    parser.add_argument("--report-name", metavar="NAME", help="the name in the report")
    parser.add_argument(
        "--level",
        choices=["must", "should"],
        default="should",
        help="the lowest rule level that counts as a failure (default: should)",
    )
    parser.add_argument("--baseline", metavar="FILE", help="known failures, which are shown but do not count")
    parser.add_argument("--write-baseline", action="store_true", help="write the current failures to the baseline")
