"""A proxy that forwards every byte of its connections, and can be cut."""

import asyncio


class CuttableProxy:
    """Listens on a free port and forwards everything to `port_beyond`."""

    def __init__(self, port_beyond=None):
        self.port_beyond = port_beyond
        self.is_cut = False
        self._ends = set()
        self._passing = set()

    async def open(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.origin = f"http://{self.host}"

    async def close(self):
        self._server.close()
        self.cut()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def cut(self):
        """Abort all connections, and accept no new ones."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self):
        self.is_cut = False

    def watch(self, ends):
        """Return a function per direction that sees the bytes of a connection. Each may raise ConnectionError."""
        del ends
        return _ignore, _ignore

    async def _serve(self, reader, writer):
        if self.is_cut:
            writer.transport.abort()
            return
        reader_beyond, writer_beyond = await asyncio.open_connection("127.0.0.1", self.port_beyond)
        ends = {writer, writer_beyond}
        self._ends |= ends
        there, back = self.watch(ends)
        ways = [_pass(reader, writer_beyond, there), _pass(reader_beyond, writer, back)]
        passing = asyncio.gather(*ways, return_exceptions=True)
        self._passing.add(passing)
        await passing
        self._passing.discard(passing)
        self._ends -= ends


def _ignore(data):
    del data


async def _pass(reader, writer, look):
    try:
        while data := await reader.read(65536):
            look(data)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
