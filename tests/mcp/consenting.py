"""Persons who are asked to agree to the use of a server, for tests: they come back by a port of this machine."""

import asyncio
from contextlib import asynccontextmanager

import httpx2

from dragoman.mcp.authorisation import ClientIdentity
from dragoman.mcp.callback import open_loopback, read_consent, state_of


async def agree(url):
    """Be a browser whose person agrees at once, as far as the server lets them."""
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        return await client.get(url)


class Person:
    """Asks nobody: `visit` is what the browser does with the address."""

    identity = ClientIdentity()

    def __init__(self, visit=agree):
        self.visit, self.asked, self.redirect_uris = visit, [], []

    def check(self, server):
        """Let every question pass."""

    @asynccontextmanager
    async def open(self, server):
        async with open_loopback() as self.callback:
            self.redirect_uri = self.callback.redirect_uri
            self.redirect_uris.append(self.redirect_uri)
            yield self

    async def ask(self, url):
        self.asked.append(url)
        came = self.callback.expect(state_of(url))
        visiting = asyncio.create_task(self.visit(url))
        try:
            return read_consent(await came)
        finally:
            await visiting
