"""Serving the application on hypercorn: HTTP/1.1, HTTP/2 (also without TLS, by prior knowledge) and WebSockets."""

import asyncio
import logging
import socket
import ssl
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import msgspec
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework

from dragoman.errors import DragomanError
from dragoman.gateway.front.app import Application
from dragoman.gateway.front.protocols import install
from dragoman.gateway.front.tcp import TcpConnection, refuse_connection, watch_peer

BACKLOG = 512
FOREVER = 2**62
"""Requests that one connection may have: hypercorn's own limit would cut event streams with it."""


class CannotListen(DragomanError):
    """The address cannot be listened at."""


class Tls(msgspec.Struct, frozen=True):
    """The files of a certificate with its chain, and of its key, both PEM."""

    certificate: Path
    key: Path


class Server:
    """Serves an application on a socket while it is open: use it as an async context manager."""

    def __init__(
        self, app: Application, listening: socket.socket, *, tls: Tls | None = None, stall_s: float = 30
    ) -> None:
        self._app = app
        self._limits = app.limits
        self._listening = listening
        self._tls = None if tls is None else _make_context(tls)
        self._stall_s = stall_s
        self._config = _make_config(app)
        self._context = WorkerContext(None)
        self._connections: dict[asyncio.Task[None], TcpConnection] = {}

    async def __aenter__(self) -> Self:
        install()
        watch_peer(self._listening, self._limits)
        self._server = await asyncio.start_server(
            self._serve, sock=self._listening, ssl=self._tls, backlog=BACKLOG,
            ssl_handshake_timeout=None if self._tls is None else self._limits.body_timeout_s,
        )  # fmt: skip
        self._watch = asyncio.ensure_future(self._keep_watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self._stop())

    @property
    def open_connections(self) -> int:
        """How many TCP connections there are."""
        return len(self._connections)

    async def _stop(self) -> None:
        """Take nobody in any more, let open streams end, and cut those that do not."""
        self._server.close()
        self._watch.cancel()
        await self._context.terminated.set()
        await self._app.stop()
        tasks = list(self._connections)
        if tasks:
            await asyncio.wait(tasks, timeout=self._limits.stop_s)
        for task, connection in list(self._connections.items()):
            connection.abort()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._limits.max_sockets:
            await refuse_connection(writer)
            return
        loop = asyncio.get_running_loop()
        app = ASGIWrapper(cast("ASGIFramework", self._app))
        connection = TcpConnection(app, loop, self._config, self._context, {}, reader, writer)
        task = asyncio.create_task(connection.run())
        self._connections[task] = connection
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._connections[task]

    async def _keep_watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.watch_s)
            for connection in list(self._connections.values()):
                connection.check(loop.time(), self._limits, self._stall_s)


def _make_config(app: Application) -> Config:
    limits = app.limits
    config = Config()
    config.errorlog = logging.getLogger("dragoman.gateway.front")
    config.include_server_header = False
    config.keep_alive_timeout = limits.idle_s
    config.keep_alive_max_requests = FOREVER
    config.h11_max_incomplete_size = limits.max_header_bytes
    config.h2_max_header_list_size = limits.max_header_bytes
    config.h2_max_concurrent_streams = limits.max_http2_streams
    config.websocket_max_message_size = app.max_message_bytes
    return config


def _make_context(tls: Tls) -> ssl.SSLContext:
    """Make what HTTP/2 demands of TLS; raises CannotListen."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        problem = error.strerror or "they do not fit, or are no PEM"
        raise CannotListen(f"cannot use {tls.certificate} and {tls.key} for TLS: {problem}") from None
    return context
