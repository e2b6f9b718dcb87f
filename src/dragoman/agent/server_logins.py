"""Logins at the MCP servers of a client's sessions: when a person is asked, and what follows.

A server that wants a login fails, with a reason, and the session goes on; the question to the person runs beside it,
and once they have agreed the server is started again. For each address there is one login at a time, whichever
sessions need it:

    IDLE ──a server needs it──▶ ASKING ──agreed──▶ IDLE      all servers at the address start again
     ▲                            │ declined, too late, refused
     └────── /mcp restart ──── REFUSED                       attempts to connect in the background ask nothing

A server that is ready and wants more rights for a call has the person asked within the call.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from dragoman.agent.login_question import AskingSession, BrowserCallbacks, LoginQuestion, open_callback
from dragoman.agent.server_pool import IdleHost
from dragoman.errors import ServerFailure
from dragoman.mcp.channel import NeedsAuthorisation
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.server import ServerConnection

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import ClientIdentity, Consent

_log = logging.getLogger("dragoman.agent")


class LoginPhase(Enum):
    """Where the login at one address is."""

    IDLE = auto()
    ASKING = auto()
    REFUSED = auto()


class LoginSession(Protocol):
    """A session whose servers may want a login."""

    @property
    def session(self) -> AskingSession:
        """The session in which the person is asked."""
        ...

    def at_address(self, url: str) -> list[ServerConnection]:
        """Return its servers at this address."""
        ...


class ServerLogin:
    """The login at one address."""

    def __init__(self) -> None:
        self.phase = LoginPhase.IDLE
        self.reason = ""
        """Why it was refused."""
        self.task: asyncio.Task[None] | None = None
        """The question, while it is asked beside the servers."""
        self.asked_in: LoginSession | None = None


class ServerLogins:
    """The logins of one connection to a client; the Authoriser of the servers in its sessions."""

    def __init__(self) -> None:
        self.callbacks = BrowserCallbacks()
        self._sessions: list[LoginSession] = []
        self._logins: dict[str, ServerLogin] = {}

    # ── sessions ────────────────────────────────────────────────────────────────────────────────

    def join(self, session: LoginSession) -> None:
        """Ask in this session, too."""
        self._sessions.append(session)

    async def leave(self, session: LoginSession) -> None:
        """Ask no more in a session; a question that is open there is taken back, and may be asked in another."""
        with suppress(ValueError):
            self._sessions.remove(session)
        tasks = [login.task for login in self._logins.values() if login.asked_in is session and login.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def look(self, session: LoginSession, servers: list[ServerConnection]) -> None:
        """Ask the person for servers of a session that want a login, and take back a question that needs no answer."""
        for server in servers:
            if not isinstance(server.definition, HttpServer):
                continue
            login = self._login(server.definition)
            if server.wants_login and login.phase is LoginPhase.IDLE and _can_ask(session.session):
                login.phase, login.asked_in = LoginPhase.ASKING, session
                login.task = asyncio.create_task(self._log_in(session, server.definition, login))
            elif server.state == "ready" and login.task is not None and not login.task.done():
                login.task.cancel()  # a login elsewhere, such as by `dragoman mcp login`, has helped meanwhile

    def allow(self, server: ServerConnection) -> None:
        """Let a server ask again, because the person wants to try it again."""
        if isinstance(server.definition, HttpServer):
            login = self._login(server.definition)
            login.phase = LoginPhase.IDLE if login.phase is LoginPhase.REFUSED else login.phase

    # ── the Authoriser of servers in these sessions ─────────────────────────────────────────────

    @property
    def identity(self) -> "ClientIdentity":
        """Nobody has registered us by hand."""
        from dragoman.mcp.authorisation import ClientIdentity

        return ClientIdentity()

    def check(self, server: HttpServer) -> None:
        """Let a call of a server that was ready ask; raises NeedsAuthorisation in words."""
        login, users = self._login(server), self._users(server.url)
        if login.phase is LoginPhase.ASKING:
            raise NeedsAuthorisation(server.name, NeedsAuthorisation.ASKED[1])
        if login.phase is LoginPhase.REFUSED:
            again = f"`/mcp restart {server.name}` asks again, and so does `dragoman mcp login {server.name}`"
            raise NeedsAuthorisation(server.name, f"{login.reason}; {again}")
        if not any(_can_ask(user.session) for user in users):
            raise NeedsAuthorisation(server.name)
        if not any(found.state == "ready" for user in users for found in user.at_address(server.url)):
            raise NeedsAuthorisation(server.name, NeedsAuthorisation.ASKED[0])

    @asynccontextmanager
    async def open(self, server: HttpServer) -> "AsyncGenerator[Consent]":
        """Ask within a call, in the session that came last; raises ServerFailure."""
        users = [user for user in self._users(server.url) if _can_ask(user.session)]
        if not users:
            raise NeedsAuthorisation(server.name)
        login = self._login(server)
        login.phase = LoginPhase.ASKING
        with _settling(login):
            async with self.ask_in(users[-1].session, server) as consent:
                yield consent

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def ask_in(self, session: AskingSession, server: HttpServer) -> "AsyncGenerator[Consent]":
        """Prepare a question in a session; its client is told how the context ends. Raises ServerFailure."""
        async with AsyncExitStack() as stack:
            question = LoginQuestion(session, server.name, await open_callback(session, self.callbacks, stack))
            try:
                yield question
            except BaseException as problem:
                await question.complete(problem)
                raise
            await question.complete(None)

    async def _log_in(self, user: LoginSession, server: HttpServer, login: ServerLogin) -> None:
        """Ask in a session, and start the servers at the address again when the person has agreed."""
        from dragoman.mcp.login import log_in

        try:
            with _settling(login):
                await log_in(server, _OneSession(self, user.session), IdleHost("/"))
        except ServerFailure as failure:
            _log.warning("the login at the MCP server %s failed: %s", server.name, failure)
        finally:
            login.task = login.asked_in = None
        waiting = {id(found): found for each in self._sessions for found in each.at_address(server.url)}
        for found in waiting.values():
            if login.phase is LoginPhase.REFUSED:
                found.retry()  # which fails again, with the reason of this
            elif found.state == "failed":
                await found.restart()

    def _login(self, server: HttpServer) -> ServerLogin:
        return self._logins.setdefault(server.url, ServerLogin())

    def _users(self, url: str) -> list[LoginSession]:
        return [session for session in self._sessions if session.at_address(url)]


@contextmanager
def _settling(login: ServerLogin) -> Generator[None]:
    """End a login as the context ends; one that was taken back may be asked again."""
    try:
        yield
    except asyncio.CancelledError:
        login.phase = LoginPhase.IDLE
        raise
    except BaseException as problem:
        login.phase = LoginPhase.REFUSED
        login.reason = str(problem) if isinstance(problem, ServerFailure) else "the authorisation failed"
        raise
    login.phase = LoginPhase.IDLE


class _OneSession:
    """The Authoriser of a login beside the servers: it asks in one session."""

    def __init__(self, logins: ServerLogins, session: AskingSession) -> None:
        self.identity = logins.identity
        self._logins = logins
        self._session = session

    def check(self, server: HttpServer) -> None:
        """Let the question pass: the login has begun."""

    def open(self, server: HttpServer) -> "AbstractAsyncContextManager[Consent]":
        """Prepare the question."""
        return self._logins.ask_in(self._session, server)


def _can_ask(session: AskingSession) -> bool:
    can = session.capabilities.elicitation
    return can is not None and can.url is not None
