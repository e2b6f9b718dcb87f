"""Logins at MCP servers. The browser returns to the bridge, because the agent may run on another machine.

1. `initialize` offers this to the agent as `clientCapabilities._meta["dragoman/oauth"]`.
2. The agent asks for the redirect address with `_dragoman/oauth/redirect`. The bridge returns the address that a viewer
   of the session uses.
3. The agent's question, `elicitation/create`, has the state of the login in `_meta["dragoman/oauth"]`. The state is the
   only credential of the browser that returns, so it must be long. It is valid once and for a limited time.
4. The bridge sends the parameters of the redirect to the agent with `_dragoman/oauth/callback`.

If several bridges share a database, the browser may return to another one. The bridges find each other's logins by the
hashes of the states.
"""

import logging
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.guard.credentials import hash_code
from dragoman.bridge.router.code_register import CodeRegister
from dragoman.bridge.sessions import ServedSession
from dragoman.bridge.settings import CALLBACK_PATH
from dragoman.bridge.viewers import Viewer
from dragoman.errors import ErrorCode, LogError
from dragoman.wire.envelope import fields_of, make_error, make_result, string_of

OAUTH_KEY = "dragoman/oauth"
REDIRECT = "_dragoman/oauth/redirect"
CALLBACK = "_dragoman/oauth/callback"
CAPABILITY: dict[str, Any] = {}

LIFE_S = 600.0
"""Life of a state: longer than an agent waits for the user, and too short for one found in a browser's history."""

MAX_LOGINS = 64
"""Pending logins per agent. A new one replaces the oldest."""

PASS_TIMEOUT_S = 15.0
"""Time for the agent to confirm that it waits for the redirect."""

_STATE = re.compile(r"[A-Za-z0-9._~+/=-]{32,512}")
"""A state that cannot be guessed. Logins with shorter ones cannot return to the bridge."""

PASSED = ("state", "code", "iss", "error", "error_description")
"""The parameters of the redirect that are passed to the agent."""

_log = logging.getLogger("dragoman.bridge")


class PendingLogin(msgspec.Struct, frozen=True):
    """A login that waits for the user's browser."""

    session_id: str
    server: str
    """The name of the MCP server in the agent's question."""
    until: float


class BroughtLogin(msgspec.Struct, frozen=True):
    """A login whose browser has returned."""

    server: str
    is_taken: bool
    """Whether the agent was waiting for it."""


class PendingLogins:
    """The logins of one agent that wait for a browser, by their states.

    If several bridges share a database, `register` has the codes of all, and `spawn` runs the writes to it.
    """

    def __init__(
        self,
        host: AgentHost,
        clock: Callable[[], float] = time.monotonic,
        *,
        register: CodeRegister | None = None,
        spawn: Callable[[Coroutine[Any, Any, None]], object] | None = None,
    ) -> None:
        self._host = host
        self._clock = clock
        self._register = register
        self._spawn = spawn
        self._waiting: dict[str, PendingLogin] = {}
        self._addresses: dict[Viewer, str] = {}
        """The address at which each viewer reaches the bridge, without a slash at the end."""

    def record_address(self, viewer: Viewer, address: str) -> None:
        """Remember the address at which a viewer reaches the bridge."""
        self._addresses[viewer] = address

    def address_of(self, viewer: Viewer) -> str | None:
        """Return the address at which a viewer reaches the bridge, if it is known."""
        return self._addresses.get(viewer)

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        self._addresses.pop(viewer, None)

    def name_redirect(self, id_: bytes, viewers: list[Viewer]) -> None:
        """Answer the agent with the redirect address, based on the first known address of these viewers."""
        address = next((self._addresses[viewer] for viewer in viewers if viewer in self._addresses), None)
        if address is None:
            problem = "no viewer of this session has an address that the browser can return to"
            self._host.write(make_error(id_, ErrorCode.INVALID_REQUEST, problem))
        else:
            self._host.write(make_result(id_, {"redirectUri": f"{address}{CALLBACK_PATH}"}))

    def note(self, params: msgspec.Raw, session: ServedSession | None) -> None:
        """Remember the login of a question, if the question is about a login."""
        meta = fields_of(fields_of(params).get("_meta", UNSET))
        login = fields_of(meta.get(OAUTH_KEY, UNSET))
        state = string_of(login.get("state"))
        if session is None or state is None or not _STATE.fullmatch(state):
            return
        server = string_of(login.get("server")) or "the server"
        self._waiting[state] = PendingLogin(session.id, server, self._clock() + LIFE_S)
        while len(self._waiting) > MAX_LOGINS:
            del self._waiting[next(iter(self._waiting))]
        if self._register is not None and self._spawn is not None:
            self._spawn(self._publish(self._register, state, server))

    async def _publish(self, register: CodeRegister, state: str, server: str) -> None:
        try:
            await register.publish("login", hash_code(state), life_s=LIFE_S, limit=MAX_LOGINS)
        except LogError as error:
            _log.warning("the browser can return from the login at %s only to this node: %s", server, error)

    def redeem(self, state: str) -> PendingLogin | None:
        """Invalidate a state, and return its login. Return None if it is unknown, used or too old."""
        login = self._waiting.pop(state, None)
        return login if login is not None and self._clock() <= login.until else None

    def clear(self) -> None:
        """Forget all logins, because the agent that waited is gone."""
        self._waiting.clear()

    async def receive_redirect(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Redeem the state in the parameters of a redirect, and pass them to the agent. None if no login waits."""
        login = self.redeem(back.get("state", ""))
        return None if login is None else BroughtLogin(login.server, await self._pass_on(login, back))

    async def _pass_on(self, login: PendingLogin, back: Mapping[str, str]) -> bool:
        """Send the parameters of a redirect to the agent. Return whether the agent was waiting for them."""
        if not self._host.is_ready:
            return False
        params: dict[str, Any] = {name: back[name] for name in PASSED if name in back}
        answer = await self._host.ask(CALLBACK, {"sessionId": login.session_id, **params}, PASS_TIMEOUT_S)
        taken = None if answer is None else answer.result.get("taken")
        return taken is not None and bytes(taken) == b"true"
