"""Servers connected with our code, and a host that answers their requests."""

import asyncio
from contextlib import asynccontextmanager

from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import StdioServer
from dragoman.mcp.server import ServerConnection
from dragoman.proc import Supervisor
from tests.mcp.servers.commands import scripted


class Answers:
    """Answers the requests of a server and records them."""

    def __init__(self, roots=(), elicited=None, sampled=None):
        self._roots = list(roots)
        self._elicited = elicited or {"action": "decline"}
        self._sampled = sampled
        self.asked = []

    def roots(self):
        return self._roots

    async def elicit(self, server, params):
        self.asked.append((server, params))
        return self._elicited

    async def sample(self, server, params):
        self.asked.append((server, params))
        return self._sampled


class Bench:
    """Starts servers and records each state that they go through."""

    def __init__(self, cwd, supervisor):
        self._cwd = str(cwd)
        self._supervisor = supervisor
        self._servers = []
        self._news = asyncio.Event()
        self.states = []

    def server(self, definition=None, host=None, **options):
        command = scripted(**options)
        definition = definition or StdioServer("one", command[0], tuple(command[1:]))
        server = ServerConnection(
            definition, ServerEnvironment(self._cwd, self._supervise), host or Answers(), self._note
        )
        self._servers.append(server)
        server.start()
        return server

    async def ready(self, definition=None, host=None, **options):
        server = self.server(definition, host, **options)
        await server.settled()
        assert server.state == "ready", server.reason
        return server

    async def until(self, condition):
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def close(self):
        await asyncio.gather(*(server.stop() for server in self._servers))

    def _note(self, server):
        self.states.append(server.state)
        self._news.set()

    async def _supervise(self):
        return self._supervisor


@asynccontextmanager
async def servers_in(cwd):
    async with asyncio.timeout(30), Supervisor() as supervisor:
        bench = Bench(cwd, supervisor)
        try:
            yield bench
        finally:
            await bench.close()
