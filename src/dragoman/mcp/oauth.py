"""The SDK's OAuth client for one server, with our token store and our requests to the user.

The SDK's own flow blocks other requests until the first one is answered, and asks the user once per refused request.
Here the flow only gets the token, for one request at a time. A refused request first checks whether another request or
process has already got a token. Then it tries a refresh.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from dragoman.errors import McpServerError
from dragoman.mcp.authorisation import (
    Authoriser,
    ClientIdentity,
    Consent,
    ConsentResult,
    require_authoriser,
    wants_login,
)
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.http_errors import MAX_BYTES_KEY, check_reach
from dragoman.mcp.token_store import TokenStore
from dragoman.text import one_line
from dragoman.text.secret import SecretHider

NO_REDIRECT = "http://127.0.0.1/callback"
"""The redirect address for clients that cannot ask the user."""

MAX_LOGINS = 3
"""Maximum number of logins per request: for a token, and for more rights."""

MAX_SENDS = 8
"""Maximum number of times to send one request, including after another process renewed the token."""

MAX_ANSWER_BYTES = 256 * 1024
"""Maximum size in bytes of metadata, of a registration and of tokens."""

FAILED_STATUS = 500
"""From this status on, the authorisation server has failed without judging the token."""


class _Storage:
    """Stores the SDK's state in our store, with the metadata that a later refresh needs."""

    def __init__(self, store: TokenStore) -> None:
        self.store = store
        self.provider: _Provider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return _read(OAuthToken, (await self.store.load()).get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None  # noqa: S101 -- set by `make_provider`
        context = self.provider.context
        fields = {
            "tokens": _write(tokens),
            "expires_at": context.token_expiry_time,
            "client": _write(context.client_info),
            "metadata": _write(context.oauth_metadata),
            "resource": _write(context.protected_resource_metadata),
            "server": context.auth_server_url,
        }
        await self.store.save(self.provider.issuer, fields)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return _read(OAuthClientInformationFull, (await self.store.load()).get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        assert self.provider is not None  # noqa: S101 -- set by `make_provider`
        await self.store.save(self.provider.issuer, {"client": _write(client_info)})


class _Provider(OAuthClientProvider):
    """The SDK's flow, started from the refusal of a request."""

    storage: _Storage
    definition: HttpServer
    authoriser: Authoriser | None
    registered: OAuthClientInformationFull | None = None
    """The client that the user registered by hand."""
    consent: Consent | None = None
    code: str = ""
    one_at_a_time: asyncio.Lock
    """Serialises logins, so that concurrent refusals cause one refresh and one question to the user."""

    @property
    def issuer(self) -> str:
        return self._expected_issuer()

    @property
    def has_valid_token(self) -> bool:
        return self.context.is_token_valid()

    @property
    def header(self) -> str:
        tokens = self.context.current_tokens
        return f"Bearer {tokens.access_token}" if tokens else ""

    async def load(self) -> None:
        """Load the stored tokens and metadata."""
        await self._initialize()
        content, context = await self.storage.store.load(), self.context
        expires_at = content.get("expires_at")
        context.token_expiry_time = float(expires_at) if isinstance(expires_at, int | float) else None
        context.oauth_metadata = _read(OAuthMetadata, content.get("metadata"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, content.get("resource"))
        context.auth_server_url = content.get("server")
        context.client_info = self.registered or context.client_info

    async def authorise(
        self, request: httpx2.Request, refusal: httpx2.Response | None
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token, and get a token if it is refused. Raises McpServerError."""
        attempts = _Attempts()
        for _ in range(MAX_SENDS):
            sent = request.headers.get("Authorization")
            if not self._is_renewed(sent, refusal):
                if attempts.logins and (attempts.logins == MAX_LOGINS or _may_refresh(refusal)):
                    return  # a new token was refused, so return the refusal
                async with aclosing(self._get_token(request, refusal, attempts)) as flow:
                    try:
                        outgoing = await anext(flow)
                        while True:
                            outgoing = await flow.asend((yield outgoing))
                    except StopAsyncIteration:
                        pass
            if self.has_valid_token:
                request.headers["Authorization"] = self.header
            refusal = yield request
            if not wants_login(refusal):
                return

    async def _get_token(
        self, request: httpx2.Request, refusal: httpx2.Response | None, attempts: "_Attempts"
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the requests that replace an expired or refused token."""
        sent = request.headers.get("Authorization")
        async with self.one_at_a_time:
            may_refresh = not attempts.refresh and _may_refresh(refusal) and self.context.can_refresh_token()
            if may_refresh and not self._is_renewed(sent, refusal):
                attempts.refresh = True
                async with self.storage.store.locked():
                    if not await self._load_newer(sent):
                        await self._finish_refresh((yield await self._check_request(await self._refresh_token())))
            if refusal is None or self._is_renewed(sent, refusal):
                return
            attempts.logins += 1
            async with aclosing(self._log_in(request, refusal)) as flow:
                try:
                    outgoing = await anext(flow)
                    while True:
                        outgoing = await flow.asend((yield outgoing))
                except StopAsyncIteration:
                    pass

    def _is_renewed(self, sent: str | None, refusal: httpx2.Response | None) -> bool:
        """Return whether there is a valid token other than the refused one."""
        return self.has_valid_token and (refusal is None or self.header != sent)

    async def _load_newer(self, sent: str | None) -> bool:
        """Load a token that another process has stored since. Return whether there is one."""
        before = self.header
        await self.load()
        return self.has_valid_token and self.header not in (before, sent)

    async def _finish_refresh(self, response: httpx2.Response) -> None:
        if response.status_code >= FAILED_STATUS:
            problem = f"its authorisation server answered {response.status_code} when the token was renewed"
            raise McpServerError(f"{problem}; the renewal is retried later")
        if not await self._handle_refresh_response(response):
            # A refused refresh token stays refused, so it is not sent with each attempt to connect.
            await self.storage.store.save(self.issuer, {"tokens": None})

    async def _log_in(
        self, request: httpx2.Request, refusal: httpx2.Response
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the requests of a login, in which the user agrees. Raises McpServerError."""
        authoriser = require_authoriser(self.authoriser, self.definition)
        self._check_resource_metadata(refusal)
        try:
            async with authoriser.open(self.definition) as self.consent:
                self._use_redirect(self.consent.redirect_uri)
                async with aclosing(self.async_auth_flow(request)) as flow:
                    outgoing = await anext(flow)
                    answer = refusal
                    while (outgoing := await flow.asend(answer)) is not request:
                        answer = yield await self._check_request(outgoing)
        except OAuthFlowError as problem:
            raise McpServerError(f"the authorisation failed: {one_line(self._hide(str(problem)), 300)}") from None
        except ValueError as problem:
            raise McpServerError(
                f"the authorisation failed: the answer of its server is invalid ({type(problem).__name__})"
            ) from None
        finally:
            self.consent = None

    def _check_resource_metadata(self, refusal: httpx2.Response) -> None:
        """Refuse metadata about the server from another host. Raises McpServerError."""
        named = extract_resource_metadata_from_www_auth(refusal)
        host, own = urlsplit(named or self.definition.url).hostname, urlsplit(self.definition.url).hostname
        if host != own:
            problem = f"the authorisation failed: it names its metadata at {one_line(host or 'no host', 100)}"
            raise McpServerError(f"{problem}; expected an address at its own host {own}")

    async def _check_request(self, request: httpx2.Request) -> httpx2.Request:
        """Return a login request after checking that it may be sent. Raises McpServerError."""
        await self.check_address(str(request.url))
        # Compressed bodies could be far longer than their bytes on the wire.
        request.headers["Accept-Encoding"] = "identity"
        request.extensions = {**request.extensions, MAX_BYTES_KEY: MAX_ANSWER_BYTES}
        return request

    async def check_address(self, url: str) -> None:
        """Refuse unsafe addresses and authorisation servers. Raises McpServerError."""
        await check_reach(url, self.definition.url)
        metadata = self.context.oauth_metadata
        methods = [] if metadata is None else metadata.code_challenge_methods_supported or []
        # MCP 2025-11-25, authorisation: a server whose metadata names no methods does not support PKCE.
        if metadata is not None and "S256" not in methods:
            offered = f"PKCE only with {one_line(', '.join(methods), 100)}" if methods else "no PKCE"
            raise McpServerError(
                f"its authorisation server offers {offered}, expected S256, which protects the login; ask its "
                "operator to offer S256"
            )

    def _use_redirect(self, address: str) -> None:
        """Set the redirect address. Forget a client that was registered for another address."""
        metadata = OAuthClientMetadata.model_validate({"client_name": "Dragoman", "redirect_uris": [address]})
        context = self.context
        context.client_metadata = metadata.model_copy(update={"scope": context.client_metadata.scope})
        client = context.client_info
        is_ours = self.registered is not None or (
            client is not None and client.client_id == context.client_metadata_url
        )
        if client is not None and not is_ours and address not in map(str, client.redirect_uris or []):
            context.client_info = None

    def _hide(self, text: str) -> str:
        """Redact our tokens and secrets from text the other side sent."""
        tokens, client = self.context.current_tokens, self.context.client_info
        secrets = [self.code, client.client_secret if client else None]
        secrets += [tokens.access_token, tokens.refresh_token] if tokens else []
        return SecretHider(secret for secret in secrets if secret).clean(text)


class _Attempts:
    """The refreshes and logins attempted for one request."""

    def __init__(self) -> None:
        self.refresh = False
        self.logins = 0


async def make_provider(definition: HttpServer, store: TokenStore, authoriser: Authoriser | None) -> _Provider:
    """Return the OAuth client of a server, with its stored state. Raises McpServerError."""
    identity = authoriser.identity if authoriser else ClientIdentity()
    metadata = OAuthClientMetadata.model_validate({"client_name": "Dragoman", "redirect_uris": [NO_REDIRECT]})
    storage = _Storage(store)

    async def redirect(url: str) -> None:
        assert provider.consent is not None  # noqa: S101 -- the flow runs within it
        await provider.check_address(url)
        results.append(await provider.consent.ask(url))

    async def callback() -> AuthorizationCodeResult:
        result = results.pop()
        provider.code = result.code
        return AuthorizationCodeResult(code=result.code, state=result.state, iss=result.issuer)

    results: list[ConsentResult] = []
    try:
        provider = _Provider(definition.url, metadata, storage, redirect, callback, identity.metadata_url)
    except ValueError:
        raise McpServerError("the URL of the client metadata document must use https and have a path") from None
    provider.storage, provider.definition, provider.authoriser = storage, definition, authoriser
    provider.one_at_a_time = asyncio.Lock()
    storage.provider = provider
    if identity.client_id is not None:
        provider.registered = OAuthClientInformationFull(
            client_id=identity.client_id,
            client_secret=identity.client_secret,
            redirect_uris=None,
            token_endpoint_auth_method="client_secret_basic" if identity.client_secret else "none",
        )
    await provider.load()
    return provider


def _may_refresh(refusal: httpx2.Response | None) -> bool:
    """Return whether a refresh may help. It does not help a token with too few rights."""
    return refusal is None or refusal.status_code == 401


def _read(model: type[Any], content: Any) -> Any:
    try:
        return None if content is None else model.model_validate(content)
    except ValueError:  # from pydantic
        return None


def _write(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
