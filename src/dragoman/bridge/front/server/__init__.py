"""The server of the bridge: HTTP/1.1, HTTP/2 and WebSockets on asyncio, for one ASGI application.

    server.py          listens, TLS, finds the protocol of a connection, keeps count of connections, stops
    tcp.py             one TCP connection: turns of work, writing with back-pressure, its end
    liveness.py        is the other side there, and does it take what is sent
    http1.py           HTTP/1.1, by h11; the upgrade to a WebSocket
    http2.py           HTTP/2, by h2
    http2_frames.py    the frames of HTTP/2 before h2 sees them: what each of them is charged
    websocket.py       the handshake and the frames of a WebSocket, by the protocol layer of `websockets`
    request.py         one request, as the application is told of it

The three protocol libraries do no I/O, and nothing of them is replaced. What they leave to a server is here: no
connection may do more in one turn of the event loop than a bounded number of frames, frames that carry nothing are
charged, and nothing is written to a peer that has not taken what was written before.
"""

from dragoman.bridge.front.server.server import CannotListen, Server, Tls

__all__ = ["CannotListen", "Server", "Tls"]
