"""The open sessions of one agent, and the routing of updates to them."""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import msgspec
from msgspec import Raw

from dragoman.client.events import Event
from dragoman.client.sessions.session import Session
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.connection import NotificationHandler, Routes
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.protocol.unions import UnknownVariant

MAX_UNCLAIMED = 1024
"""Updates kept for sessions whose id is not known yet. Usually a few follow the answer that contains the id."""

_log = logging.getLogger("dragoman.client")


class Sessions:
    """The open sessions, by id."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self.on_end: list[Callable[[str], Awaitable[None]]] = []
        """Called with the id of each session that was closed or deleted."""
        self._opening = 0
        self._unclaimed: list[v1.SessionNotification] = []

    def receive(self, notification: v1.SessionNotification) -> Awaitable[None] | None:
        """Pass an update to its session, or to the session of its subagent."""
        session = self._open.get(notification.session_id)
        if session is not None:
            return session.receive(notification.update)
        for parent in self._open.values():
            if (child := parent.find_subagent(notification.session_id)) is not None:
                return parent.receive_from(child, notification.update)
        self._keep(notification)
        return None

    def find(self, session_id: str) -> Session:
        """Return the session for a request of the agent. For a subagent that is its parent. Raises RpcError."""
        if session_id in self._open:
            return self._open[session_id]
        for parent in self._open.values():
            if parent.find_subagent(session_id) is not None:
                return parent
        raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": "no such session is open"})

    def add_event(self, session_id: str, event: Event) -> None:
        """Add an event that the client created to a session, if it is still open."""
        if session_id in self._open:
            self._open[session_id].add_event(event)

    def list_open(self) -> tuple[Session, ...]:
        """Return the open sessions."""
        return tuple(self._open.values())

    def get(self, session_id: str) -> Session | None:
        """Return an open session, or None."""
        return self._open.get(session_id)

    def add(self, session: Session) -> None:
        """Add an open session, and pass it the updates that arrived before its id was known."""
        before = self._open.get(session.id)
        if before is not None:
            before.detach()
        self._open[session.id] = session
        for notification in self._unclaimed:
            if notification.session_id == session.id:
                session.receive(notification.update)
        self._unclaimed = [each for each in self._unclaimed if each.session_id != session.id]

    def remove(self, session: Session) -> None:
        """Remove a session."""
        session.detach()
        if self._open.get(session.id) is session:
            del self._open[session.id]

    async def end(self, session: Session) -> None:
        """Remove a closed session, and release the resources of its services."""
        self.remove(session)
        for each in self.on_end:
            for session_id in (session.id, *session.list_subagents()):
                await each(session_id)

    @contextmanager
    def opening(self) -> Generator[None]:
        """Keep updates for unknown sessions while a session is opened whose id the agent chooses."""
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


class ClientRoutes(Routes):
    """The routes of a client. `receive` gets every update that names its session, even if it is malformed."""

    def __init__(self, receive: NotificationHandler[v1.SessionNotification]) -> None:
        super().__init__("client")
        self._receive = receive
        self.on_notification(SESSION_UPDATE, receive)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        if method != SESSION_UPDATE.name:
            return super().notification(method, params)
        try:
            return self._receive(decode_params(SESSION_UPDATE, params, lenient=True))
        except InvalidParamsError as error:
            _log.warning("an update does not fit the schema: %s", error)
        repaired = repair(params)
        return None if repaired is None else self._receive(repaired)


def repair(params: Raw) -> v1.SessionNotification | None:
    """Return a malformed update in a valid form, or None if it does not name its session.

    First the known mistakes of real agents are fixed. If the update is still invalid, it is passed on as raw JSON.
    """
    try:
        fields = msgspec.json.decode(params, type=_Object)
    except (msgspec.DecodeError, RecursionError):
        return None
    session_id, update = fields.get("sessionId"), fields.get("update")
    if not isinstance(session_id, str) or not isinstance(update, dict):
        return None
    members = cast("_Object", update)
    repaired = msgspec.json.encode({"sessionId": session_id, "update": _fix_known_mistakes(members)})
    try:
        return decode_params(SESSION_UPDATE, repaired, lenient=True)
    except InvalidParamsError:
        tag = members.get("sessionUpdate")
        kept = UnknownVariant(tag if isinstance(tag, str) else "", members)
        return v1.SessionNotification(session_id=session_id, update=kept)


def _fix_known_mistakes(update: _Object) -> _Object:
    """Remove nulls and fix the known mistakes of real agents."""
    plain = {key: value for key, value in update.items() if value is not None}
    if "sessionUpdate" not in plain and isinstance(plain.get("type"), str):
        plain["sessionUpdate"] = plain.pop("type")
    if plain.get("sessionUpdate") == "tool_call":
        plain.setdefault("title", "")
    if plain.get("sessionUpdate") == "current_mode_update" and "modeId" in plain:
        plain.setdefault("currentModeId", plain["modeId"])
    return plain
