"""The command line of `dragoman serve`."""

import argparse

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8421

MAX_PORT = 65535


def make_parser() -> argparse.ArgumentParser:
    """Return what reads all that stands before `--`."""
    parser = argparse.ArgumentParser(
        prog="dragoman serve",
        usage="%(prog)s [OPTIONS] [-- CMD ...]",
        description="Put an agent behind one address: a web page for people, and /acp for ACP clients over WebSocket "
        "and HTTP. CMD is any ACP agent; without it, dragoman's own is served.",
        epilog="It prints a link that lets one browser in; Enter prints a fresh one. Programs send the token as "
        "Authorization: Bearer; it is in $DRAGOMAN_HOME/bridge/token (~/.dragoman). Ctrl-C or SIGTERM stops the "
        "bridge and its agents, with exit code 0. DRAGOMAN_LOG=info writes a log to stderr.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print url, acp and token for a program, as one JSON line")
    parser.add_argument("--cwd", metavar="DIR", default=".", help="where new sessions begin (default: here)")
    _add_agents(parser)
    _add_place(parser)
    _add_network(parser)
    _add_times(parser)
    return parser


def _add_agents(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is served")
    group.add_argument("--agents", metavar="FILE", help="serve the agents of this file, each by its name")
    group.add_argument("--name", metavar="NAME", help="the agent's name in /acp/NAME (default: after its command)")
    group.add_argument("--model", metavar="NAME", help="the model that dragoman's own agent talks with")
    group.add_argument("--agent", metavar="FILE", help="the agent file of dragoman's own agent")


def _add_place(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where")
    group.add_argument("--host", metavar="H", default=DEFAULT_HOST, help=f"listen here (default: {DEFAULT_HOST})")
    group.add_argument(
        "--port", metavar="N", type=_port, default=DEFAULT_PORT, help=f"0 picks one (default: {DEFAULT_PORT})"
    )
    group.add_argument(
        "--public-url", metavar="URL", help="the address that people open, when a reverse proxy stands in front"
    )
    group.add_argument(
        "--allow-host",
        metavar="H",
        action="append",
        default=[],
        help="a further name, or name:port, under which this is reached (repeatable)",
    )
    group.add_argument(
        "--allow-origin",
        metavar="O",
        action="append",
        default=[],
        help="a further origin, such as https://app.example, whose pages may connect (repeatable)",
    )


def _add_network(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("beyond this machine")
    group.add_argument("--tls-cert", metavar="FILE", help="serve https with this certificate (PEM, with its chain)")
    group.add_argument("--tls-key", metavar="FILE", help="and this private key (PEM)")
    group.add_argument(
        "--insecure-network",
        action="store_true",
        help="listen beyond this machine without TLS: everybody on the way can read the conversation, take the token "
        "and run commands as you",
    )


def _add_times(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how long")
    group.add_argument(
        "--permission-timeout",
        metavar="S",
        type=_seconds,
        help="refuse what an agent asks after S seconds in which nobody was there to answer (default: 3600)",
    )
    group.add_argument(
        "--idle-stop",
        metavar="S",
        type=_seconds,
        help="stop an agent that nobody has used for S seconds; it starts again when needed (default: 900)",
    )
    group.add_argument(
        "--open-timeout",
        metavar="S",
        type=_seconds,
        help="give up waiting for an agent that is to open a session and says nothing for S seconds (default: 120)",
    )


def _port(given: str) -> int:
    port = int(given)
    if not 0 <= port <= MAX_PORT:
        raise ValueError
    return port


def _seconds(given: str) -> float:
    seconds = float(given)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


_port.__name__ = "port, 0 to 65535,"  # argparse says "invalid … value"
_seconds.__name__ = "number of seconds"
