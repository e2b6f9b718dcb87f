"""Updates that do not fit the schema: mended where it is plain what was meant, and kept as they are otherwise.

A client that drops what it cannot read hides what its agent does. So an update that names its session becomes an
event in any case; only one without a session goes nowhere.
"""

import logging
from collections.abc import Awaitable
from typing import Any, cast

import msgspec
from msgspec import Raw

from dragoman.errors import InvalidParams
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.protocol.routes import NotificationHandler, Routes
from dragoman.protocol.unions import UnknownVariant

_Object = dict[str, Any]
_log = logging.getLogger("dragoman.client")


class ClientRoutes(Routes):
    """The routes of a client; `receive` takes every update that names its session, whatever else it is."""

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
    """Return what can be made of a misshapen update; None if it is not one for a session at all."""
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
    """Leave out what is null, and put right the slips that are known from real agents."""
    plain = {key: value for key, value in update.items() if value is not None}
    if "sessionUpdate" not in plain and isinstance(plain.get("type"), str):
        plain["sessionUpdate"] = plain.pop("type")
    if plain.get("sessionUpdate") == "tool_call":
        plain.setdefault("title", "")
    if plain.get("sessionUpdate") == "current_mode_update" and "modeId" in plain:
        plain.setdefault("currentModeId", plain["modeId"])
    return plain
