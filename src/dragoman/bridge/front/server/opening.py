"""Which protocol a connection speaks: by what TLS has agreed on, else by its first bytes."""

from dragoman.bridge.front.server.http1 import Http1
from dragoman.bridge.front.server.http2 import Http2
from dragoman.bridge.front.server.tcp import TcpConnection
from dragoman.bridge.front.server.tls import HTTP2_ALPN

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What an HTTP/2 client begins with (RFC 9113, 3.4); no request of HTTP/1.1 can begin like it."""


class Opening:
    """Waits until it is known what is spoken."""

    is_idle = True
    is_full = False
    unsent_bytes = 0

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._first = b""

    def receive(self, data: bytes) -> None:
        """Take bytes that arrived."""
        self._first += data

    def advance(self) -> bool:
        """Decide, once there is enough to go by."""
        size = min(len(self._first), len(PREFACE))
        begins_http2 = self._first[:size] == PREFACE[:size]
        if self._connection.alpn != HTTP2_ALPN and begins_http2 and size < len(PREFACE):
            return False
        protocol = Http2(self._connection) if begins_http2 else Http1(self._connection)
        protocol.receive(self._first)
        self._connection.switch_to(protocol)
        return False

    def ping(self) -> bytes | None:
        """Return nothing: there is no frame yet that anybody would understand."""
        return None

    def stop(self) -> None:
        """End it."""
        self._connection.finish()

    def lose(self) -> None:
        """Do nothing: the application knows nothing of it."""
