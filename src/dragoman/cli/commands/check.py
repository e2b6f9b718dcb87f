"""The parsers of `dragoman check` and its actions."""

from dragoman.cli import options as shared
from dragoman.cli.parser import CommandParser

_EXIT_CODES = (
    "Exit codes: 0 nothing failed, 1 a rule failed that the specification demands or recommends (--level must: demands "
    "alone), 2 an error of the checker, or of its use."
)


def build_check(name: str) -> CommandParser:
    """Return the parser of `check`, with its actions below it."""
    parser = CommandParser(
        name,
        "Judge an agent, a client or a recorded conversation by the rules of the Agent Client Protocol.",
        "ACTION [OPTIONS]",
        _EXIT_CODES,
        needs_action=True,
    )
    parser.add_action("agent", "drive an agent as its client", _check_agent(f"{name} agent"))
    parser.add_action("client", "be an agent that tries a client's patience", _check_client(f"{name} client"))
    parser.add_action("trace", "judge a recorded conversation", _check_trace(f"{name} trace"))
    parser.add_action("matrix", "put several reports side by side", _check_matrix(f"{name} matrix"))
    parser.add_action("rule", "explain a rule", _check_rule(f"{name} rule"))
    return parser


def _check_agent(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Drive an agent as its client would, also with what no good client sends, and judge what it says. "
        "CMD is any ACP agent, or the name of one; without it, dragoman's own is judged.",
        "[OPTIONS] [--url URL | -- CMD ...]",
        _EXIT_CODES,
        takes_command=True,
    )
    shared.add_url(parser)
    parser.add_argument("--prompt", metavar="TEXT", action="append", help="what to ask it (repeatable)")
    parser.add_argument("--script", metavar="FILE", help="turns with their answers to permission requests, as YAML")
    parser.add_argument("--no-prompt", action="store_true", help="ask it nothing: no key is needed then")
    parser.add_argument("--auth", metavar="ID", help="the method to authenticate with before the first session")
    parser.add_argument(
        "--without",
        metavar="CAPABILITY",
        action="append",
        choices=["fs", "terminal", "elicitation"],
        help="do not offer fs, terminal or elicitation to it (repeatable)",
    )
    parser.add_argument(
        "--start-timeout",
        metavar="S",
        type=shared.seconds,
        default=15.0,
        help="seconds to start and answer initialize (15)",
    )
    shared.add_timeout(parser, "a plain answer", 5.0)
    parser.add_argument(
        "--turn-timeout", metavar="S", type=shared.seconds, default=60.0, help="seconds for a turn (60)"
    )
    _add_protocol(parser, "an agent")
    _add_report_options(parser)
    return parser


def _add_protocol(parser: CommandParser, peer: str) -> None:
    parser.add_argument(
        "--protocol",
        choices=["1", "2", "both"],
        help=f"the version of ACP to judge by; version 2 is a draft (1, and 2 too for {peer} that speaks it)",
    )


def _check_client(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Be an agent with a script of surprises, and judge what the client sends and how it takes them. "
        "CMD is started once for each of them; {agent} in it is where the command of the agent goes, else at its end.",
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
        help="wait for a client that somebody points at us, until Ctrl-C",
    )
    shared.add_timeout(parser, "the client to end, each time it is started,", 30.0)
    _add_protocol(parser, "a client")
    _add_report_options(parser)
    return parser


def _check_trace(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Judge a recorded conversation: of dragoman's tap or client, of acpx, of the Rust conductor, or any JSON "
        "messages, one a line, with or without their direction. It may be gzipped.",
        "FILE [OPTIONS]",
        _EXIT_CODES,
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "--role", choices=["agent", "client", "both"], default="both", help="which side to judge (both)"
    )
    _add_report_options(parser)
    return parser


def _check_matrix(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Write one Markdown table of several reports that --format json has written.",
        "[OPTIONS] NAME=FILE ...",
    )
    parser.add_argument("reports", metavar="NAME=FILE", nargs="+", help="the name of a column, and its report")
    shared.add_output(parser)
    return parser


def _check_rule(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Explain rules: the duty, the clause of the specification, the occasion to break it and the way to mend it.",
        "ID ...",
    )
    parser.add_argument("ids", metavar="ID", nargs="+", help="the id of a rule, such as ACP-WIRE-001")
    return parser


def _add_report_options(parser: CommandParser) -> None:
    from dragoman.check.reports import FORMATS

    formats = {"text" if name == "terminal" else name: words for name, words in FORMATS.items()}
    shared.add_format(parser, formats, old_names={"terminal": "text"})
    shared.add_output(parser, "the report")
    parser.add_argument("--verbose", action="store_true", help="text: show what passed and what was not exercised too")
    parser.add_argument("--name", metavar="NAME", help="what the report calls it")
    parser.add_argument(
        "--level", choices=["must", "should"], default="should", help="the least grave rules that count (should)"
    )
    parser.add_argument("--baseline", metavar="FILE", help="known failures, which are shown and do not count")
    parser.add_argument("--write-baseline", action="store_true", help="make what fails now the baseline")
