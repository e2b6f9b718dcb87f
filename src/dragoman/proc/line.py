"""Our end of the line to a warden; `steward/__init__.py` says what is spoken on it."""

import asyncio
import signal
import socket
from typing import Final, TypeVar

from dragoman.proc.exit import Exit, decode_status

_T = TypeVar("_T")

TERMINATE: Final = b"T"
KILL: Final = b"K"

KILLED: Final = Exit(signal=signal.SIGKILL)
"""What became of a child whose warden went without a word: the kernel or the steward has killed it."""


class Line:
    """Gives a warden its order and hears how its child fares."""

    def __init__(self, end: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = end
        self._heard = b""
        self._answer: asyncio.Future[bytes] = self._loop.create_future()
        self.exited: asyncio.Future[Exit] = self._loop.create_future()
        """Done when the child itself has ended."""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when nobody is left of all that the child has started."""
        self._loop.add_reader(end.fileno(), self._hear)

    async def order(self, order: bytes) -> bytes:
        """Send the order and return the warden's answer, which is empty if there will be none."""
        try:
            await self._loop.sock_sendall(self._socket, order)
        except ConnectionError:
            self.close()
        return await self._answer

    def tell(self, order: bytes) -> None:
        """Send one of the short orders; it always fits, and a warden that is gone needs none."""
        if self.gone.done():
            return
        try:
            self._socket.send(order)
        except ConnectionError:
            return

    def close(self) -> None:
        """Let go: the warden kills whoever is left."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
        _settle(self._answer, b"")
        _settle(self.exited, KILLED)
        _settle(self.gone, None)

    def _hear(self) -> None:
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return
        *words, self._heard = (self._heard + data).split(b"\n")
        for word in words:
            self._understand(word)

    def _understand(self, words: bytes) -> None:
        if words.startswith(b"exited "):
            _settle(self.exited, decode_status(int(words[7:])))
        else:
            _settle(self._answer, words)


def _settle(future: asyncio.Future[_T], result: _T) -> None:
    if not future.done():
        future.set_result(result)
