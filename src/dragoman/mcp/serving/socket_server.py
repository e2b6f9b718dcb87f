"""Accepting connections on a socket while a block runs."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

Converse = Callable[[socket.socket], Awaitable[None]]

PAUSE_S = 1.0
"""Pause after a connection could not be accepted, as when this process has too many files open."""

_log = logging.getLogger("dragoman.mcp")


@asynccontextmanager
async def listening(listener: socket.socket, converse: Converse) -> AsyncGenerator[None]:
    """Hand each connection to `converse`, in a task of its own, while the block runs; leaving ends them all.

    An exception of the block comes out as it is, which a task group would not allow.
    """
    acceptor = _Acceptor(listener, converse)
    acceptor.open()
    try:
        yield
    finally:
        await acceptor.close()


class _Acceptor:
    def __init__(self, listener: socket.socket, converse: Converse) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._converse = converse
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def open(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    async def close(self) -> None:
        self._is_closed = True
        self._loop.remove_reader(self._listener.fileno())
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.warning("a connection could not be accepted: %s", error.strerror)
            self._loop.remove_reader(self._listener.fileno())
            self._loop.call_later(PAUSE_S, self.open)
            return
        client.setblocking(False)
        task = self._loop.create_task(self._talk(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: client.close())  # here, because a task may be cancelled before it begins

    async def _talk(self, client: socket.socket) -> None:
        try:
            await self._converse(client)
        except Exception:  # noqa: BLE001 -- boundary: task top
            _log.exception("a connection to the functions failed")
