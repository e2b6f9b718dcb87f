"""Opening a transport to the URL of an agent."""

import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Literal

from dragoman.protocol.address import Address, InvalidAddressError
from dragoman.wire.transport import Transport

TransportChoice = Literal["auto", "websocket", "http"]
"""The transport to a URL: a WebSocket, HTTP with event streams, or the first of these that the server supports."""


async def open_url(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    transport: TransportChoice = "auto",
    tls: ssl.SSLContext | None = None,
) -> Transport:
    """Return a transport to the agent at a URL.

    ws:// and wss:// URLs use a WebSocket. For http:// and https:// URLs a WebSocket is tried first, then HTTP. The
    token is only sent in the Authorization header. `tls` is for servers with a certificate from your own authority.

    Raises InvalidAddressError, and AddressError if the URL cannot be used. With HTTP, AddressError may only be raised
    with the first message.
    """
    address = Address.parse(url, token=token, headers=headers)
    if transport == "http" and address.is_websocket_only:
        raise InvalidAddressError("a ws:// or wss:// URL is for a WebSocket; use an http:// or https:// URL for HTTP")
    if transport == "http":
        return await _open_http(address, tls)
    from dragoman.protocol.websocket import NoWebSocketError, open_websocket

    try:
        return await open_websocket(address, tls)
    except NoWebSocketError:
        if transport == "websocket" or address.is_websocket_only:
            raise
    return await _open_http(address, tls)


async def _open_http(address: Address, tls: ssl.SSLContext | None) -> Transport:
    from dragoman.protocol.http_link import HttpLink
    from dragoman.protocol.streamable_http import StreamableHttpTransport

    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(HttpLink(address, tls))
        return StreamableHttpTransport(link, stack.pop_all())
