"""Opening a transport to the URL of an agent."""

import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Literal

from dragoman.protocol.address import Address, BadAddress
from dragoman.wire.transport import Transport

TransportChoice = Literal["auto", "websocket", "http"]
"""The transport to a URL: a WebSocket, HTTP with event streams, or the first of the two that the server has."""


async def open_url(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    transport: TransportChoice = "auto",
    tls: ssl.SSLContext | None = None,
) -> Transport:
    """Return a transport to the agent at a URL.

    ws:// and wss:// are WebSockets. For http:// and https:// a WebSocket is tried first, and HTTP if there is none.
    The token goes into the Authorization header, and nowhere else. `tls` is for servers that an authority of your own
    has signed.

    Raises BadAddress, and AddressFailed when nothing can be said through this URL; with HTTP that may show with the
    first message only.
    """
    address = Address.parse(url, token=token, headers=headers)
    if transport == "http" and address.is_websocket_only:
        raise BadAddress("a ws:// or wss:// URL is for a WebSocket; give the http:// or https:// one to talk by HTTP")
    if transport == "http":
        return await _open_http(address, tls)
    from dragoman.protocol.websocket import NoWebSocket, open_websocket

    try:
        return await open_websocket(address, tls)
    except NoWebSocket:
        if transport == "websocket" or address.is_websocket_only:
            raise
    return await _open_http(address, tls)


async def _open_http(address: Address, tls: ssl.SSLContext | None) -> Transport:
    from dragoman.protocol.http_link import HttpLink
    from dragoman.protocol.streamable_http import StreamableHttpTransport

    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(HttpLink(address, tls))
        return StreamableHttpTransport(link, stack.pop_all())
