"""Users who are asked to allow the use of a server. They return through the loopback port."""

import asyncio
from contextlib import asynccontextmanager

import httpx2

from dragoman.mcp.authorisation import ClientIdentity
from dragoman.mcp.callback import open_loopback, read_consent, state_of


async def agree(url):
    """Act as a browser whose user agrees immediately, if the server allows that."""
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        return await client.get(url)


class ConsentingUser:
    """A user without a screen. `visit` is the browser's action for the URL."""

    identity = ClientIdentity()

    def __init__(self, visit=agree):
        self.visit, self.asked, self.redirect_uris = visit, [], []

    def check(self, server):
        """Allow every question."""

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
