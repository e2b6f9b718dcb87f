"""The SDK's OAuth client for one server, with our store for its tokens and our way to the person.

The SDK's own flow keeps other requests waiting until the first has its answer, and asks the person for every request
that is refused. Here it runs for the token alone, for one request at a time; a refused request first looks whether
another request, or another process, has got a token meanwhile, and then tries a refresh.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from dragoman.errors import ServerFailure
from dragoman.mcp.authorisation import Authoriser, ClientIdentity, Consent, ConsentResult, checked, wants_login
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.token_store import TokenStore
from dragoman.text import one_line
from dragoman.text.secret import SecretHider

NOWHERE = "http://127.0.0.1/callback"
"""The address to come back to where nobody can be sent away."""

MAX_LOGINS = 3
"""Times that the person is asked within one request: for a token, and for more rights."""

MAX_SENDS = 8
"""Times that one request is sent, also where others renew the token meanwhile."""

BROKEN = 500
"""From this status on the server for authorisations has failed, and said nothing of the token."""


class _Storage:
    """Keeps what the SDK learns in our store, with the metadata that a later refresh needs."""

    def __init__(self, store: TokenStore) -> None:
        self.store = store
        self.provider: _Provider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return _read(OAuthToken, (await self.store.load()).get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None  # noqa: S101 -- set by whoever makes both
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
        assert self.provider is not None  # noqa: S101 -- set by whoever makes both
        await self.store.save(self.provider.issuer, {"client": _write(client_info)})


class _Provider(OAuthClientProvider):
    """The SDK's flow, begun with the refusal that a request has met already."""

    storage: _Storage
    definition: HttpServer
    authoriser: Authoriser | None
    registered: OAuthClientInformationFull | None = None
    """The client that a person has registered by hand."""
    consent: Consent | None = None
    code: str = ""
    one_at_a_time: asyncio.Lock
    """Requests that are refused together lead to one refresh, and to one question."""

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
        """Take what is kept."""
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
        """Send a request with a token, and get one where it is refused; raises ServerFailure."""
        tried = _Tried()
        for _ in range(MAX_SENDS):
            sent = request.headers.get("Authorization")
            if not self._is_renewed(sent, refusal):
                if tried.logins and (tried.logins == MAX_LOGINS or _is_too_old(refusal)):
                    return  # new tokens are good for nothing: the refusal is the answer
                async with aclosing(self._get_token(request, refusal, tried)) as flow:
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
        self, request: httpx2.Request, refusal: httpx2.Response | None, tried: "_Tried"
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Get a token in the place of one that has run out or was refused; yields the requests for that."""
        sent = request.headers.get("Authorization")
        async with self.one_at_a_time:
            may_refresh = not tried.refresh and _is_too_old(refusal) and self.context.can_refresh_token()
            if may_refresh and not self._is_renewed(sent, refusal):
                tried.refresh = True
                async with self.storage.store.locked():
                    if not await self._take_newer(sent):
                        await self._finish_refresh((yield await self._refresh_token()))
            if refusal is None or self._is_renewed(sent, refusal):
                return
            tried.logins += 1
            async with aclosing(self._log_in(request, refusal)) as flow:
                try:
                    outgoing = await anext(flow)
                    while True:
                        outgoing = await flow.asend((yield outgoing))
                except StopAsyncIteration:
                    pass

    def _is_renewed(self, sent: str | None, refusal: httpx2.Response | None) -> bool:
        """Tell whether there is a token, and not the one that was refused."""
        return self.has_valid_token and (refusal is None or self.header != sent)

    async def _take_newer(self, sent: str | None) -> bool:
        """Take the token that another process has got meanwhile; tell whether there is one."""
        before = self.header
        await self.load()
        return self.has_valid_token and self.header not in (before, sent)

    async def _finish_refresh(self, response: httpx2.Response) -> None:
        if response.status_code >= BROKEN:
            words = f"its server for authorisations answered {response.status_code} where the token was to be renewed"
            raise ServerFailure(f"{words}; it is tried again later")
        if not await self._handle_refresh_response(response):
            # A refresh token that is refused stays refused: it is not sent again with each attempt to connect.
            await self.storage.store.save(self.issuer, {"tokens": None})

    async def _log_in(
        self, request: httpx2.Request, refusal: httpx2.Response
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Have the person agree, and get a token; yields the requests for that. Raises ServerFailure."""
        authoriser = checked(self.authoriser, self.definition)
        try:
            async with authoriser.open(self.definition) as self.consent:
                self._use_redirect(self.consent.redirect_uri)
                async with aclosing(self.async_auth_flow(request)) as flow:
                    outgoing = await anext(flow)
                    answer = refusal
                    while (outgoing := await flow.asend(answer)) is not request:
                        answer = yield outgoing
        except OAuthFlowError as problem:
            raise ServerFailure(f"the authorisation failed: {one_line(self._hide(str(problem)), 300)}") from None
        except ValueError as problem:
            raise ServerFailure(f"the authorisation failed: {type(problem).__name__} in what it answered") from None
        finally:
            self.consent = None

    def _use_redirect(self, address: str) -> None:
        """Come back to this address; a client that was registered for others is registered anew."""
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
        """Hide in the words of another what is ours alone."""
        tokens, client = self.context.current_tokens, self.context.client_info
        secrets = [self.code, client.client_secret if client else None]
        secrets += [tokens.access_token, tokens.refresh_token] if tokens else []
        return SecretHider(secret for secret in secrets if secret).clean(text)


class _Tried:
    """What was tried to have one request allowed."""

    def __init__(self) -> None:
        self.refresh = False
        self.logins = 0


async def make_provider(definition: HttpServer, store: TokenStore, authoriser: Authoriser | None) -> _Provider:
    """Return the OAuth client of a server, with what is kept of it; raises ServerFailure."""
    identity = authoriser.identity if authoriser else ClientIdentity()
    metadata = OAuthClientMetadata.model_validate({"client_name": "Dragoman", "redirect_uris": [NOWHERE]})
    storage = _Storage(store)

    async def redirect(url: str) -> None:
        assert provider.consent is not None  # noqa: S101 -- the flow runs within it
        results.append(await provider.consent.ask(url))

    async def callback() -> AuthorizationCodeResult:
        result = results.pop()
        provider.code = result.code
        return AuthorizationCodeResult(code=result.code, state=result.state, iss=result.issuer)

    results: list[ConsentResult] = []
    try:
        provider = _Provider(definition.url, metadata, storage, redirect, callback, identity.metadata_url)
    except ValueError:
        raise ServerFailure("the address of the document that describes us has to be https, with a path") from None
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


def _is_too_old(refusal: httpx2.Response | None) -> bool:
    """Tell whether a refresh may help: a token that allows too little is not refreshed."""
    return refusal is None or refusal.status_code == 401


def _read(model: type[Any], content: Any) -> Any:
    try:
        return None if content is None else model.model_validate(content)
    except ValueError:  # of pydantic
        return None


def _write(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
