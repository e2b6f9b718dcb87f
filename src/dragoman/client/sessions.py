"""The open sessions of one agent: each update is passed to its session here."""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import msgspec
from msgspec import Raw

from dragoman.client.events import Event
from dragoman.client.session import Session
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.protocol import v1
from dragoman.protocol.connection import NotificationHandler, Routes
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.protocol.unions import UnknownVariant

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
        for parent in self._open.values():
            if (child := parent.find_subagent(notification.session_id)) is not None:
                return parent.receive_from(child, notification.update)
        self._keep(notification)
        return None

    def find(self, session_id: str) -> Session:
        """Return a session that the agent asks about, for a subagent the one it belongs to; raises RpcError."""
        if session_id in self._open:
            return self._open[session_id]
        for parent in self._open.values():
            if parent.find_subagent(session_id) is not None:
                return parent
        raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": "no such session is open"})

    def tell(self, session_id: str, event: Event) -> None:
        """Add an event of our own to a session, if it is still open."""
        if session_id in self._open:
            self._open[session_id].tell(event)

    def list_open(self) -> tuple[Session, ...]:
        """Return all that are open."""
        return tuple(self._open.values())

    def get(self, session_id: str) -> Session | None:
        """Return a session if it is open."""
        return self._open.get(session_id)

    def add(self, session: Session) -> None:
        """Open a session, and pass on the updates that came for it before."""
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
            for session_id in (session.id, *session.list_subagents()):
                await each(session_id)

    @contextmanager
    def opening(self) -> Generator[None]:
        """Keep updates for unknown sessions, while one is being opened whose id the agent chooses."""
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


_Object = dict[str, Any]
_log = logging.getLogger("dragoman.client")


class ClientRoutes(Routes):
    """The routes of a client; `receive` takes every update that names its session, also a malformed one."""

    def __init__(self, receive: NotificationHandler[v1.SessionNotification]) -> None:
        super().__init__("client")
        self._receive = receive
        self.on_notification(SESSION_UPDATE, receive)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        if method != SESSION_UPDATE.name:
            return super().notification(method, params)
        try:
            return self._receive(decode_params(SESSION_UPDATE, params, lenient=True))
        except InvalidParams as error:
            _log.warning("an update does not fit the schema: %s", error)
        mended = mend(params)
        return None if mended is None else self._receive(mended)


def mend(params: Raw) -> v1.SessionNotification | None:
    """Return a malformed update in a form that fits; None if it names no session."""
    try:
        given = msgspec.json.decode(params, type=_Object)
    except (msgspec.DecodeError, RecursionError):
        return None
    session_id, update = given.get("sessionId"), given.get("update")
    if not isinstance(session_id, str) or not isinstance(update, dict):
        return None
    members = cast("_Object", update)
    mended = msgspec.json.encode({"sessionId": session_id, "update": _put_right(members)})
    try:
        return decode_params(SESSION_UPDATE, mended, lenient=True)
    except InvalidParams:
        tag = members.get("sessionUpdate")
        kept = UnknownVariant(tag if isinstance(tag, str) else "", members)
        return v1.SessionNotification(session_id=session_id, update=kept)


def _put_right(update: _Object) -> _Object:
    """Leave out nulls, and correct the mistakes that are known from real agents."""
    plain = {key: value for key, value in update.items() if value is not None}
    if "sessionUpdate" not in plain and isinstance(plain.get("type"), str):
        plain["sessionUpdate"] = plain.pop("type")
    if plain.get("sessionUpdate") == "tool_call":
        plain.setdefault("title", "")
    if plain.get("sessionUpdate") == "current_mode_update" and "modeId" in plain:
        plain.setdefault("currentModeId", plain["modeId"])
    return plain
