"""The guard: decides which requests are let in. Nothing else in the bridge reads a credential.

A request is checked in this order, before it reaches anything and before any upgrade:

1. It is unambiguous: one Host, one Origin, one Authorization.
2. Host is on an exact list. A foreign name that was rebound to this machine (DNS rebinding) is not.
3. Origin, if there is one, is on an exact list. A foreign page, and `null`, is refused here.
4. No token is in the query.
5. There is a valid credential. An explicit one counts before a cookie, which a browser adds by itself: a cookie can
   change something only if Origin, too, says that our own page sent the request. At one address, a WebSocket for
   panels of other pages, the page of an allowed origin may use the cookie; it has it only on the same host.

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
from dragoman.bridge.guard.stores import AccessUnavailable, CredentialStores

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
"""Values of Sec-Fetch-Site for requests that no other page made."""

_PANEL_SITES = _OWN_SITES | {"same-site"}
"""The same with pages at other ports of this host: Origin says which of them are allowed."""

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
    """Whether it can change something: it has an unsafe method, or asks for a WebSocket."""


def read_request(scope: Scope) -> GuardedRequest | AccessDenial:
    """Read the parts that the guard checks; a request that is ambiguous is denied."""
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
    """Lets requests in, and gives browsers their cookies, for one bridge."""

    def __init__(self, policy: GuardPolicy, stores: CredentialStores | None = None) -> None:
        stores = stores or CredentialStores()
        self.shares = stores.shares
        self._policy = policy
        self._codes = stores.codes
        self._cookies = Cookies(policy.token, policy.cookie_place, is_secure=policy.is_secure, clock=stores.clock)
        self._failures = RateLimiter(policy.failures)
        self._anonymous = RateLimiter(policy.anonymous)
        self._admitted = RateLimiter(policy.admitted)

    async def let_in(self, scope: Scope, *, for_panel: bool = False) -> Grant | AccessDenial:
        """Do as `admit` does, after a share that is not known here was looked up: another node may have made it."""
        answer = self.admit(scope, for_panel=for_panel)
        if isinstance(answer, AccessDenial) and answer.unknown_share is not None:
            await self.shares.look_up(answer.unknown_share)
            answer = self.admit(scope, for_panel=for_panel)
        return answer

    def admit(self, scope: Scope, *, for_panel: bool = False) -> Grant | AccessDenial:
        """Return the grant of a request, or why it is denied; `for_panel`: allowed origins may use the cookie."""
        request = read_request(scope)
        if isinstance(request, AccessDenial):
            return _logged(request, scope)
        denial = self._check_address(request)
        sites = _PANEL_SITES if for_panel else _OWN_SITES
        answer = self._check_credentials(request, sites) if denial is None else denial
        limiter = self._admitted if isinstance(answer, Grant) else self._anonymous
        answer = _limited(limiter, request.peer) or answer
        return answer if isinstance(answer, Grant) else _logged(answer, scope)

    def admit_metrics(self, scope: Scope) -> Grant | AccessDenial:
        """Return the grant of a request for the figures of the bridge: with the token for metrics, or of an owner."""
        request = read_request(scope)
        if isinstance(request, AccessDenial) or not self._has_metrics_token(request):
            answer = self.admit(scope)
            if isinstance(answer, Grant) and answer.role != "owner":
                return _logged(AccessDenial(403, "the figures are for the owner and for the token for metrics"), scope)
            return answer
        denial = self._check_address(request) or _limited(self._admitted, request.peer)
        return Grant("reader", "bearer") if denial is None else _logged(denial, scope)

    def _has_metrics_token(self, request: GuardedRequest) -> bool:
        scheme, _, token = (request.authorization or "").partition(" ")
        return scheme.lower() == "bearer" and metrics_token(self._policy.token).matches(token.strip(" "))

    def admit_public(self, scope: Scope) -> AccessDenial | None:
        """Check a request for the page, its files or the login, which needs the right name and no credential."""
        request = read_request(scope)
        if isinstance(request, AccessDenial):
            return _logged(request, scope)
        is_admitted = isinstance(self._read_cookie(request), Grant)
        limiter = self._admitted if is_admitted else self._anonymous
        denial = self._check_address(request) or _limited(limiter, request.peer)
        return None if denial is None else _logged(denial, scope)

    async def new_link_code(self) -> str:
        """Return a code for a link that makes a browser an owner's; it works once, and not for long.

        Raises AccessUnavailable.
        """
        return await self._codes.make()

    async def redeem_code(self, code: str) -> str | None:
        """Use an owner's code up, and return the `Set-Cookie` for it; None if it is not valid.

        Raises AccessUnavailable.
        """
        return self._cookies.make() if await self._codes.redeem(code) else None

    async def redeem_share(self, code: str) -> str | None:
        """Use the code of a share up, and return the `Set-Cookie` for it; None if it is not valid.

        Raises OSError, AccessUnavailable.
        """
        share = await self.shares.redeem(code)
        return None if share is None else self._cookies.make(f"{SHARE_PREFIX}{share.id}", self.shares.left_s(share))

    def redeem_token(self, token: str) -> str | None:
        """Return the owner's `Set-Cookie` for the token; None if it is not the token."""
        return self._cookies.make() if self._policy.token.matches(token) else None

    def refuse_login(self, scope: Scope) -> AccessDenial:
        """Count an invalid code or token, and return the answer to it."""
        request = read_request(scope)
        if isinstance(request, AccessDenial):
            return request
        reason = (
            "this link or token is not good: a link works once, and not for long; press Enter where `dragoman serve` "
            "runs for a fresh one"
        )
        return _logged(self._failed(request, reason), scope)

    def origin_of(self, scope: Scope) -> str | None:
        """Return the origin at which a client that was let in reaches the bridge; None if that is not known.

        The page's own Origin is that. Programs send none, and pages of other origins send theirs: for those it is made
        of Host, with the scheme under which the bridge is served by that name.
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
        """Return the `Set-Cookie` that makes a browser forget its cookie."""
        return self._cookies.remove()

    def accepted_subprotocol(self, scope: Scope) -> str | None:
        """Return the subprotocol for the answer to a WebSocket request, which is never the one with the token."""
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

    def _check_credentials(self, request: GuardedRequest, sites: frozenset[str]) -> Grant | AccessDenial:
        if request.authorization is not None:
            return self._check_bearer(request, request.authorization)
        tokens = [word.removeprefix(TOKEN_PREFIX) for word in request.subprotocols if word.startswith(TOKEN_PREFIX)]
        if tokens:
            return self._check_subprotocol(request, tokens)
        if self._cookies.has_any(request.cookie):
            return self._check_cookie(request, sites)
        return deny_unauthorized(
            "there is no credential: open the link that `dragoman serve` printed, or send the token as "
            "`Authorization: Bearer`"
        )

    def _check_bearer(self, request: GuardedRequest, authorization: str) -> Grant | AccessDenial:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._policy.token.matches(token.strip(" ")):
            return Grant("owner", "bearer")
        return self._failed(request, "the token in Authorization is not this bridge's; expected `Bearer` and the token")

    def _check_subprotocol(self, request: GuardedRequest, tokens: list[str]) -> Grant | AccessDenial:
        if SUBPROTOCOL not in request.subprotocols or len(tokens) > 1:
            return AccessDenial(400, f"expected the subprotocols `{SUBPROTOCOL}` and `{TOKEN_PREFIX}` with the token")
        if self._policy.token.matches(tokens[0]):
            return Grant("owner", "subprotocol")
        return self._failed(request, "the token in the subprotocol is not this bridge's")

    def _check_cookie(self, request: GuardedRequest, sites: frozenset[str]) -> Grant | AccessDenial:
        grant = self._read_cookie(request)
        if grant is None:
            return self._failed(
                request,
                "this browser's login is over; open a fresh link: press Enter where `dragoman serve` runs, or ask "
                "the owner who shared a session with you",
            )
        if isinstance(grant, AccessDenial):
            return grant
        if request.fetch_site is not None and request.fetch_site.lower() not in sites:
            return AccessDenial(
                403, "another page sent this request, and only the bridge's own page may use its cookie"
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
        except AccessUnavailable as error:
            return deny_unknown(str(error), share_id)
        return None if share is None else Grant("reader", "cookie", share)

    def _failed(self, request: GuardedRequest, reason: str) -> AccessDenial:
        wait_s = self._failures.take(request.peer)
        if wait_s:
            return deny_too_many(
                "too many wrong credentials came from this address; wait, then try the right one", wait_s
            )
        return deny_unauthorized(reason)


def _limited(limiter: RateLimiter, peer: str) -> AccessDenial | None:
    wait_s = limiter.take(peer)
    return deny_too_many("too many requests came from this address; wait a little", wait_s) if wait_s else None


def _logged(denial: AccessDenial, scope: Scope) -> AccessDenial:
    """Log a denial without any part of the request, because a token can be in any part of it."""
    _log.info("refused %s of %s with %d: %s", scope["type"], scope.get("client"), denial.status, denial.reason)
    return denial
