"""A way through which every byte between browser and bridge passes, and which can be cut."""

import asyncio


class CuttableProxy:
    """Listens on a port of its own and passes all on to `port_beyond`."""

    def __init__(self):
        self.port_beyond = None
        self.is_cut = False
        self._ends = set()
        self._passing = set()

    async def open(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.host = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.origin = f"http://{self.host}"

    async def close(self):
        self._server.close()
        self.cut()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def cut(self):
        """End every connection in the middle of whatever it does, and let no new one through."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self):
        self.is_cut = False

    async def _serve(self, reader, writer):
        if self.is_cut:
            writer.transport.abort()
            return
        reader_beyond, writer_beyond = await asyncio.open_connection("127.0.0.1", self.port_beyond)
        ends = {writer, writer_beyond}
        self._ends |= ends
        ways = [_pass(reader, writer_beyond), _pass(reader_beyond, writer)]
        passing = asyncio.gather(*ways, return_exceptions=True)
        self._passing.add(passing)
        await passing
        self._passing.discard(passing)
        self._ends -= ends


async def _pass(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
