"""The server of the bridge: HTTP/1.1, HTTP/2 and WebSockets on asyncio, for one ASGI application.

    server.py          listens, TLS, finds the protocol of a connection, keeps count of connections, stops
    tcp.py             one TCP connection: turns of work, writing with back-pressure, whether the peer is alive, closing
    http1.py           HTTP/1.1, by h11; the upgrade to a WebSocket
    http2.py           HTTP/2, by h2
    http2_frames.py    the heads of HTTP/2 frames before h2 sees them, and the cost of each frame
    websocket.py       the handshake and the frames of a WebSocket, by the protocol layer of `websockets`
    request.py         one request as an ASGI scope, its body and its answer

The three protocol libraries do no I/O, and nothing of them is patched. The server adds what they leave to it: a
connection processes a bounded number of frames in one turn of the event loop, pays for frames without content, and
writes nothing to a peer that has not read the bytes before.
"""

from dragoman.bridge.front.server.server import CannotListen, Server, Tls

__all__ = ["CannotListen", "Server", "Tls"]
