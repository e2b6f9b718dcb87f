"""The logins at the MCP servers of a client's sessions: when the user is asked, and the effect of the answer.

A server that requires a login fails with a reason, and the session continues. The question to the user runs at the same
time, and once the user has agreed, the server is restarted. Each address has at most one login at a time, whichever
sessions need it:

    IDLE ──a server needs it──▶ ASKING ──agreed──▶ IDLE      all servers at the address restart
     ▲                            │ declined, too late, refused
     └────── /mcp restart ──── REFUSED                       connection attempts in the background do not ask

If a ready server requires more rights for a call, the user is asked during the call.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from dragoman.agent.servers.login_question import AskingSession, BrowserCallbacks, LoginQuestion, open_callback
from dragoman.agent.servers.server_pool import IdleHost
from dragoman.errors import McpServerError
from dragoman.mcp.channel import AuthorizationRequiredError
from dragoman.mcp.definition import HttpServer, login_command
from dragoman.mcp.server import ServerConnection

if TYPE_CHECKING:
    from dragoman.mcp.authorisation import ClientIdentity, Consent

_log = logging.getLogger("dragoman.agent")


class LoginPhase(Enum):
    """The phase of the login at one address."""

    IDLE = auto()
    ASKING = auto()
    REFUSED = auto()


class LoginSession(Protocol):
    """A session whose servers may require a login."""

    @property
    def session(self) -> AskingSession:
        """The session in which the user is asked."""
        ...

    def at_address(self, url: str) -> list[ServerConnection]:
        """Return the session's servers at this address."""
        ...


class ServerLogin:
    """The login at one address."""

    def __init__(self) -> None:
        self.phase = LoginPhase.IDLE
        self.reason = ""
        """The reason of a refusal."""
        self.task: asyncio.Task[None] | None = None
        """The task that asks the user outside a call."""
        self.asked_in: LoginSession | None = None


class ServerLogins:
    """The logins of one client connection. Implements the Authoriser of the servers in its sessions."""

    def __init__(self) -> None:
        self.callbacks = BrowserCallbacks()
        self._sessions: list[LoginSession] = []
        self._logins: dict[str, ServerLogin] = {}

    # ── sessions ────────────────────────────────────────────────────────────────────────────────

    def join(self, session: LoginSession) -> None:
        """Allow asking in this session."""
        self._sessions.append(session)

    async def leave(self, session: LoginSession) -> None:
        """Stop asking in a session. An open question there is cancelled and may be asked in another session."""
        with suppress(ValueError):
            self._sessions.remove(session)
        tasks = [login.task for login in self._logins.values() if login.asked_in is session and login.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def update(self, session: LoginSession, servers: list[ServerConnection]) -> None:
        """Ask for the session's servers that require a login. Cancel a question that is no longer needed."""
        for server in servers:
            if not isinstance(server.definition, HttpServer):
                continue
            login = self._login(server.definition)
            if server.wants_login and login.phase is LoginPhase.IDLE and _can_ask(session.session):
                login.phase, login.asked_in = LoginPhase.ASKING, session
                login.task = asyncio.create_task(self._log_in(session, server.definition, login))
            elif server.state == "ready" and login.task is not None and not login.task.done():
                login.task.cancel()  # the user has logged in elsewhere, e.g. by `dragoman mcp login`

    def allow(self, server: ServerConnection) -> None:
        """Allow a server to ask for a login again, because the user restarts it."""
        if isinstance(server.definition, HttpServer):
            login = self._login(server.definition)
            login.phase = LoginPhase.IDLE if login.phase is LoginPhase.REFUSED else login.phase

    async def ended(self, server: ServerConnection) -> None:
        """Wait until the running login at a server's address ends, if there is one."""
        login = self._login(server.definition) if isinstance(server.definition, HttpServer) else None
        if login is not None and login.task is not None:
            await asyncio.wait([login.task])

    # ── Authoriser of the servers in these sessions ─────────────────────────────────────────────

    @property
    def identity(self) -> "ClientIdentity":
        """The default client identity, because no client was registered by hand."""
        from dragoman.mcp.authorisation import ClientIdentity

        return ClientIdentity()

    def check(self, server: HttpServer) -> None:
        """Check that a call may ask the user to log in. Raises AuthorizationRequiredError with the reason if not."""
        login, users = self._login(server), self._users(server.url)
        if login.phase is LoginPhase.ASKING:
            raise AuthorizationRequiredError(server, AuthorizationRequiredError.ASKED[1])
        if login.phase is LoginPhase.REFUSED:
            again = f"`/mcp restart {server.name}` asks again, and so does `{login_command(server)}`"
            raise AuthorizationRequiredError(server, f"{login.reason}; {again}")
        if not any(_can_ask(user.session) for user in users):
            raise AuthorizationRequiredError(server)
        if not any(found.state == "ready" for user in users for found in user.at_address(server.url)):
            raise AuthorizationRequiredError(server, AuthorizationRequiredError.ASKED[0])

    @asynccontextmanager
    async def open(self, server: HttpServer) -> "AsyncGenerator[Consent]":
        """Ask during a call, in the session that joined last. Raises McpServerError."""
        users = [user for user in self._users(server.url) if _can_ask(user.session)]
        if not users:
            raise AuthorizationRequiredError(server)
        login = self._login(server)
        login.phase = LoginPhase.ASKING
        with _settling(login):
            async with self.ask_in(users[-1].session, server) as consent:
                yield consent

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def ask_in(self, session: AskingSession, server: HttpServer) -> "AsyncGenerator[Consent]":
        """Prepare a question in a session. At the end of the context, notify the client. Raises McpServerError."""
        async with AsyncExitStack() as stack:
            question = LoginQuestion(session, server.name, await open_callback(session, self.callbacks, stack))
            try:
                yield question
            except BaseException as problem:
                await question.complete(problem)
                raise
            await question.complete(None)

    async def _log_in(self, user: LoginSession, server: HttpServer, login: ServerLogin) -> None:
        """Ask in a session, and restart the failed servers at the address when the login has ended."""
        from dragoman.mcp.login import log_in

        try:
            with _settling(login):
                await log_in(server, _OneSession(self, user.session), IdleHost("/"))
        except McpServerError as failure:
            _log.warning("the login at the MCP server %s failed: %s", server.name, failure)
        finally:
            login.task = login.asked_in = None
        waiting = {id(found): found for each in self._sessions for found in each.at_address(server.url)}
        for found in waiting.values():
            if found.state == "failed":
                await found.restart()  # after a refusal, the restart fails with that reason

    def _login(self, server: HttpServer) -> ServerLogin:
        return self._logins.setdefault(server.url, ServerLogin())

    def _users(self, url: str) -> list[LoginSession]:
        return [session for session in self._sessions if session.at_address(url)]


@contextmanager
def _settling(login: ServerLogin) -> Generator[None]:
    """Set the phase of a login when the context ends. After a cancellation it may be asked again."""
    try:
        yield
    except asyncio.CancelledError:
        login.phase = LoginPhase.IDLE
        raise
    except BaseException as problem:
        login.phase = LoginPhase.REFUSED
        login.reason = str(problem) if isinstance(problem, McpServerError) else "the authorisation failed"
        raise
    login.phase = LoginPhase.IDLE


class _OneSession:
    """The Authoriser of a login outside a call, which asks in one session."""

    def __init__(self, logins: ServerLogins, session: AskingSession) -> None:
        self.identity = logins.identity
        self._logins = logins
        self._session = session

    def check(self, server: HttpServer) -> None:
        """Allow the question, because the login has already begun."""

    def open(self, server: HttpServer) -> "AbstractAsyncContextManager[Consent]":
        """Prepare the question."""
        return self._logins.ask_in(self._session, server)


def _can_ask(session: AskingSession) -> bool:
    can = session.capabilities.elicitation
    return can is not None and can.url is not None
