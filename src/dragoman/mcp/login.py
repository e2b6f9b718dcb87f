"""One login at a server. The tokens are stored for all later connections."""

import asyncio

from dragoman.errors import McpServerError
from dragoman.mcp.authorisation import Authoriser
from dragoman.mcp.callback import CONSENT_TIMEOUT_S
from dragoman.mcp.client import ClientCallbacks, Host
from dragoman.mcp.connector import ServerConnector, ServerEnvironment
from dragoman.mcp.definition import HttpServer
from dragoman.proc import Supervisor

REQUESTS_TIMEOUT_S = 60.0
"""Timeout for all requests of a login, without the user's time."""


async def log_in(definition: HttpServer, authoriser: Authoriser, host: Host) -> None:
    """Connect to a server, which asks the user to log in if required. Raises McpServerError.

    The login uses its own connection, so the user may need longer than the timeout for connecting.
    """
    connector = ServerConnector(definition, ServerEnvironment("/", _start_nothing, authoriser=authoriser))
    callbacks = ClientCallbacks(definition.name, lambda: host, lambda: None, connector.redact)
    timeout_s = CONSENT_TIMEOUT_S + REQUESTS_TIMEOUT_S
    try:
        async with asyncio.timeout(timeout_s), connector.open(callbacks):
            pass
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 -- the edge to a foreign library, whose tasks raise groups
        raise McpServerError(await connector.explain(error, timeout_s=timeout_s)) from None


async def _start_nothing() -> Supervisor:
    raise McpServerError("this server is at a URL, so there is no process to start")
