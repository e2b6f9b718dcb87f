"""Authorisation at MCP servers (OAuth): asking the user, and adding tokens to requests.

`oauth` implements the protocol with the SDK from the extra `oauth`. It is imported only when a token exists or the user
must be asked. A server without tokens fails without affecting other servers. Its reason states the fix.
"""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Protocol

import httpx2
import msgspec

from dragoman.errors import McpServerError
from dragoman.library_logs import unlogged
from dragoman.loading import load_in_background
from dragoman.mcp.channel import AuthorizationError, AuthorizationRequiredError
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.token_store import TokenStore


class ConsentResult(msgspec.Struct, frozen=True):
    """The answer of the authorisation server, as the user's browser brought it back."""

    code: str
    state: str | None = None
    issuer: str | None = None


class ClientIdentity(msgspec.Struct, frozen=True):
    """Our identity at an authorisation server that does not register clients itself."""

    metadata_url: str | None = None
    """The URL of our client metadata document."""
    client_id: str | None = None
    client_secret: str | None = None


class Consent(Protocol):
    """One request to the user to allow the use of a server."""

    @property
    def redirect_uri(self) -> str:
        """The address to which the authorisation server sends the user back."""
        ...

    async def ask(self, url: str) -> ConsentResult:
        """Show the URL to the user and wait for the answer. Raises McpServerError."""
        ...


class Authoriser(Protocol):
    """Asks the user to allow the use of servers."""

    @property
    def identity(self) -> ClientIdentity:
        """Our identity, if one is registered already."""
        ...

    def check(self, server: HttpServer) -> None:
        """Raise AuthorizationRequiredError with a message if the user must not be asked now."""
        ...

    def open(self, server: HttpServer) -> AbstractAsyncContextManager[Consent]:
        """Open a request to the user. Leave the context when the token is there or the login failed.

        Raises McpServerError.
        """
        ...


class ServerAuthorisation(httpx2.Auth):
    """Adds a token to each request to a server, and gets a token when the server requires one."""

    def __init__(
        self, definition: HttpServer, authoriser: Authoriser | None, on_token: Callable[[str], None] | None = None
    ) -> None:
        """Call `on_token` with each token that a request is sent with."""
        self._definition = definition
        self._on_token = on_token
        self._authoriser = authoriser
        self._store = TokenStore(definition.url)
        self._provider: Any = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token if one is required. Raises AuthorizationError."""
        if any(name.lower() == "authorization" for name, _ in self._definition.headers):
            yield request  # the user configured a token
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
                    if outgoing is request and self._on_token is not None:
                        self._on_token(request.headers.get("Authorization", "").rpartition(" ")[2])
                    outgoing = await flow.asend((yield outgoing))
            except StopAsyncIteration:
                return
            except AuthorizationError:
                raise
            except McpServerError as failure:
                raise AuthorizationError(str(failure)) from None

    def _may_ask(self, refusal: httpx2.Response) -> bool:
        """Return whether to log in, before a client is registered. Raises AuthorizationRequiredError.

        A 401 that does not name the scheme may be about another kind of key. Then only a user who asked for the login
        logs in.
        """
        try:
            require_authoriser(self._authoriser, self._definition)
        except AuthorizationRequiredError:
            if "bearer" in refusal.headers.get("www-authenticate", "").lower():
                raise
            return False
        return True

    async def _load_provider(self) -> Any:
        if self._provider is None:
            load = load_in_background(lambda: importlib.import_module("dragoman.mcp.oauth"))
            try:
                oauth = await asyncio.wrap_future(load)
            except ModuleNotFoundError:
                from dragoman.installation import how_to_add

                problem = "it requires a login (OAuth), and the library for that is not installed"
                raise AuthorizationError(f"{problem}; {how_to_add('oauth')}") from None
            with unlogged():  # once more, because the import has created new loggers
                self._provider = await oauth.make_provider(self._definition, self._store, self._authoriser)
        return self._provider


def require_authoriser(authoriser: Authoriser | None, server: HttpServer) -> Authoriser:
    """Return the authoriser. Raises AuthorizationRequiredError if the user must not be asked now."""
    if authoriser is None:
        raise AuthorizationRequiredError(server)
    authoriser.check(server)
    return authoriser


def wants_login(response: httpx2.Response) -> bool:
    """Return whether the server requires a token, or a token with more rights."""
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in challenge)
