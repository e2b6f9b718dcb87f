"""A way between a node and its database on which answers are lost and connections end."""

import asyncio
from urllib.parse import urlsplit


class DatabaseProxy:
    """Passes all on to a database, at an address of its own."""

    def __init__(self, address):
        self._beyond = urlsplit(address)
        self.is_cut = False
        self.lost = 0
        """Answers that were lost so far."""
        self._statement = None
        self._losses = 0
        self._ends = set()

    @property
    def address(self):
        port = self._server.sockets[0].getsockname()[1]
        return self._beyond._replace(netloc=f"{self._beyond.username}@127.0.0.1:{port}").geturl()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error):
        self._server.close()
        self.cut()

    def cut(self):
        """End all connections, and let no other through."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self):
        self.is_cut = False

    def lose_answers(self, statement, count):
        """Let the database do the next statements that have these words, and lose its answers with the connections."""
        self._statement, self._losses = statement, count

    async def _serve(self, reader, writer):
        if self.is_cut:
            writer.transport.abort()
            return
        reader_beyond, writer_beyond = await asyncio.open_connection(self._beyond.hostname, self._beyond.port)
        ends = {writer, writer_beyond}
        self._ends |= ends
        asked = bytearray()
        await asyncio.gather(
            self._pass(reader, writer_beyond, asked.extend),
            self._pass(reader_beyond, writer, lambda answer: self._look(answer, asked, ends)),
        )
        self._ends -= ends

    async def _pass(self, reader, writer, look):
        try:
            while data := await reader.read(65536):
                look(data)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _look(self, answer, asked, ends):
        """Cut the connection when its statement is done: CommandComplete comes behind the commit."""
        if self._losses and self._statement in asked and b"C\0\0\0" in answer:
            self._losses -= 1
            self.lost += 1
            for end in ends:
                end.transport.abort()
            raise ConnectionResetError
        asked.clear()
