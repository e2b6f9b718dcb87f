"""The server of the bridge: HTTP/1.1, HTTP/2 and WebSockets on asyncio, for one ASGI application.

    server.py          listening, TLS, detection of the protocol, the limit on connections, stopping
    tcp.py             one TCP connection: turns of work, back-pressure, detection of dead peers, closing
    http1.py           HTTP/1.1 with h11, and the upgrade to a WebSocket
    http2.py           HTTP/2 with h2
    http2_frames.py    the heads of HTTP/2 frames before h2 sees them, and the cost of each frame
    websocket.py       the handshake and frames of a WebSocket, with the protocol layer of `websockets`
    request.py         one request as an ASGI scope, its body and its answer

The three protocol libraries do no I/O and are not patched. The server adds the protection that they lack. A connection
processes a bounded number of frames per turn of the event loop. It pays for frames without content from a token bucket.
It writes nothing more to a peer that has not read the previous bytes.
"""

from dragoman.bridge.front.server.server import ListenError, Server, Tls

__all__ = ["ListenError", "Server", "Tls"]
