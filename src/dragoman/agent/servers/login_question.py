"""Asks the user, in one session, to log in at an MCP server.

The question is an `elicitation/create` with a URL. The browser returns to a port of this machine, or to the client if
`clientCapabilities._meta["dragoman/oauth"]` says that the client receives browsers. Such a client names its URL by
`_dragoman/oauth/redirect` and forwards the browser's parameters by `_dragoman/oauth/callback`. The bridge does this.
At the end of the login, `elicitation/complete` is sent with the outcome in `_meta["dragoman/oauth"]`.
"""

import asyncio
import secrets
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

from dragoman.agent.connection.update_sender import UpdateSender
from dragoman.errors import ConnectionClosedError, InvalidResultError, McpServerError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_COMPLETE, ELICITATION_CREATE

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import ConsentResult
    from dragoman.mcp.callback import Callback

OAUTH_KEY = "dragoman/oauth"
"""In capabilities: the client receives browsers. In a question: its login. In a completion: the outcome."""

REDIRECT = "_dragoman/oauth/redirect"
CALLBACK = "_dragoman/oauth/callback"

REDIRECT_TIMEOUT_S = 10.0
"""How long the client may take to name its redirect URL."""

COMPLETE_TIMEOUT_S = 2.0
"""How long the completion may take to send. A client that does not read is not waited for."""


class AskingSession(Protocol):
    """The parts of a session that a login question needs."""

    @property
    def id(self) -> str: ...
    @property
    def capabilities(self) -> v1.ClientCapabilities: ...
    @property
    def updates(self) -> UpdateSender: ...


class BrowserCallbacks:
    """Browser callbacks that arrive through the client, by the state of their login."""

    def __init__(self) -> None:
        self._expected: dict[str, asyncio.Future[dict[str, str]]] = {}

    def expect(self, state: str) -> "asyncio.Future[dict[str, str]]":
        """Return a future of the parameters that the browser brings back."""
        returned = self._expected[state] = asyncio.get_running_loop().create_future()
        returned.add_done_callback(lambda _: self._expected.pop(state, None))
        return returned

    def receive(self, params: Any) -> bool:
        """Receive the parameters of a browser. Return whether a login was waiting for them."""
        known = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        received = {name: value for name, value in known.items() if isinstance(value, str)}
        returned = self._expected.pop(received.get("state", ""), None)
        if returned is None or returned.done():
            return False
        returned.set_result(received)
        return True


class _ClientCallback:
    """A callback through the client's redirect URL."""

    def __init__(self, redirect_uri: str, callbacks: BrowserCallbacks) -> None:
        self.redirect_uri = redirect_uri
        self.expect = callbacks.expect


async def open_callback(session: AskingSession, callbacks: BrowserCallbacks, stack: AsyncExitStack) -> "Callback":
    """Open the client's callback if it receives browsers, or else a port of this machine. Raises McpServerError."""
    from dragoman.mcp.callback import open_loopback

    if OAUTH_KEY in (session.capabilities.meta or {}):
        with suppress(RemoteError, ConnectionClosedError, TimeoutError):
            async with asyncio.timeout(REDIRECT_TIMEOUT_S):
                answer = await session.updates.connection.call_extension(REDIRECT, {"sessionId": session.id})
            address = cast("dict[str, Any]", answer).get("redirectUri") if isinstance(answer, dict) else None
            if isinstance(address, str) and address.startswith(("http://", "https://")):
                return _ClientCallback(address, callbacks)
    return await stack.enter_async_context(open_loopback())


class LoginQuestion:
    """Asks the user of a session to log in at a server. Implements Consent."""

    def __init__(self, session: AskingSession, server: str, callback: "Callback") -> None:
        self.redirect_uri = callback.redirect_uri
        self._session = session
        self._server = server
        self._callback = callback
        self._elicitation_id: str | None = None

    async def ask(self, url: str) -> "ConsentResult":
        """Show the user a URL and wait until the browser returns. Raises McpServerError."""
        from dragoman.mcp.callback import CONSENT_TIMEOUT_S, read_consent, state_of

        state = state_of(url)
        returned = self._callback.expect(state)
        question = asyncio.ensure_future(self._elicit(url, state))
        try:
            async with asyncio.timeout(CONSENT_TIMEOUT_S):
                await asyncio.wait({returned, question}, return_when=asyncio.FIRST_COMPLETED)
                if not returned.done():
                    question.result()
                return read_consent(await returned)
        except TimeoutError:
            raise McpServerError(f"no login within {CONSENT_TIMEOUT_S / 60:.0f} minutes") from None
        finally:
            returned.cancel()
            question.cancel()  # the browser may return before the user answers
            await asyncio.wait({question}, timeout=COMPLETE_TIMEOUT_S)

    async def complete(self, problem: BaseException | None) -> None:
        """Notify the client of the outcome, if the user was asked."""
        if self._elicitation_id is None:
            return
        outcome = {"server": self._server, "outcome": "done" if problem is None else "failed"}
        if problem is not None:
            outcome["reason"] = str(problem) if isinstance(problem, McpServerError) else "the authorisation failed"
        meta = {OAUTH_KEY: outcome}
        notification = v1.CompleteElicitationNotification(elicitation_id=self._elicitation_id, meta=meta)
        with suppress(ConnectionClosedError, TimeoutError):
            async with asyncio.timeout(COMPLETE_TIMEOUT_S):
                await self._session.updates.connection.notify(ELICITATION_COMPLETE, notification)

    async def _elicit(self, url: str, state: str) -> None:
        """Ask the user. Return when they open the URL, and raise McpServerError if they decline."""
        id_ = secrets.token_urlsafe(12)
        self._elicitation_id = id_
        request = v1.UrlElicitationForSession(
            session_id=self._session.id,
            message=f"{self._server} asks you to log in",
            url=url,
            elicitation_id=id_,
            meta={OAUTH_KEY: {"server": self._server, "state": state}},
        )
        try:
            answer = await self._session.updates.call(ELICITATION_CREATE, request)
        except (ConnectionClosedError, RemoteError, InvalidResultError):
            self._elicitation_id = None
            raise McpServerError("the client could not ask you to log in") from None
        if not isinstance(answer, v1.ElicitationAcceptAction):
            self._elicitation_id = None
            raise McpServerError("you declined to log in")
