"""The sessions that are open with one agent: what comes from it finds its session here."""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from dragoman.client.session import Session
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import v1

MAX_UNCLAIMED = 1024
"""Updates kept for sessions whose id is not known yet: a few are the rule, right behind the answer that tells it."""

_log = logging.getLogger("dragoman.client")


class Sessions:
    """The open sessions, by id."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self.on_end: list[Callable[[str], Awaitable[None]]] = []
        """What is called, with its id, when a session was closed or deleted."""
        self._opening = 0
        self._unclaimed: list[v1.SessionNotification] = []

    def receive(self, notification: v1.SessionNotification) -> Awaitable[None] | None:
        """Take an update from the agent."""
        session = self._open.get(notification.session_id)
        if session is not None:
            return session.receive(notification.update)
        self._keep(notification)
        return None

    def find(self, session_id: str) -> Session:
        """Return a session that the agent asks about; raises RpcError where there is none."""
        if session_id in self._open:
            return self._open[session_id]
        raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": "no such session is open"})

    def get(self, session_id: str) -> Session | None:
        """Return a session if it is open."""
        return self._open.get(session_id)

    def add(self, session: Session) -> None:
        """Open a session; what came for it before is its own now."""
        before = self._open.get(session.id)
        if before is not None:
            before.detach()
        self._open[session.id] = session
        for notification in self._unclaimed:
            if notification.session_id == session.id:
                session.receive(notification.update)
        self._unclaimed = [each for each in self._unclaimed if each.session_id != session.id]

    def remove(self, session: Session) -> None:
        """Forget a session."""
        session.detach()
        if self._open.get(session.id) is session:
            del self._open[session.id]

    async def end(self, session: Session) -> None:
        """Forget a session that is over, and all that was provided for it."""
        self.remove(session)
        for each in self.on_end:
            await each(session.id)

    @contextmanager
    def opening(self) -> Generator[None]:
        """Keep what comes for unknown sessions, while one is being opened whose id the agent chooses."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
            if not self._opening:
                self._unclaimed.clear()

    def _keep(self, notification: v1.SessionNotification) -> None:
        if self._opening and len(self._unclaimed) < MAX_UNCLAIMED:
            self._unclaimed.append(notification)
        else:
            _log.warning("an update for session %s, which is not open here, was dropped", notification.session_id)
