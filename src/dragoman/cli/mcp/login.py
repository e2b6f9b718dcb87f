"""`dragoman mcp login` and `dragoman mcp logout`: the tokens for a server that wants authorisation."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.agent_choice import choose_directory
from dragoman.cli.browser import is_wanted, open_browser
from dragoman.cli.exit_codes import FAILED, USAGE
from dragoman.cli.mcp.calling import at_address, find_server
from dragoman.cli.mcp.files import BadInput
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, print_json, start_log
from dragoman.errors import DragomanError, ServerFailure
from dragoman.event_loop import Stopped, run
from dragoman.mcp.definition import HttpServer, describe

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import ClientIdentity, Consent, ConsentResult
    from dragoman.mcp.callback import LoopbackCallback

SECRET_VARIABLE = "DRAGOMAN_MCP_CLIENT_SECRET"  # noqa: S105 -- the name of a variable
"""The variable with the secret of a client that was registered by hand."""

_WORDS = {
    "logged_in": "Logged in to {name}.",
    "not_needed": "{name} wants no login.",
    "logged_out": "Forgot the tokens for {name}.",
    "no_tokens": "There were no tokens for {name}.",
}


def log_in_or_out(options: argparse.Namespace) -> int:
    """Get or forget tokens; 1 when the server failed, 2 for bad input."""
    start_log("ERROR")
    command = f"mcp {options.action}"
    try:
        server = _choose(options)
        outcome = run(_log_out(server) if options.action == "logout" else _log_in(server, options))
    except ServerFailure as failure:
        complain(command, failure)
        return FAILED
    except DragomanError as problem:
        complain(command, problem)
        return USAGE
    except Stopped as stopped:
        return 128 + stopped.signal_number
    if options.format == "json":
        print_json(msgspec.json.encode({"server": server.name, "address": describe(server), "outcome": outcome}))
    else:
        print(_WORDS[outcome].format(name=server.name))
    return 0


def _choose(options: argparse.Namespace) -> HttpServer:
    if (options.name is None) is (options.url is None):
        raise UsageError("expected either the name of a server or --url URL")
    server = at_address(options) if options.name is None else find_server(options, options.name)
    if not isinstance(server, HttpServer):
        raise BadInput(f"{server.name} is reached by {server.transport}; only servers at an http address have logins")
    return server


async def _log_out(server: HttpServer) -> str:
    from dragoman.mcp.token_store import TokenStore

    return "logged_out" if await TokenStore(server.url).remove() else "no_tokens"


async def _log_in(server: HttpServer, options: argparse.Namespace) -> str:
    from dragoman.agent.server_pool import IdleHost
    from dragoman.mcp.authorisation import ClientIdentity
    from dragoman.mcp.login import log_in
    from dragoman.mcp.token_store import TokenStore

    cwd = str(choose_directory(options.cwd))
    identity = ClientIdentity(options.client_metadata, options.client_id, os.environ.get(SECRET_VARIABLE))
    await log_in(server, TerminalAuthoriser(identity), IdleHost(cwd))
    return "logged_in" if TokenStore(server.url).exists() else "not_needed"


class TerminalAuthoriser:
    """Shows a person in a terminal the page on which to agree."""

    def __init__(self, identity: "ClientIdentity") -> None:
        self.identity = identity

    def check(self, server: HttpServer) -> None:
        """Let every question pass: the person has asked for it."""

    @asynccontextmanager
    async def open(self, server: HttpServer) -> "AsyncGenerator[Consent]":
        """Listen for the way back, as long as the context lasts; raises ServerFailure."""
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

        came = self._callback.expect(state_of(url))
        print(f"Agree to the use of {self._server} on this page:\n\n  {url}\n", file=sys.stderr, flush=True)
        opens = is_wanted(None, os.environ, is_terminal=sys.stderr.isatty())
        browser = asyncio.create_task(open_browser(url)) if opens else None
        try:
            async with asyncio.timeout(CONSENT_TIMEOUT_S):
                return read_consent(await came)
        except TimeoutError:
            raise ServerFailure(f"nobody agreed to the use of it within {CONSENT_TIMEOUT_S:.0f} s; try again") from None
        finally:
            if browser is not None:
                browser.cancel()
