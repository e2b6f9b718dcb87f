"""Logins at MCP servers whose browsers come back to the bridge: the agent's process may be on another machine.

1. The agent is told at `initialize` that browsers can come back here: `clientCapabilities._meta["dragoman/oauth"]`.
2. It asks for the address by `_dragoman/oauth/redirect`, and is told the address that a viewer of the session uses.
3. Its question, `elicitation/create`, has the state of the login in `_meta["dragoman/oauth"]`. That state is the only
   credential of the browser that comes back, so it has to be long, and is good once and for a while.
4. The parameters that the browser brings go to the agent by `_dragoman/oauth/callback`.

The browser may come back to another of several bridges that share a database: they find each other's logins by the
hashes of the states.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.bridge.delivery import Viewer
from dragoman.bridge.envelope import fields_of, make_error, make_request, make_result, string_of
from dragoman.bridge.guard.credentials import hash_code
from dragoman.bridge.registry import ServedSession
from dragoman.bridge.router.code_register import CodeRegister
from dragoman.bridge.settings import CALLBACK_PATH
from dragoman.bridge.supervisor import AgentSupervisor, CallFailed, own_call
from dragoman.errors import ErrorCode, LogFailed
from dragoman.wire import Message

OAUTH_KEY = "dragoman/oauth"
REDIRECT = "_dragoman/oauth/redirect"
CALLBACK = "_dragoman/oauth/callback"
CAPABILITY: dict[str, Any] = {}

LIFE_S = 600.0
"""Longer than an agent waits for a person, and too short for an address that is found in a history."""

MAX_LOGINS = 64
"""Logins of one agent under way; a further one removes the oldest."""

PASS_TIMEOUT_S = 15.0
"""For the agent to say that it waits for the browser that came back."""

_STATE = re.compile(r"[A-Za-z0-9._~+/=-]{32,512}")
"""A state that nobody guesses: shorter ones are not taken back here."""

PASSED = ("state", "code", "iss", "error", "error_description")
"""The parameters of a browser that the agent is given."""

_log = logging.getLogger("dragoman.bridge")


class PendingLogin(msgspec.Struct, frozen=True):
    """A login that a person was asked for."""

    session_id: str
    server: str
    """The name of the MCP server, as the agent tells it."""
    until: float


class BroughtLogin(msgspec.Struct, frozen=True):
    """A login whose browser came back."""

    server: str
    is_taken: bool
    """Whether the agent has waited for it."""


class PendingLogins:
    """The logins of one agent that wait for a browser, by their states."""

    def __init__(
        self,
        supervisor: AgentSupervisor,
        clock: Callable[[], float] = time.monotonic,
        *,
        register: CodeRegister | None = None,
        spawn: Callable[[Coroutine[Any, Any, None]], object] | None = None,
    ) -> None:
        """Take the register of all bridges, and a way to add to it beside, if a browser may come back to another."""
        self._supervisor = supervisor
        self._clock = clock
        self._register = register
        self._spawn = spawn
        self._waiting: dict[str, PendingLogin] = {}
        self._addresses: dict[Viewer, str] = {}
        """The address at which each viewer reaches the bridge, without a slash at the end."""

    def note_address(self, viewer: Viewer, address: str) -> None:
        """Remember the address at which a viewer reaches the bridge."""
        self._addresses[viewer] = address

    def address_of(self, viewer: Viewer) -> str | None:
        """Return the address at which a viewer reaches the bridge, if it is known."""
        return self._addresses.get(viewer)

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        self._addresses.pop(viewer, None)

    def name_redirect(self, id_: bytes, viewers: list[Viewer]) -> None:
        """Answer the agent with the address at which the first of these viewers reaches the bridge."""
        address = next((self._addresses[viewer] for viewer in viewers if viewer in self._addresses), None)
        if address is None:
            problem = "no viewer of this session is there to whose address a browser could come back"
            self._supervisor.write(make_error(id_, ErrorCode.INVALID_REQUEST, problem))
        else:
            self._supervisor.write(make_result(id_, {"redirectUri": f"{address}{CALLBACK_PATH}"}))

    def note(self, params: msgspec.Raw, session: ServedSession | None) -> None:
        """Remember the login of a question, if it is about one."""
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
        except LogFailed as error:
            _log.warning("a browser can come back from the login at %s to this node alone: %s", server, error)

    def take(self, state: str) -> PendingLogin | None:
        """Use a state up, and give its login; None if it is unknown, used or too old."""
        login = self._waiting.pop(state, None)
        return login if login is not None and self._clock() <= login.until else None

    def clear(self) -> None:
        """Forget all: the agent that waited is gone."""
        self._waiting.clear()

    async def come_back(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Use up the state that a browser brings, and give the agent what it brings; None if none waits for it."""
        login = self.take(back.get("state", ""))
        return None if login is None else BroughtLogin(login.server, await self.bring(login, back))

    async def bring(self, login: PendingLogin, back: Mapping[str, str]) -> bool:
        """Give the agent the parameters of a browser that came back; tells whether it has waited for them."""
        if not self._supervisor.is_ready:
            return False
        params: dict[str, Any] = {name: back[name] for name in PASSED if name in back}
        call, answer = own_call(CALLBACK)
        self._supervisor.call(call, lambda id_: make_request(id_, CALLBACK, {"sessionId": login.session_id, **params}))
        try:
            async with asyncio.timeout(PASS_TIMEOUT_S):
                message: Message = await answer
        except (CallFailed, TimeoutError):
            return False
        taken = fields_of(message.result).get("taken")
        return taken is not None and bytes(taken) == b"true"
