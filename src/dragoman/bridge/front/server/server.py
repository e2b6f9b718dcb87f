"""Serving the application on a socket: HTTP/1.1, HTTP/2 (also without TLS, by prior knowledge) and WebSockets."""

import asyncio
import errno
import logging
import socket
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from dragoman.bridge.front.app import Application
from dragoman.bridge.front.server.liveness import watch_peers
from dragoman.bridge.front.server.opening import Opening
from dragoman.bridge.front.server.tcp import ServerContext, TcpConnection
from dragoman.bridge.front.server.tls import Tls, make_context

BACKLOG = 512
ACCEPTS_PER_TURN = 16
"""New connections in one turn of the event loop, so that those there are have theirs."""

NO_DESCRIPTORS_PAUSE_S = 0.1
"""Before the next try when the process, or the system, has no descriptors left."""

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n"
"""Turns a connection away in the one protocol that can be spoken before anything was heard."""

_log = logging.getLogger("dragoman.bridge.front")


class Server:
    """Serves an application on a socket while it is open: use it as an async context manager."""

    def __init__(
        self, app: Application, listening: socket.socket, *, tls: Tls | None = None, stall_s: float = 30
    ) -> None:
        self._app = app
        self._limits = app.limits
        self._listening = listening
        self._tls = None if tls is None else make_context(tls)
        self._context = ServerContext(
            app=app,
            limits=app.limits,
            max_message_bytes=app.max_message_bytes,
            stall_s=stall_s,
            spawn=self._spawn,
            on_credential=self._note_credential,
            on_lost=self._forget,
        )
        self._requests: set[asyncio.Task[None]] = set()
        self._opening: dict[TcpConnection, asyncio.Task[None]] = {}
        """Those that are not connected yet: TLS takes several round trips."""
        self._connections: dict[TcpConnection, None] = {}
        """All of them, in the order in which they came."""
        self._strangers: dict[TcpConnection, None] = {}
        """Those that never showed a credential."""
        self._emptied = asyncio.Event()
        self._emptied.set()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        watch_peers(self._listening, self._limits)
        self._listening.setblocking(False)
        self._listening.listen(BACKLOG)
        self._loop.add_reader(self._listening, self._accept)
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

    @property
    def unsent_bytes(self) -> int:
        """What is held for peers that have not taken it."""
        return sum(connection.unsent_bytes for connection in self._connections)

    async def _stop(self) -> None:
        """Take nobody in any more, let open streams end, and cut those that do not."""
        self._context.is_stopping = True
        self._loop.remove_reader(self._listening)
        self._listening.close()
        self._watch.cancel()
        for task in self._opening.values():
            task.cancel()
        await self._app.stop()
        for connection in list(self._connections):
            connection.stop()
        await self._wait_empty()
        for connection in list(self._connections):
            connection.abort()
        for task in self._requests:
            task.cancel()
        await asyncio.gather(*self._requests, *self._opening.values(), return_exceptions=True)
        await self._wait_empty()

    async def _wait_empty(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stop_s):
                await self._emptied.wait()

    # ── connections ─────────────────────────────────────────────────────────────────────────────────

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                peer, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS:
                    raise
                self._wait_for_descriptors(error)
                return
            peer.setblocking(False)
            self._admit(peer)

    def _wait_for_descriptors(self, error: OSError) -> None:
        _log.warning("a connection could not be accepted: %s", error.strerror)
        self._cut_stranger()
        self._loop.remove_reader(self._listening)
        self._loop.call_later(NO_DESCRIPTORS_PAUSE_S, self._listen_again)

    def _listen_again(self) -> None:
        if not self._context.is_stopping:
            self._loop.add_reader(self._listening, self._accept)

    def _admit(self, peer: socket.socket) -> None:
        if len(self._connections) >= self._limits.max_sockets and not self._cut_stranger():
            if self._tls is None:
                with suppress(OSError):
                    peer.send(_BUSY)
            peer.close()
            return
        connection = TcpConnection(self._context, Opening)
        self._connections[connection] = self._strangers[connection] = None
        self._emptied.clear()
        task = self._opening[connection] = self._loop.create_task(self._connect(connection, peer))

        def connected(task: asyncio.Task[None]) -> None:
            self._opening.pop(connection, None)
            if task.cancelled() or task.exception() is not None:
                self._forget(connection)
                peer.close()

        task.add_done_callback(connected)

    async def _connect(self, connection: TcpConnection, peer: socket.socket) -> None:
        handshake_s = None if self._tls is None else self._limits.body_timeout_s
        await self._loop.connect_accepted_socket(
            lambda: connection, peer, ssl=self._tls, ssl_handshake_timeout=handshake_s
        )

    def _cut_stranger(self) -> bool:
        """Cut the oldest connection that never showed a credential; tells whether there was one."""
        stranger = next(iter(self._strangers), None)
        if stranger is None:
            return False
        opening = self._opening.get(stranger)
        self._forget(stranger)
        if opening is not None:
            opening.cancel()
        stranger.abort()
        return True

    def _note_credential(self, connection: TcpConnection) -> None:
        self._strangers.pop(connection, None)

    def _forget(self, connection: TcpConnection) -> None:
        self._strangers.pop(connection, None)
        self._connections.pop(connection, None)
        if not self._connections:
            self._emptied.set()

    # ── what runs beside ────────────────────────────────────────────────────────────────────────────

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        task.add_done_callback(lambda _: work.close())  # one that was cancelled before it began would complain

    async def _keep_watch(self) -> None:
        while True:
            await asyncio.sleep(self._limits.watch_s)
            for connection in list(self._connections):
                connection.check(self._loop.time())
