"""The guard: who may come in. Nothing else in the bridge reads a credential.

A request is looked at in this order, before it reaches anything and before any upgrade:

1. It can be read in one way only: one Host, one Origin, one Authorization.
2. Host is on an exact list. A name that was rebound to this machine is on none, whatever page it was opened from.
3. Origin, when there is one, is on an exact list. Every foreign page, and every `null`, ends here.
4. No token is in the query.
5. There is a credential, and it is right. An explicit one counts before a cookie, which a browser adds by itself; so
   a cookie can change something only when Origin, too, says that our own page asked.

The ids of connections and sessions are no credentials.
"""

import logging

from dragoman.bridge.guard.asked import SUBPROTOCOL, TOKEN_PREFIX, Asked, Scope, read_scope
from dragoman.bridge.guard.authority import spell_host, spell_origin
from dragoman.bridge.guard.codes import Codes
from dragoman.bridge.guard.cookies import Cookies
from dragoman.bridge.guard.grant import Grant, Refusal, Role, too_many, unauthorized
from dragoman.bridge.guard.policy import GuardPolicy
from dragoman.bridge.guard.rates import Limiter
from dragoman.bridge.guard.security import security_headers

_QUERY_NAMES = frozenset({"token", "access_token", "auth_token", "auth", "authorization", "bearer", "api_key"})
"""Where other programs take a token in the query."""

_OWN_SITES = frozenset({"same-origin", "none"})
"""What a browser says of requests that no other page made."""

_log = logging.getLogger("dragoman.bridge.guard")


class Guard:
    """The guard of one bridge."""

    def __init__(self, policy: GuardPolicy) -> None:
        self._policy = policy
        self._codes = Codes()
        self._cookies = Cookies(policy.token, policy.port, is_secure=policy.is_secure)
        self._failures = Limiter(policy.failures)
        self._strangers = Limiter(policy.strangers)
        self._guests = Limiter(policy.guests)

    def admit(self, scope: Scope) -> Grant | Refusal:
        """Let somebody in who may, as what they are."""
        asked = read_scope(scope)
        if isinstance(asked, Refusal):
            return _told(asked, scope)
        refusal = self._check_place(asked)
        answer = self._check_credentials(asked) if refusal is None else refusal
        limiter = self._guests if isinstance(answer, Grant) else self._strangers
        answer = _limited(limiter, asked.peer) or answer
        return answer if isinstance(answer, Grant) else _told(answer, scope)

    def admit_public(self, scope: Scope) -> Refusal | None:
        """Let anybody in who comes by the right name: for what holds no secret, and for the login."""
        asked = read_scope(scope)
        if isinstance(asked, Refusal):
            return _told(asked, scope)
        is_guest = self._cookies.read(asked.cookie) is not None
        refusal = self._check_place(asked) or _limited(self._guests if is_guest else self._strangers, asked.peer)
        return None if refusal is None else _told(refusal, scope)

    def new_link_code(self, role: Role = "owner") -> str:
        """Make a code for a link; it works once, and not for long."""
        return self._codes.make(role)

    def exchange(self, code: str) -> str | None:
        """Burn a code and return the `Set-Cookie` that it is worth; None for one that is worth nothing."""
        role = self._codes.burn(code)
        return None if role is None else self._cookies.make(role)

    def exchange_token(self, token: str) -> str | None:
        """Return the owner's `Set-Cookie` for the token; None when it is not the token."""
        return self._cookies.make("owner") if self._policy.token.matches(token) else None

    def refuse_login(self, scope: Scope) -> Refusal:
        """Count a code or a token that was worth nothing, and return what to answer."""
        asked = read_scope(scope)
        if isinstance(asked, Refusal):
            return asked
        reason = (
            "this link or token is not good: a link works once, and not for long; press Enter where `dragoman serve` "
            "runs for a fresh one"
        )
        return _told(self._failed(asked, reason), scope)

    def farewell(self) -> str:
        """Return the `Set-Cookie` that makes a browser forget who it is."""
        return self._cookies.remove()

    def security_headers(self, *, html: bool) -> list[tuple[bytes, bytes]]:
        """Return the headers that go with every response."""
        return security_headers(html=html)

    def accepted_subprotocol(self, scope: Scope) -> str | None:
        """Return the subprotocol to accept a WebSocket with, which is never the one with the token."""
        return SUBPROTOCOL if SUBPROTOCOL in (scope.get("subprotocols") or ()) else None

    def _check_place(self, asked: Asked) -> Refusal | None:
        if spell_host(asked.host) not in self._policy.hosts:
            return Refusal(
                403,
                "this bridge is not served under that name; if the name is yours, start it with `--allow-host` and "
                "the Host that the browser or the proxy sends",
            )
        if asked.origin is not None and spell_origin(asked.origin) not in self._policy.origins:
            return Refusal(
                403,
                "pages of that origin may not ask this bridge; if the page is yours, start it with `--allow-origin` "
                "and its scheme, name and port",
            )
        if any(name.lower() in _QUERY_NAMES or self._policy.token.matches(value) for name, value in asked.query):
            return Refusal(
                400,
                "a token in the address is never accepted, because addresses are kept in histories and logs: send it "
                "as `Authorization: Bearer`; if it was the real one, remove the token file and start again to "
                "replace it",
            )
        return None

    def _check_credentials(self, asked: Asked) -> Grant | Refusal:
        if asked.authorization is not None:
            return self._check_bearer(asked, asked.authorization)
        tokens = [word.removeprefix(TOKEN_PREFIX) for word in asked.subprotocols if word.startswith(TOKEN_PREFIX)]
        if tokens:
            return self._check_subprotocol(asked, tokens)
        if self._cookies.has_any(asked.cookie):
            return self._check_cookie(asked)
        return unauthorized(
            "there is no credential: open the link that `dragoman serve` printed, or send the token as "
            "`Authorization: Bearer`"
        )

    def _check_bearer(self, asked: Asked, authorization: str) -> Grant | Refusal:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._policy.token.matches(token.strip(" ")):
            return Grant("owner", "bearer")
        return self._failed(asked, "the token in Authorization is not this bridge's; expected `Bearer` and the token")

    def _check_subprotocol(self, asked: Asked, tokens: list[str]) -> Grant | Refusal:
        if SUBPROTOCOL not in asked.subprotocols or len(tokens) > 1:
            return Refusal(400, f"expected the subprotocols `{SUBPROTOCOL}` and `{TOKEN_PREFIX}` with the token")
        if self._policy.token.matches(tokens[0]):
            return Grant("owner", "subprotocol")
        return self._failed(asked, "the token in the subprotocol is not this bridge's")

    def _check_cookie(self, asked: Asked) -> Grant | Refusal:
        role = self._cookies.read(asked.cookie)
        if role is None:
            return self._failed(
                asked,
                "this browser's login is over; open a fresh link: press Enter where `dragoman serve` runs",
            )
        if asked.fetch_site is not None and asked.fetch_site.lower() not in _OWN_SITES:
            return Refusal(403, "another page asked this, and only the bridge's own may use its cookie")
        if asked.changes and asked.origin is None:
            return Refusal(403, "a request with a cookie needs an Origin, so that it is known which page asked")
        return Grant(role, "cookie")

    def _failed(self, asked: Asked, reason: str) -> Refusal:
        wait_s = self._failures.take(asked.peer)
        if wait_s:
            return too_many("too many wrong credentials came from this address; wait, then try the right one", wait_s)
        return unauthorized(reason)


def _limited(limiter: Limiter, peer: str) -> Refusal | None:
    wait_s = limiter.take(peer)
    return too_many("too many requests came from this address; wait a little", wait_s) if wait_s else None


def _told(refusal: Refusal, scope: Scope) -> Refusal:
    """Say in the log what was refused, without anything that was sent: a token can stand in the oddest places."""
    _log.info("refused %s of %s with %d: %s", scope["type"], scope.get("client"), refusal.status, refusal.reason)
    return refusal
