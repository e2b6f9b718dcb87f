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
        "Serve an agent at one address: a web page for people, and /acp for ACP clients over WebSocket and HTTP. "
        "CMD is any ACP agent, or the name of one; without it, dragoman's own is served.",
        "[OPTIONS] [-- CMD ...]",
        "It prints a link that signs in one browser. Press Enter for a new one. Programs send the token as "
        "Authorization: Bearer; it is in $DRAGOMAN_HOME/bridge/token (~/.dragoman). Ctrl-C or SIGTERM stops the "
        "bridge and its agents, with exit code 0. DRAGOMAN_LOG=info writes a log to stderr.",
        takes_command=True,
    )
    formats = {"text": "links for people", "json": "url, acp and token for programs, in one line"}
    shared.add_format(parser, formats)
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the link in a browser (default: in a terminal with a display, not in CI)",
    )
    shared.add_cwd(parser)
    served = parser.add_argument_group("what to serve")
    shared.add_agents_file(served)
    served.add_argument(
        "--agent-name",
        metavar="NAME",
        help="the agent's name on the bridge, as in /acp/NAME (default: after its command)",
    )
    shared.add_model(served)
    shared.add_agent_file(served)
    shared.add_sandbox(served)
    shared.add_store(served)
    shared.add_runner(served)
    _add_network(parser)
    _add_times(parser)
    return parser


def _add_network(parser: CommandParser) -> None:
    place = parser.add_argument_group("address")
    place.add_argument(
        "--host", metavar="H", default=DEFAULT_HOST, help=f"the address to listen on (default: {DEFAULT_HOST})"
    )
    place.add_argument(
        "--port",
        metavar="N",
        type=shared.port,
        default=DEFAULT_PORT,
        help=f"the port; 0 picks a free one (default: {DEFAULT_PORT})",
    )
    place.add_argument("--public-url", metavar="URL", help="the public URL, if a reverse proxy is in front")
    for option, metavar, help_text in (
        ("--allow-host", "H", "another allowed host name or name:port (repeatable)"),
        ("--allow-origin", "O", "another allowed origin such as https://app.example (repeatable)"),
    ):
        place.add_argument(option, metavar=metavar, action="append", default=[], help=help_text)
    beyond = parser.add_argument_group("access from other machines")
    beyond.add_argument("--tls-cert", metavar="FILE", help="serve https with this certificate (PEM, with its chain)")
    beyond.add_argument("--tls-key", metavar="FILE", help="the private key of the certificate (PEM)")
    beyond.add_argument(
        "--insecure-network",
        action="store_true",
        help="listen beyond this machine without TLS: anyone on the network path can read the conversation, steal "
        "the token and run commands as you",
    )


def _add_times(parser: CommandParser) -> None:
    group = parser.add_argument_group("time limits")
    for option, help_text in (
        (
            "--permission-timeout",
            "deny permission requests after S seconds without a viewer (default: 3600)",
        ),
        (
            "--idle-timeout",
            "stop an agent after S idle seconds; it restarts when needed (default: 900)",
        ),
        (
            "--open-timeout",
            "stop waiting for an agent that sends nothing for S seconds while it opens a session (default: 120)",
        ),
    ):
        group.add_argument(option, metavar="S", type=shared.seconds, help=help_text)
