"""The question to a person whether they log in at an MCP server, in one session.

It is `elicitation/create` with an address. The browser comes back to a port of this machine; or to the client, if it
says in `clientCapabilities._meta["dragoman/oauth"]` that it takes browsers: then it names its address by
`_dragoman/oauth/redirect` and passes on what came by `_dragoman/oauth/callback`. The bridge does that. The end of the
login is `elicitation/complete`, whose `_meta["dragoman/oauth"]` has the outcome.
"""

import asyncio
import secrets
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

from dragoman.agent.update_sender import UpdateSender
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError, ServerFailure
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_COMPLETE, ELICITATION_CREATE

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import ConsentResult
    from dragoman.mcp.callback import Callback

OAUTH_KEY = "dragoman/oauth"
"""In the client's capabilities: it takes browsers. In a question: the login that it belongs to; in its end: how."""

REDIRECT = "_dragoman/oauth/redirect"
CALLBACK = "_dragoman/oauth/callback"

REDIRECT_TIMEOUT_S = 10.0
"""For the client to say where browsers come back to."""

COMPLETE_TIMEOUT_S = 2.0
"""For the client to be told of the end: a client that does not read is not waited for."""


class AskingSession(Protocol):
    """The parts of a session that a question needs."""

    @property
    def id(self) -> str: ...
    @property
    def capabilities(self) -> v1.ClientCapabilities: ...
    @property
    def updates(self) -> UpdateSender: ...


class BrowserCallbacks:
    """The browsers that come back by way of the client, by the states of their logins."""

    def __init__(self) -> None:
        self._expected: dict[str, asyncio.Future[dict[str, str]]] = {}

    def expect(self, state: str) -> "asyncio.Future[dict[str, str]]":
        """Return the parameters with which the browser comes back."""
        came = self._expected[state] = asyncio.get_running_loop().create_future()
        came.add_done_callback(lambda _: self._expected.pop(state, None))
        return came

    def take(self, params: Any) -> bool:
        """Take what a browser brought; tell whether a login was waiting for it."""
        known = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        back = {name: value for name, value in known.items() if isinstance(value, str)}
        came = self._expected.pop(back.get("state", ""), None)
        if came is None or came.done():
            return False
        came.set_result(back)
        return True


class _ClientCallback:
    """The way back by one address of the client."""

    def __init__(self, redirect_uri: str, callbacks: BrowserCallbacks) -> None:
        self.redirect_uri = redirect_uri
        self.expect = callbacks.expect


async def open_callback(session: AskingSession, callbacks: BrowserCallbacks, stack: AsyncExitStack) -> "Callback":
    """Return the way back: by the client, if it takes browsers, or by a port of this machine; raises ServerFailure."""
    from dragoman.mcp.callback import open_loopback

    if OAUTH_KEY in (session.capabilities.meta or {}):
        with suppress(RemoteError, ConnectionClosed, TimeoutError):
            async with asyncio.timeout(REDIRECT_TIMEOUT_S):
                told = await session.updates.connection.call_extension(REDIRECT, {"sessionId": session.id})
            address = cast("dict[str, Any]", told).get("redirectUri") if isinstance(told, dict) else None
            if isinstance(address, str) and address.startswith(("http://", "https://")):
                return _ClientCallback(address, callbacks)
    return await stack.enter_async_context(open_loopback())


class LoginQuestion:
    """Asks a person in a session to log in at a server; a Consent."""

    def __init__(self, session: AskingSession, server: str, callback: "Callback") -> None:
        self.redirect_uri = callback.redirect_uri
        self._session = session
        self._server = server
        self._callback = callback
        self._elicitation_id: str | None = None

    async def ask(self, url: str) -> "ConsentResult":
        """Show the person an address, and wait for the way back; raises ServerFailure."""
        from dragoman.mcp.callback import CONSENT_TIMEOUT_S, read_consent, state_of

        state = state_of(url)
        came = self._callback.expect(state)
        question = asyncio.ensure_future(self._elicit(url, state))
        try:
            async with asyncio.timeout(CONSENT_TIMEOUT_S):
                await asyncio.wait({came, question}, return_when=asyncio.FIRST_COMPLETED)
                if not came.done():
                    question.result()
                return read_consent(await came)
        except TimeoutError:
            raise ServerFailure(f"nobody logged in within {CONSENT_TIMEOUT_S / 60:.0f} minutes") from None
        finally:
            came.cancel()
            question.cancel()  # a person who came back without answering needs not be asked any more
            await asyncio.wait({question}, timeout=COMPLETE_TIMEOUT_S)

    async def complete(self, problem: BaseException | None) -> None:
        """Tell the client how the login ended, if the person was sent away for it."""
        if self._elicitation_id is None:
            return
        outcome = {"server": self._server, "outcome": "done" if problem is None else "failed"}
        if problem is not None:
            outcome["reason"] = str(problem) if isinstance(problem, ServerFailure) else "the authorisation failed"
        told = v1.CompleteElicitationNotification(elicitation_id=self._elicitation_id, meta={OAUTH_KEY: outcome})
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(COMPLETE_TIMEOUT_S):
                await self._session.updates.connection.notify(ELICITATION_COMPLETE, told)

    async def _elicit(self, url: str, state: str) -> None:
        """Ask; returns when the person opens the address, and raises ServerFailure when they do not want to."""
        id_ = secrets.token_urlsafe(12)
        self._elicitation_id = id_
        request = v1.UrlElicitationForSession(
            session_id=self._session.id,
            message=f"{self._server} wants you to log in",
            url=url,
            elicitation_id=id_,
            meta={OAUTH_KEY: {"server": self._server, "state": state}},
        )
        try:
            answer = await self._session.updates.call(ELICITATION_CREATE, request)
        except (ConnectionClosed, RemoteError, InvalidResult):
            self._elicitation_id = None
            raise ServerFailure("the client could not ask you to log in") from None
        if not isinstance(answer, v1.ElicitationAcceptAction):
            self._elicitation_id = None
            raise ServerFailure("you declined to log in")
