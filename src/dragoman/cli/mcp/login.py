"""`dragoman mcp login` and `dragoman mcp logout`: store or delete the tokens for an MCP server."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.agent_choice import choose_directory
from dragoman.cli.browser import open_browser, should_open
from dragoman.cli.exit_codes import FAILED, USAGE
from dragoman.cli.mcp.calling import find_server, server_at_url
from dragoman.cli.mcp.files import InvalidInputError
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, print_json, start_log
from dragoman.errors import DragomanError, McpServerError
from dragoman.event_loop import run
from dragoman.mcp.definition import HttpServer, describe

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import ClientIdentity, Consent, ConsentResult
    from dragoman.mcp.callback import LoopbackCallback

SECRET_VARIABLE = "DRAGOMAN_MCP_CLIENT_SECRET"  # noqa: S105 -- the name of a variable
"""The variable with the secret of a manually registered client."""

_WORDS = {
    "logged_in": "Logged in to {name}.",
    "not_needed": "{name} needs no login.",
    "logged_out": "Deleted the tokens for {name}.",
    "no_tokens": "No tokens were stored for {name}.",
}


def log_in_or_out(options: argparse.Namespace) -> int:
    """Store or delete tokens. Return 1 if the server failed, 2 for bad input."""
    start_log("ERROR")
    command = f"mcp {options.action}"
    try:
        server = _choose(options)
        outcome = run(_log_out(server) if options.action == "logout" else _log_in(server, options))
    except McpServerError as failure:
        print_error(command, failure)
        return FAILED
    except DragomanError as problem:
        print_error(command, problem)
        return USAGE
    if options.format == "json":
        print_json(msgspec.json.encode({"server": server.name, "address": describe(server), "outcome": outcome}))
    else:
        print(_WORDS[outcome].format(name=server.name))
    return 0


def _choose(options: argparse.Namespace) -> HttpServer:
    if (options.name is None) is (options.server_url is None):
        raise UsageError("expected either the name of a server or --server-url URL")
    server = server_at_url(options) if options.name is None else find_server(options, options.name)
    if not isinstance(server, HttpServer):
        raise InvalidInputError(f"{server.name} uses {server.transport}; only servers at an http URL have logins")
    return server


async def _log_out(server: HttpServer) -> str:
    from dragoman.mcp.token_store import TokenStore

    return "logged_out" if await TokenStore(server.url).remove() else "no_tokens"


async def _log_in(server: HttpServer, options: argparse.Namespace) -> str:
    from dragoman.agent.servers.server_pool import IdleHost
    from dragoman.mcp.authorisation import ClientIdentity
    from dragoman.mcp.login import log_in
    from dragoman.mcp.token_store import TokenStore

    cwd = str(choose_directory(options.cwd))
    identity = ClientIdentity(options.client_metadata, options.client_id, os.environ.get(SECRET_VARIABLE))
    await log_in(server, TerminalAuthoriser(identity), IdleHost(cwd))
    return "logged_in" if TokenStore(server.url).exists() else "not_needed"


class TerminalAuthoriser:
    """Shows the user the page on which to grant access."""

    def __init__(self, identity: "ClientIdentity") -> None:
        self.identity = identity

    def check(self, server: HttpServer) -> None:
        """Allow every login, because the user asked for it."""

    @asynccontextmanager
    async def open(self, server: HttpServer) -> "AsyncGenerator[Consent]":
        """Listen for the redirect while the context is open. Raises McpServerError."""
        from dragoman.mcp.callback import open_loopback

        async with open_loopback() as callback:
            yield _TerminalConsent(server.name, callback)


class _TerminalConsent:
    def __init__(self, server: str, callback: "LoopbackCallback") -> None:
        self.redirect_uri = callback.redirect_uri
        self._server = server
        self._callback = callback

    async def ask(self, url: str) -> "ConsentResult":
        from dragoman.mcp.callback import CONSENT_TIMEOUT_S, read_consent, state_of

        redirected = self._callback.expect(state_of(url))
        print(f"Allow access to {self._server} on this page:\n\n  {url}\n", file=sys.stderr, flush=True)
        opens = should_open(None, os.environ, is_terminal=sys.stderr.isatty())
        browser = asyncio.create_task(open_browser(url)) if opens else None
        try:
            async with asyncio.timeout(CONSENT_TIMEOUT_S):
                return read_consent(await redirected)
        except TimeoutError:
            raise McpServerError(f"no login within {CONSENT_TIMEOUT_S:.0f} s; try again") from None
        finally:
            if browser is not None:
                browser.cancel()
