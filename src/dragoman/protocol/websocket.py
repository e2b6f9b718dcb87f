"""Opening a WebSocket to the URL of an agent."""

import logging
import ssl

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from dragoman.protocol.address import Address, AddressError, explain_os_error
from dragoman.wire.framing import MAX_FRAME_BYTES
from dragoman.wire.websocket import WebSocketTransport

OPEN_TIMEOUT_S = 15.0
"""About as long as browsers try. An address that does not answer at all is usually wrong."""

PING_INTERVAL_S = 20.0
"""The time between two pings, and for the answer to one. A disconnected network is noticed within 40 s."""

MAX_QUEUED_FRAMES = 1
"""Maximum number of frames that wait to be read.

A frame may be as long as a message, so the usual 16 could use a gigabyte.
"""

_silent = logging.Logger("dragoman.protocol.websocket", logging.CRITICAL + 1)  # noqa: LOG001 -- it cannot be turned on
"""Silent, because the library would log the headers of the handshake, which contain the token."""


class NoWebSocketError(AddressError):
    """A server answered but did not open a WebSocket. HTTP may work there."""


async def open_websocket(address: Address, tls: ssl.SSLContext | None = None) -> WebSocketTransport:
    """Open a WebSocket.

    Raises NoWebSocketError if another service answers, and AddressError if nothing answers.
    """
    return WebSocketTransport(await connect_websocket(address, tls))


async def connect_websocket(address: Address, tls: ssl.SSLContext | None = None) -> ClientConnection:
    """Open a WebSocket for frames. Raises like `open_websocket`."""
    context = (tls or ssl.create_default_context()) if address.is_secure else None
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])  # WebSockets over HTTP/2 work differently
    opening = _Open(
        address.websocket_url,
        additional_headers=dict(address.headers),
        compression=None,
        open_timeout=OPEN_TIMEOUT_S,
        ping_interval=PING_INTERVAL_S,
        ping_timeout=PING_INTERVAL_S,
        max_size=MAX_FRAME_BYTES,
        max_queue=MAX_QUEUED_FRAMES,
        logger=_silent,
        ssl=context,
    )
    try:
        return await opening
    except InvalidStatus as refused:
        failure = address.refuse(refused.response.status_code, bytes(refused.response.body or b""))
        raise NoWebSocketError(failure.url, failure.problem, status=failure.status) from None
    except (InvalidHandshake, EOFError):
        raise NoWebSocketError(
            address.shown, "answered but did not open a WebSocket; check that it speaks ACP"
        ) from None
    except ConnectionClosed:
        raise address.fail("closed the connection before it answered") from None
    except TimeoutError:
        raise address.fail(f"did not answer within {OPEN_TIMEOUT_S:g} s") from None
    except (OSError, InvalidURI, UnicodeError) as error:
        raise address.fail(f"cannot be reached: {explain_os_error(error)}") from None


class _Open(connect):
    """Follows no redirect, because the token is only for the given address."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc
