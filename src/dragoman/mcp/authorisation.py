"""Authorisation at servers (OAuth): who asks the person, and how requests get their tokens.

The protocol itself is the SDK's (`oauth`), which is imported when a person is to be asked, or when there is a token
already. A server whose tokens are missing fails alone, and its reason says what to do.
"""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Protocol

import httpx2
import msgspec

from dragoman.errors import ServerFailure
from dragoman.library_logs import unlogged
from dragoman.loading import load_in_background
from dragoman.mcp.channel import AuthorisationFailed, NeedsAuthorisation
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.token_store import TokenStore


class ConsentResult(msgspec.Struct, frozen=True):
    """What the server for authorisations sent back with the person."""

    code: str
    state: str | None = None
    issuer: str | None = None


class ClientIdentity(msgspec.Struct, frozen=True):
    """How we are known at a server for authorisations, where it does not register us itself."""

    metadata_url: str | None = None
    """The address of a document that describes us."""
    client_id: str | None = None
    client_secret: str | None = None


class Consent(Protocol):
    """One question to a person whether they agree to the use of a server."""

    @property
    def redirect_uri(self) -> str:
        """The address to which the person is sent back."""
        ...

    async def ask(self, url: str) -> ConsentResult:
        """Show the person an address, and wait for the way back; raises ServerFailure."""
        ...


class Authoriser(Protocol):
    """Asks a person to agree to the use of servers."""

    @property
    def identity(self) -> ClientIdentity:
        """How we are known already."""
        ...

    def check(self, server: HttpServer) -> None:
        """Raise NeedsAuthorisation, in words, when the person is not to be asked now."""
        ...

    def open(self, server: HttpServer) -> AbstractAsyncContextManager[Consent]:
        """Prepare a question; the context ends with the token, or raises what went wrong. Raises ServerFailure."""
        ...


class ServerAuthorisation(httpx2.Auth):
    """Puts a token on each request to a server, and gets one when the server wants it."""

    def __init__(
        self, definition: HttpServer, authoriser: Authoriser | None, note_token: Callable[[str], None] | None = None
    ) -> None:
        """`note_token` is told each token that a request is sent with."""
        self._definition = definition
        self._note_token = note_token
        self._authoriser = authoriser
        self._store = TokenStore(definition.url)
        self._provider: Any = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, with what it takes to be allowed to; raises AuthorisationFailed."""
        if any(name.lower() == "authorization" for name, _ in self._definition.headers):
            yield request  # the person has given a token of their own
            return
        refusal: httpx2.Response | None = None
        if self._provider is None and not self._store.exists():
            refusal = yield request
            if not wants_login(refusal) or not self._may_ask(refusal):
                return
        provider = await self._load_provider()
        async with aclosing(provider.authorise(request, refusal)) as flow:
            try:
                outgoing = await anext(flow)
                while True:
                    if outgoing is request and self._note_token is not None:
                        self._note_token(request.headers.get("Authorization", "").rpartition(" ")[2])
                    outgoing = await flow.asend((yield outgoing))
            except StopAsyncIteration:
                return
            except AuthorisationFailed:
                raise
            except ServerFailure as failure:
                raise AuthorisationFailed(str(failure)) from None

    def _may_ask(self, refusal: httpx2.Response) -> bool:
        """Tell whether to log in, before anybody is registered anywhere; raises NeedsAuthorisation.

        A 401 that does not name the scheme may be about a key of another kind: then only a person who asked for the
        login gets one.
        """
        try:
            checked(self._authoriser, self._definition)
        except NeedsAuthorisation:
            if "bearer" in refusal.headers.get("www-authenticate", "").lower():
                raise
            return False
        return True

    async def _load_provider(self) -> Any:
        if self._provider is None:
            load = load_in_background(lambda: importlib.import_module("dragoman.mcp.oauth"))
            oauth = await asyncio.wrap_future(load)
            with unlogged():  # once more, because its loggers came with the import
                self._provider = await oauth.make_provider(self._definition, self._store, self._authoriser)
        return self._provider


def checked(authoriser: Authoriser | None, server: HttpServer) -> Authoriser:
    """Return who asks the person; raises NeedsAuthorisation when nobody is to be asked now."""
    if authoriser is None:
        raise NeedsAuthorisation(server.name)
    authoriser.check(server)
    return authoriser


def wants_login(response: httpx2.Response) -> bool:
    """Tell whether a server wants a token, or one that allows more."""
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in challenge)
