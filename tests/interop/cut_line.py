"""A proxy that can cut all connections at once. New connections can be opened afterwards."""

import asyncio
from contextlib import asynccontextmanager, suppress


class CutLine:
    """Copies bytes both ways."""

    def __init__(self):
        self.port = 0
        self.target = 0
        self.cuts = 0
        self._ends = set()

    def cut(self):
        """Abort every connection."""
        self.cuts += len(self._ends)
        for writer in self._ends:
            writer.transport.abort()

    async def carry(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ends = {writer, far_writer}
        self._ends |= ends
        try:
            await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))
        finally:
            self._ends -= ends
            for end in ends:
                end.transport.abort()

    async def _pass_on(self, reader, writer):
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def cut_line():
    line = CutLine()
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        line.cut()
