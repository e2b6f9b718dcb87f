"""The SDK's OAuth client for one server, with our file for its tokens and our way to the person."""

from collections.abc import AsyncGenerator
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
from dragoman.mcp.authorisation import Authoriser, ClientIdentity, ConsentResult, NeedsAuthorisation, TokenFile
from dragoman.mcp.definition import HttpServer
from dragoman.text import one_line

NOWHERE = "http://127.0.0.1/callback"
"""The address to come back to where nobody can be sent away."""

_LONG_AGO = 1.0

MAX_STEP_UPS = 3
"""Times that a server may want more rights within one request."""


class _Storage:
    """Keeps what the SDK learns in our file, with the metadata that a later refresh needs."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self.provider: _Provider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return _read(OAuthToken, self._file.load().get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None  # noqa: S101 -- set by whoever makes both
        context = self.provider.context
        self._save(
            tokens=_write(tokens),
            expires_at=context.token_expiry_time,
            metadata=_write(context.oauth_metadata),
            resource=_write(context.protected_resource_metadata),
            issuer=context.auth_server_url,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return _read(OAuthClientInformationFull, self._file.load().get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._save(client=_write(client_info))

    def restore(self, provider: "_Provider") -> None:
        """Give the SDK what it knew when the tokens were kept."""
        content, context = self._file.load(), provider.context
        expires_at = content.get("expires_at")
        context.token_expiry_time = float(expires_at) if isinstance(expires_at, int | float) else None
        context.oauth_metadata = _read(OAuthMetadata, content.get("metadata"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, content.get("resource"))
        context.auth_server_url = content.get("issuer")

    def _save(self, **fields: Any) -> None:
        self._file.save({**self._file.load(), **fields})


class _Provider(OAuthClientProvider):
    """The SDK's flow, begun with the refusal that a request has met already."""

    storage: _Storage
    _is_restored = False

    async def prepare(self) -> None:
        """Load what was kept."""
        await self._initialize()
        self._is_restored = self.context.current_tokens is not None

    async def _initialize(self) -> None:
        await super()._initialize()
        self.storage.restore(self)

    @property
    def has_valid_token(self) -> bool:
        return self._initialized and self.context.is_token_valid()

    @property
    def header(self) -> str:
        assert self.context.current_tokens is not None  # noqa: S101 -- valid, as the caller has seen
        return f"Bearer {self.context.current_tokens.access_token}"

    async def begin(
        self, request: httpx2.Request, refusal: httpx2.Response | None
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Get a token for a request and send it; raises ServerFailure."""
        if (
            refusal is not None
            and refusal.status_code == 401
            and self._is_restored
            and self.context.can_refresh_token()
        ):
            # It is not known how old the token is: the person is asked only when it cannot be refreshed.
            self.context.token_expiry_time, refusal = _LONG_AGO, None
        self._is_restored = False
        try:
            for _ in range(MAX_STEP_UPS):
                last = None
                flow = self.async_auth_flow(request)
                try:
                    outgoing = await anext(flow)
                    while True:
                        if outgoing is request and refusal is not None:
                            answer, refusal = refusal, None
                        else:
                            answer = yield outgoing
                        last = answer if outgoing is request else last
                        outgoing = await flow.asend(answer)
                except StopAsyncIteration:
                    pass
                finally:
                    await flow.aclose()
                if last is None or not _wants_more(last):
                    return
                refusal = last
        except OAuthFlowError as problem:
            raise ServerFailure(f"the authorisation failed: {one_line(str(problem), 300)}") from None
        except ValueError as problem:
            raise ServerFailure(f"the authorisation failed: {type(problem).__name__} in what it answered") from None


def make_provider(definition: HttpServer, file: TokenFile, authoriser: Authoriser | None) -> _Provider:
    """Return the OAuth client of a server."""
    identity = authoriser.identity if authoriser else ClientIdentity()
    back = authoriser.redirect_uri if authoriser else NOWHERE
    metadata = OAuthClientMetadata.model_validate({"client_name": "Dragoman", "redirect_uris": [back]})
    results: list[ConsentResult] = []

    async def redirect(url: str) -> None:
        if authoriser is None:
            raise NeedsAuthorisation(definition.name)
        results.append(await authoriser.ask(definition.name, url))

    async def callback() -> AuthorizationCodeResult:
        result = results.pop()
        return AuthorizationCodeResult(code=result.code, state=result.state, iss=result.issuer)

    storage = _Storage(file)
    provider = _Provider(definition.url, metadata, storage, redirect, callback, identity.metadata_url)
    provider.storage = storage
    storage.provider = provider
    if identity.client_id is not None:
        provider.context.client_info = None
        registered = OAuthClientInformationFull(
            client_id=identity.client_id,
            client_secret=identity.client_secret,
            redirect_uris=metadata.redirect_uris,
            token_endpoint_auth_method="client_secret_basic" if identity.client_secret else "none",
        )
        file.save({**file.load(), "client": _write(registered)})
    return provider


def _wants_more(response: httpx2.Response) -> bool:
    return response.status_code == 403 and "insufficient_scope" in response.headers.get("www-authenticate", "")


def _read(model: type[Any], content: Any) -> Any:
    try:
        return None if content is None else model.model_validate(content)
    except ValueError:  # of pydantic
        return None


def _write(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
