"""Opening a WebSocket to the URL of an agent."""

import logging
import ssl

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from dragoman.protocol.address import Address, AddressFailed, explain_os_error
from dragoman.wire.websocket import MAX_FRAME_BYTES, WebSocketTransport

OPEN_TIMEOUT_S = 15.0
"""As long as browsers try, roughly; an address that does not answer at all is mostly a wrong one."""

PING_INTERVAL_S = 20.0
"""Between two pings, and for the answer to one: a pulled network is noticed in 40 s."""

_silent = logging.Logger("dragoman.protocol.websocket", logging.CRITICAL + 1)  # noqa: LOG001 -- it cannot be turned on
"""The library would log the headers of the handshake, and with them the token."""


class NoWebSocket(AddressFailed):
    """A server answered, but opened no WebSocket; HTTP may work there."""


async def open_websocket(
    address: Address, tls: ssl.SSLContext | None = None, *, max_bytes: int = MAX_FRAME_BYTES
) -> WebSocketTransport:
    """Open a WebSocket; raises NoWebSocket when something else answers there, and AddressFailed when nothing does.

    A message of more than `max_bytes` ends it.
    """
    return WebSocketTransport(await connect_websocket(address, tls, max_bytes=max_bytes))


async def connect_websocket(
    address: Address, tls: ssl.SSLContext | None = None, *, max_bytes: int = MAX_FRAME_BYTES
) -> ClientConnection:
    """Open a WebSocket frame by frame. Raises like `open_websocket`."""
    context = (tls or ssl.create_default_context()) if address.is_secure else None
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])  # WebSockets over HTTP/2 are another thing
    opening = _Open(
        address.websocket_url,
        additional_headers=dict(address.headers),
        compression=None,
        open_timeout=OPEN_TIMEOUT_S,
        ping_interval=PING_INTERVAL_S,
        ping_timeout=PING_INTERVAL_S,
        max_size=max_bytes,
        logger=_silent,
        ssl=context,
    )
    try:
        return await opening
    except InvalidStatus as refused:
        failure = address.refuse(refused.response.status_code, bytes(refused.response.body or b""))
        raise NoWebSocket(failure.url, failure.problem, status=failure.status) from None
    except (InvalidHandshake, EOFError):
        raise NoWebSocket(address.shown, "answered, but opened no WebSocket; see that it speaks ACP") from None
    except ConnectionClosed:
        raise address.fail("broke the connection off before it answered") from None
    except TimeoutError:
        raise address.fail(f"did not answer within {OPEN_TIMEOUT_S:g} s") from None
    except (OSError, InvalidURI, UnicodeError) as error:
        raise address.fail(f"cannot be reached: {explain_os_error(error)}") from None


class _Open(connect):
    """Follows no redirect, because the token is meant for the address that was given."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc
