"""`dragoman mcp login` and `dragoman mcp logout`: the tokens for a server that wants authorisation."""

import argparse
import os
import sys
import webbrowser

from dragoman.cli.agent_choice import choose_directory
from dragoman.cli.mcp.calling import at_address, find_server
from dragoman.cli.mcp.files import BadInput
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, start_log
from dragoman.errors import DragomanError, ServerFailure
from dragoman.event_loop import Stopped, run
from dragoman.mcp.definition import HttpServer

FAILED = 1
BAD_INPUT = 2

SECRET_VARIABLE = "DRAGOMAN_MCP_CLIENT_SECRET"  # noqa: S105 -- the name of a variable
"""The variable with the secret of a client that was registered by hand."""


def log_in_or_out(options: argparse.Namespace) -> int:
    """Get or forget tokens; 1 when the server failed, 2 for bad input."""
    start_log("ERROR")
    command = f"mcp {options.action}"
    try:
        server = _choose(options)
        return _log_out(server) if options.action == "logout" else run(_log_in(server, options))
    except ServerFailure as failure:
        complain(command, failure)
        return FAILED
    except DragomanError as problem:
        complain(command, problem)
        return BAD_INPUT
    except Stopped as stopped:
        return 128 + stopped.signal_number


def _choose(options: argparse.Namespace) -> HttpServer:
    if (options.name is None) is (options.url is None):
        raise UsageError("expected either the name of a server or --url URL")
    server = at_address(options) if options.name is None else find_server(options, options.name)
    if not isinstance(server, HttpServer):
        raise BadInput(f"{server.name} is reached by {server.transport}; only servers at an http address have logins")
    return server


def _log_out(server: HttpServer) -> int:
    from dragoman.mcp.authorisation import TokenFile

    had = TokenFile(server.url).remove()
    print(f"Forgot the tokens for {server.name}." if had else f"There were no tokens for {server.name}.")
    return 0


async def _log_in(server: HttpServer, options: argparse.Namespace) -> int:
    from dragoman.agent.server_pool import IdleHost
    from dragoman.mcp.authorisation import ClientIdentity, TokenFile
    from dragoman.mcp.connector import ServerEnvironment
    from dragoman.mcp.loopback_authoriser import open_loopback
    from dragoman.mcp.server import ServerConnection
    from dragoman.proc import Supervisor

    async def supervise() -> Supervisor:
        raise ServerFailure("a server at an address has no process")

    cwd = str(choose_directory(options.cwd))
    identity = ClientIdentity(options.client_metadata, options.client_id, os.environ.get(SECRET_VARIABLE))
    tokens = TokenFile(server.url)
    async with open_loopback(_show, identity) as authoriser:
        environment = ServerEnvironment(cwd, supervise, authoriser=authoriser)
        connection = ServerConnection(server, environment, IdleHost(cwd), lambda _: None)
        connection.start()
        try:
            await connection.settled()
            if connection.state != "ready":
                raise ServerFailure(f"{server.name} did not get ready: {connection.reason}")
        finally:
            await connection.stop()
    done = f"Logged in to {server.name}." if tokens.path.exists() else f"{server.name} wants no login."
    print(done)
    return 0


def _show(server: str, url: str) -> None:
    print(f"Agree to the use of {server} on this page:\n\n  {url}\n", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        webbrowser.open(url)
