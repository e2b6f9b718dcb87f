"""A proxy between a node and its database that loses answers and ends connections."""

from urllib.parse import urlsplit

from tests.bridge.cuttable_proxy import CuttableProxy


class DatabaseProxy(CuttableProxy):
    """Forwards everything to a database, and has its own address."""

    def __init__(self, address):
        self._beyond = urlsplit(address)
        super().__init__(self._beyond.port)
        self.lost = 0
        """Number of answers lost so far."""
        self._statement = None
        self._losses = 0

    @property
    def address(self):
        return self._beyond._replace(netloc=f"{self._beyond.username}@{self.host}").geturl()

    async def __aenter__(self):
        await self.open()
        return self

    async def __aexit__(self, *error):
        await self.close()

    def lose_answers(self, statement, count):
        """Let the database run the next statements with this text, but lose the answers and the connections."""
        self._statement, self._losses = statement, count

    def watch(self, ends):
        asked = bytearray()

        def look(answer):
            """Cut the connection when its statement is done. CommandComplete follows the commit."""
            if self._losses and self._statement in asked and b"C\0\0\0" in answer:
                self._losses -= 1
                self.lost += 1
                for end in ends:
                    end.transport.abort()
                raise ConnectionResetError
            asked.clear()

        return asked.extend, look
