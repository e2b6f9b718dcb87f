"""Authorisation at servers (OAuth): who asks the person, where tokens are kept, and how requests get them.

The protocol itself is the SDK's (`oauth`), which is imported when a server refuses a request with 401, or when there
is a token already. A server whose tokens are missing fails alone, and its reason names `dragoman mcp login`.
"""

import asyncio
import hashlib
import importlib
import os
import secrets
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Protocol

import httpx2
import msgspec

from dragoman.errors import ServerFailure
from dragoman.home import home
from dragoman.library_logs import unlogged
from dragoman.loading import load_in_background
from dragoman.mcp.definition import HttpServer

FOLDER = "mcp-tokens"


class NeedsAuthorisation(ServerFailure):
    """The server wants a person to agree, and there is nobody to ask."""

    def __init__(self, server: str) -> None:
        super().__init__(f"it wants you to log in: run `dragoman mcp login {server}`, then restart it")


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


class Authoriser(Protocol):
    """Asks the person to agree to the use of a server."""

    @property
    def redirect_uri(self) -> str:
        """The address to which the person is sent back."""
        ...

    @property
    def identity(self) -> ClientIdentity:
        """How we are known already."""
        ...

    async def ask(self, server: str, url: str) -> ConsentResult:
        """Show the person an address, and wait for the way back; raises ServerFailure."""
        ...


class TokenFile:
    """The tokens for one server, readable by its owner alone; `save` replaces the file as a whole."""

    def __init__(self, url: str, folder: Path | None = None) -> None:
        name = hashlib.sha256(url.encode()).hexdigest()[:32]
        self.path = (folder or home() / FOLDER) / f"{name}.json"

    def load(self) -> dict[str, Any]:
        """Return what was saved; empty for nothing, or for what cannot be read."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            return {}

    def save(self, content: dict[str, Any]) -> None:
        """Replace the file; raises ServerFailure."""
        new = self.path.with_suffix(f".{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(content))
            new.replace(self.path)
        except OSError as error:
            raise ServerFailure(f"its tokens cannot be kept in {self.path.parent}: {error.strerror}") from None

    def remove(self) -> bool:
        """Forget the tokens; tell whether there were any."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True


class ServerAuthorisation(httpx2.Auth):
    """Puts a token on each request to a server, and gets one when the server wants it.

    The SDK's own flow keeps other requests waiting until the first has its answer; so it runs only when there is
    something to do: a refusal, or a token that has run out.
    """

    def __init__(self, definition: HttpServer, authoriser: Authoriser | None) -> None:
        self._definition = definition
        self._authoriser = authoriser
        self._file = TokenFile(definition.url)
        self._provider: Any = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, with what it takes to be allowed to; raises ServerFailure."""
        if any(name.lower() == "authorization" for name, _ in self._definition.headers):
            yield request  # the person has given a token of their own
            return
        refusal: httpx2.Response | None = None
        if self._provider is None and self._file.path.exists():
            await self._load_provider()
        if self._provider is None or self._provider.has_valid_token:
            if self._provider is not None:
                request.headers["Authorization"] = self._provider.header
            refusal = yield request
            if not _wants_authorisation(refusal):
                return
            if self._authoriser is None and self._provider is None:
                # Nobody is registered at a server without a person who wants that.
                if "bearer" in refusal.headers.get("www-authenticate", "").lower():
                    raise NeedsAuthorisation(self._definition.name)
                return
            await self._load_provider()
        assert self._provider is not None  # noqa: S101 -- loaded on either way
        flow = self._provider.begin(request, refusal)
        try:
            outgoing = await anext(flow)
            while True:
                outgoing = await flow.asend((yield outgoing))
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _load_provider(self) -> None:
        if self._provider is None:
            load = load_in_background(lambda: importlib.import_module("dragoman.mcp.oauth"))
            oauth = await asyncio.wrap_future(load)
            with unlogged():  # once more, because its loggers came with the import
                provider = oauth.make_provider(self._definition, self._file, self._authoriser)
                await provider.prepare()
            self._provider = provider


def _wants_authorisation(response: httpx2.Response) -> bool:
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in challenge)
