"""The guard, which decides on every request. No other part of the bridge reads credentials.

A request must pass these checks in this order, before anything else and before any upgrade:

1. It is unambiguous: one Host, one Origin, one Authorization.
2. Host is on an exact list. A foreign name that was rebound to this machine (DNS rebinding) is not.
3. Origin, if present, is on an exact list. Foreign pages and `null` are refused here.
4. The query contains no token.
5. There is a valid credential. An explicit credential precedes a cookie, because browsers add cookies automatically. A
   request with a cookie may change something only if its Origin is the bridge's own page. There is one exception: the
   WebSocket path for panels accepts the cookie from pages of allowed origins, which have it only on the same host.

The ids of connections and sessions are not credentials.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from dragoman.bridge.guard.answers import AccessDenial, Grant, deny_too_many, deny_unauthorized, deny_unknown
from dragoman.bridge.guard.credentials import OWNER, SHARE_PREFIX, Cookies, metrics_token
from dragoman.bridge.guard.origin import check_host, check_origin, make_origin, normalize_origin, parse_authority
from dragoman.bridge.guard.policy import GuardPolicy
from dragoman.bridge.guard.rate_limit import RateLimiter, peer_of
from dragoman.bridge.guard.stores import AccessUnavailableError, CredentialStores

Scope = Mapping[str, Any]
"""The scope of an ASGI request, http or websocket."""

SUBPROTOCOL = "acp"
TOKEN_PREFIX = "dragoman.token."  # noqa: S105 -- a prefix, not a token

_MAX_QUERY_BYTES = 4096
_MAX_QUERY_FIELDS = 32
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_ONLY_ONCE = ("host", "origin", "authorization", "sec-fetch-site")

_QUERY_NAMES = frozenset({"token", "access_token", "auth_token", "auth", "authorization", "bearer", "api_key"})
"""Names under which other programs accept a token in the query."""

_OWN_SITES = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site for requests that do not come from other pages."""

_PANEL_SITES = _OWN_SITES | {"same-site"}
"""The same, plus pages on other ports of this host. The check of Origin decides which of them are allowed."""

_log = logging.getLogger("dragoman.bridge.guard")


class GuardedRequest(msgspec.Struct, frozen=True):
    """The parts of a request, or of the first request of a WebSocket, that the guard checks."""

    peer: str
    host: str
    origin: str | None
    authorization: str | None
    fetch_site: str | None
    cookie: str
    subprotocols: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    changes: bool
    """Whether the request can change something: it has an unsafe method or asks for a WebSocket."""


def read_request(scope: Scope) -> GuardedRequest | AccessDenial:
    """Read the parts that the guard checks. Deny an ambiguous request."""
    # Two different values could be read differently by a proxy and by the guard, so repeated headers are denied.
    headers = _headers(scope)
    for name in _ONLY_ONCE:
        if len(headers.get(name, ())) > 1:
            return AccessDenial(400, f"there is more than one {name.title()} header; expected one")
    if "host" not in headers or not headers["host"][0]:
        return AccessDenial(400, "there is no Host header; expected the name and port that this bridge is served under")
    query = _query(scope.get("query_string", b""))
    if query is None:
        return AccessDenial(400, f"the query has more than {_MAX_QUERY_BYTES:,} bytes or {_MAX_QUERY_FIELDS} fields")
    is_websocket = scope["type"] == "websocket"
    return GuardedRequest(
        peer=peer_of((scope.get("client") or ("", 0))[0]),
        host=headers["host"][0],
        origin=_only(headers, "origin"),
        authorization=_only(headers, "authorization"),
        fetch_site=_only(headers, "sec-fetch-site"),
        cookie="; ".join(headers.get("cookie", ())),
        subprotocols=tuple(scope.get("subprotocols") or ()) if is_websocket else (),
        query=query,
        changes=is_websocket or scope["method"] not in _SAFE_METHODS,
    )


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    raw: Sequence[tuple[bytes, bytes]] = scope["headers"]
    for name, value in raw:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip(" \t"))
    return found


def _only(headers: Mapping[str, Sequence[str]], name: str) -> str | None:
    return headers[name][0] if name in headers else None


def _query(raw: bytes) -> tuple[tuple[str, str], ...] | None:
    if len(raw) > _MAX_QUERY_BYTES:
        return None
    try:
        return tuple(parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS))
    except ValueError:
        return None


class Guard:
    """Authenticates the requests of one bridge and issues the cookies of browsers."""

    def __init__(self, policy: GuardPolicy, stores: CredentialStores | None = None) -> None:
        stores = stores or CredentialStores()
        self.shares = stores.shares
        self._policy = policy
        self._codes = stores.codes
        self._cookies = Cookies(policy.token, policy.cookie_place, is_secure=policy.is_secure, clock=stores.clock)
        self._failures = RateLimiter(policy.failures)
        self._anonymous = RateLimiter(policy.anonymous)
        self._admitted = RateLimiter(policy.admitted)

    async def authorize(self, scope: Scope, *, for_panel: bool = False) -> Grant | AccessDenial:
        """Return the result of `admit`. If the share is unknown here, look it up first: another node may know it."""
        answer = self.admit(scope, for_panel=for_panel)
        if isinstance(answer, AccessDenial) and answer.unknown_share is not None:
            await self.shares.look_up(answer.unknown_share)
            answer = self.admit(scope, for_panel=for_panel)
        return answer

    def admit(self, scope: Scope, *, for_panel: bool = False) -> Grant | AccessDenial:
        """Return the grant of a request or its denial. With `for_panel`, allowed origins may use the cookie."""
        request = read_request(scope)
        if isinstance(request, AccessDenial):
            return _logged(request, scope)
        denial = self._check_address(request)
        answer = self._check_credentials(request, for_panel=for_panel) if denial is None else denial
        limiter = self._admitted if isinstance(answer, Grant) else self._anonymous
        share_id = answer.share_id if isinstance(answer, Grant) else None
        answer = _limited(limiter, share_id or request.peer) or answer
        return answer if isinstance(answer, Grant) else _logged(answer, scope)

    def admit_metrics(self, scope: Scope) -> Grant | AccessDenial:
        """Return the grant of a request for metrics, which needs the metrics token or the owner's credential."""
        request = read_request(scope)
        if isinstance(request, AccessDenial) or not self._has_metrics_token(request):
            answer = self.admit(scope)
            if isinstance(answer, Grant) and answer.role != "owner":
                return _logged(AccessDenial(403, "metrics need the owner's login or the metrics token"), scope)
            return answer
        denial = self._check_address(request) or _limited(self._admitted, request.peer)
        return Grant("reader", "bearer") if denial is None else _logged(denial, scope)

    def _has_metrics_token(self, request: GuardedRequest) -> bool:
        scheme, _, token = (request.authorization or "").partition(" ")
        return scheme.lower() == "bearer" and metrics_token(self._policy.token).matches(token.strip(" "))

    def admit_public(self, scope: Scope) -> AccessDenial | None:
        """Check a request for the page, its files or the login. It needs a valid Host but no credential."""
        request = read_request(scope)
        if isinstance(request, AccessDenial):
            return _logged(request, scope)
        is_admitted = isinstance(self._read_cookie(request), Grant)
        limiter = self._admitted if is_admitted else self._anonymous
        denial = self._check_address(request) or _limited(limiter, request.peer)
        return None if denial is None else _logged(denial, scope)

    async def new_link_code(self) -> str:
        """Return a short-lived code for a link that logs in one browser of the owner. Raises AccessUnavailableError."""
        return await self._codes.make()

    async def redeem_code(self, code: str) -> str | None:
        """Exchange an owner's code for a `Set-Cookie` value, or return None if it is not valid.

        Raises AccessUnavailableError.
        """
        return self._cookies.make() if await self._codes.redeem(code) else None

    async def redeem_share(self, code: str) -> str | None:
        """Exchange the code of a share for a `Set-Cookie` value, or return None if it is not valid.

        Raises OSError and AccessUnavailableError.
        """
        share = await self.shares.redeem(code)
        return None if share is None else self._cookies.make(f"{SHARE_PREFIX}{share.id}", self.shares.left_s(share))

    def redeem_token(self, token: str) -> str | None:
        """Return the owner's `Set-Cookie` value for the token, or None if the token is wrong."""
        return self._cookies.make() if self._policy.token.matches(token) else None

    def refuse_login(self, scope: Scope) -> AccessDenial:
        """Count an invalid code or token and return its denial."""
        request = read_request(scope)
        if isinstance(request, AccessDenial):
            return request
        reason = (
            "this link or token is not valid: a link works once and expires soon; press Enter in the terminal "
            "of `dragoman serve` for a new one"
        )
        return _logged(self._failed(request, reason), scope)

    def origin_of(self, scope: Scope) -> str | None:
        """Return the origin under which an admitted client reaches the bridge, or None if it is unknown.

        For the bridge's own page it is the Origin header. Programs send no Origin, and other pages send their own. For
        these the origin is built from Host and the scheme under which the bridge serves that name.
        """
        request = read_request(scope)
        authority = None if isinstance(request, AccessDenial) else parse_authority(request.host)
        if isinstance(request, AccessDenial) or authority is None:
            return None
        schemes = ("https", "http") if scope.get("scheme") in {"https", "wss"} else ("http", "https")
        served = [make_origin(scheme, authority) for scheme in schemes]
        own = normalize_origin(request.origin or "")
        if own in served:
            return own
        return next((origin for origin in served if origin in self._policy.origins), served[0])

    def logout_cookie(self) -> str:
        """Return the `Set-Cookie` value that deletes a browser's cookie."""
        return self._cookies.remove()

    def accepted_subprotocol(self, scope: Scope) -> str | None:
        """Return the subprotocol that the WebSocket answer names. It never contains the token."""
        return SUBPROTOCOL if SUBPROTOCOL in (scope.get("subprotocols") or ()) else None

    def _check_address(self, request: GuardedRequest) -> AccessDenial | None:
        denial = check_host(request.host, self._policy.hosts) or check_origin(request.origin, self._policy.origins)
        if denial is not None:
            return denial
        if any(name.lower() in _QUERY_NAMES or self._policy.token.matches(value) for name, value in request.query):
            return AccessDenial(
                400,
                "a token in the address is never accepted, because addresses are kept in histories and logs: send it "
                "as `Authorization: Bearer`; if it was the real one, remove the token file and start again to "
                "replace it",
            )
        return None

    def _check_credentials(self, request: GuardedRequest, *, for_panel: bool) -> Grant | AccessDenial:
        if request.authorization is not None:
            return self._check_bearer(request, request.authorization)
        tokens = [word.removeprefix(TOKEN_PREFIX) for word in request.subprotocols if word.startswith(TOKEN_PREFIX)]
        if tokens:
            return self._check_subprotocol(request, tokens)
        if self._cookies.has_any(request.cookie):
            return self._check_cookie(request, for_panel=for_panel)
        return deny_unauthorized(
            "there is no credential: open the link that `dragoman serve` printed, or send the token as "
            "`Authorization: Bearer`"
        )

    def _check_bearer(self, request: GuardedRequest, authorization: str) -> Grant | AccessDenial:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._policy.token.matches(token.strip(" ")):
            return Grant("owner", "bearer")
        return self._failed(
            request, "the token is wrong; expected `Authorization: Bearer TOKEN` with this bridge's token"
        )

    def _check_subprotocol(self, request: GuardedRequest, tokens: list[str]) -> Grant | AccessDenial:
        if SUBPROTOCOL not in request.subprotocols or len(tokens) > 1:
            return AccessDenial(400, f"expected the subprotocols `{SUBPROTOCOL}` and `{TOKEN_PREFIX}` with the token")
        if self._policy.token.matches(tokens[0]):
            return Grant("owner", "subprotocol")
        return self._failed(request, "the token in the subprotocol is wrong")

    def _check_cookie(self, request: GuardedRequest, *, for_panel: bool) -> Grant | AccessDenial:
        grant = self._read_cookie(request)
        if grant is None:
            return self._failed(
                request,
                "this browser's login has expired; open a new link: press Enter where `dragoman serve` runs, or ask "
                "the owner who shared a session with you",
            )
        if isinstance(grant, AccessDenial):
            return grant
        sites = _PANEL_SITES if for_panel else _OWN_SITES
        is_own_site = request.fetch_site is None or request.fetch_site.lower() in sites
        origins = self._policy.origins if for_panel else self._policy.own_origins
        # Browsers send no Sec-Fetch-Site with a WebSocket, so only its Origin shows which page opened it.
        if not is_own_site or check_origin(request.origin, origins) is not None:
            return AccessDenial(
                403,
                "another page sent this request, and only the bridge's own page may use its cookie; if the bridge is "
                "served under that name, start it with `--public-url`",
            )
        if request.changes and request.origin is None:
            return AccessDenial(403, "a request with a cookie needs an Origin, so that it is known which page sent it")
        return grant

    def _read_cookie(self, request: GuardedRequest) -> Grant | AccessDenial | None:
        subject = self._cookies.read(request.cookie)
        if subject is None or subject == OWNER:
            return None if subject is None else Grant("owner", "cookie")
        share_id = subject.removeprefix(SHARE_PREFIX)
        try:
            share = self.shares.find(share_id)
        except AccessUnavailableError as error:
            return deny_unknown(str(error), share_id)
        return None if share is None else Grant("reader", "cookie", share)

    def _failed(self, request: GuardedRequest, reason: str) -> AccessDenial:
        wait_s = self._failures.acquire(request.peer)
        if wait_s:
            return deny_too_many(
                "too many wrong credentials came from this address; wait a minute, then try again", wait_s
            )
        return deny_unauthorized(reason)


def _limited(limiter: RateLimiter, key: str) -> AccessDenial | None:
    wait_s = limiter.acquire(key)
    return deny_too_many("too many requests came from this address or link; wait a moment", wait_s) if wait_s else None


def _logged(denial: AccessDenial, scope: Scope) -> AccessDenial:
    """Log a denial without any part of the request, because each part could contain a token."""
    _log.info("refused %s of %s with %d: %s", scope["type"], scope.get("client"), denial.status, denial.reason)
    return denial
