"""Opening what carries lines to the URL of an agent."""

import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Literal

from dragoman.wire.address import Address, BadAddress
from dragoman.wire.transport import Transport

Way = Literal["auto", "websocket", "http"]
"""How to talk to a URL: by WebSocket, by HTTP with event streams, or whichever of them is there."""


async def open_url(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    way: Way = "auto",
    tls: ssl.SSLContext | None = None,
) -> Transport:
    """Return what carries lines to the agent at a URL.

    ws:// and wss:// are WebSockets. For http:// and https:// a WebSocket is tried first, and HTTP if there is none.
    The token goes into the Authorization header, and nowhere else. `tls` is for servers that an authority of your own
    has signed.

    Raises BadAddress, and AddressFailed when nothing can be said through this URL; with HTTP that may show with the
    first message only.
    """
    address = Address.parse(url, token=token, headers=headers)
    if way == "http" and address.is_websocket_only:
        raise BadAddress("a ws:// or wss:// URL is for a WebSocket; give the http:// or https:// one to talk by HTTP")
    if way == "http":
        return await _open_http(address, tls)
    from dragoman.wire.websocket import NoWebSocket, open_websocket

    try:
        return await open_websocket(address, tls)
    except NoWebSocket:
        if way == "websocket" or address.is_websocket_only:
            raise
    return await _open_http(address, tls)


async def _open_http(address: Address, tls: ssl.SSLContext | None) -> Transport:
    from dragoman.wire.http_link import HttpLink
    from dragoman.wire.streamable_http import StreamableHttpTransport

    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(HttpLink(address, tls))
        return StreamableHttpTransport(link, stack.pop_all())
