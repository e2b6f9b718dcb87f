"""One login at a server: the person agrees, and the tokens are kept for every connection that comes after."""

import asyncio

from dragoman.errors import ServerFailure
from dragoman.mcp.authorisation import Authoriser
from dragoman.mcp.callback import CONSENT_TIMEOUT_S
from dragoman.mcp.client import ClientCallbacks, Host
from dragoman.mcp.connector import ServerConnector, ServerEnvironment
from dragoman.mcp.definition import HttpServer
from dragoman.proc import Supervisor

REQUESTS_TIMEOUT_S = 60.0
"""For all requests of a login, without the time of the person."""


async def log_in(definition: HttpServer, authoriser: Authoriser, host: Host) -> None:
    """Connect to a server, which asks the person where the server wants it; raises ServerFailure.

    It is a connection of its own, so that a person may take longer than a server may take to get ready.
    """
    connector = ServerConnector(definition, ServerEnvironment("/", _start_nothing, authoriser=authoriser))
    callbacks = ClientCallbacks(definition.name, lambda: host, lambda: None, connector.hide_in_result)
    timeout_s = CONSENT_TIMEOUT_S + REQUESTS_TIMEOUT_S
    try:
        async with asyncio.timeout(timeout_s), connector.open(callbacks):
            pass
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 -- the edge to a foreign library, whose tasks raise groups
        raise ServerFailure(await connector.explain(error, timeout_s=timeout_s)) from None


async def _start_nothing() -> Supervisor:
    raise ServerFailure("a server at an address has no process")
