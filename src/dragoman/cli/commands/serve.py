"""The parser of `dragoman serve`."""

import argparse

from dragoman.cli import options as shared
from dragoman.cli.parser import CommandParser

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8421


def build_serve(name: str) -> CommandParser:
    """Return the parser of `serve`."""
    parser = CommandParser(
        name,
        "Put an agent behind one address: a web page for people, and /acp for ACP clients over WebSocket and HTTP. "
        "CMD is any ACP agent, or the name of one; without it, dragoman's own is served.",
        "[OPTIONS] [-- CMD ...]",
        "It prints a link that lets one browser in; Enter prints a fresh one. Programs send the token as "
        "Authorization: Bearer; it is in $DRAGOMAN_HOME/bridge/token (~/.dragoman). Ctrl-C or SIGTERM stops the "
        "bridge and its agents, with exit code 0. DRAGOMAN_LOG=info writes a log to stderr.",
        takes_command=True,
    )
    formats = {"text": "links for people", "json": "url, acp and token for programs, in one line"}
    shared.add_format(parser, formats, had_json=True)
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the link in a browser (default: at a terminal of a machine with a display, not in CI)",
    )
    shared.add_cwd(parser)
    served = parser.add_argument_group("what is served")
    shared.add_agents_file(served)
    served.add_argument("--name", metavar="NAME", help="the agent's name in /acp/NAME (default: after its command)")
    shared.add_model(served)
    shared.add_agent_file(served)
    shared.add_store(served)
    shared.add_runner(served)
    _add_network(parser)
    _add_times(parser)
    return parser


def _add_network(parser: CommandParser) -> None:
    place = parser.add_argument_group("where")
    place.add_argument("--host", metavar="H", default=DEFAULT_HOST, help=f"listen here (default: {DEFAULT_HOST})")
    place.add_argument(
        "--port", metavar="N", type=shared.port, default=DEFAULT_PORT, help=f"0 picks one (default: {DEFAULT_PORT})"
    )
    place.add_argument(
        "--public-url", metavar="URL", help="the address that people open, when a reverse proxy stands in front"
    )
    for option, metavar, words in (
        ("--allow-host", "H", "a further name, or name:port, under which this is reached (repeatable)"),
        ("--allow-origin", "O", "a further origin, such as https://app.example, whose pages may connect (repeatable)"),
    ):
        place.add_argument(option, metavar=metavar, action="append", default=[], help=words)
    beyond = parser.add_argument_group("beyond this machine")
    beyond.add_argument("--tls-cert", metavar="FILE", help="serve https with this certificate (PEM, with its chain)")
    beyond.add_argument("--tls-key", metavar="FILE", help="and this private key (PEM)")
    beyond.add_argument(
        "--insecure-network",
        action="store_true",
        help="listen beyond this machine without TLS: everybody on the way can read the conversation, take the token "
        "and run commands as you",
    )


def _add_times(parser: CommandParser) -> None:
    group = parser.add_argument_group("how long")
    for option, words in (
        (
            "--permission-timeout",
            "refuse what an agent asks after S seconds in which nobody was there to answer (default: 3600)",
        ),
        ("--idle-stop", "stop an agent that nobody has used for S seconds; it starts again when needed (default: 900)"),
        (
            "--open-timeout",
            "give up waiting for an agent that is to open a session and says nothing for S seconds (default: 120)",
        ),
    ):
        group.add_argument(option, metavar="S", type=shared.seconds, help=words)
