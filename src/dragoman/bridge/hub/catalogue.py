"""Sessions in general: listed, put away, deleted."""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from dragoman.bridge.envelope import fields_of, string_of
from dragoman.bridge.hub.history import Known
from dragoman.bridge.hub.request import Request
from dragoman.bridge.hub.session import to_iso
from dragoman.store import is_same_directory
from dragoman.wire import Message

if TYPE_CHECKING:
    from dragoman.bridge.hub.desk import Desk
    from dragoman.bridge.hub.hub import Hub


class Catalogue:
    """All sessions that the bridge knows, open or on the disk."""

    def __init__(self, hub: "Hub", desk: "Desk") -> None:
        self._hub = hub
        self._desk = desk

    def list(self, request: Request) -> None:
        """List sessions: the agent's own list, or what there are journals of."""
        if self._hub.supervisor.support.list:
            self._desk.forward(request)
            return
        cwd = string_of(fields_of(request.params).get("cwd"))
        listed = [
            {key: session[key] for key in ("sessionId", "cwd", "title", "updatedAt")}
            for session in self._describe()
            if cwd is None or is_same_directory(session["cwd"], cwd)
        ]
        request.answer({"sessions": listed})

    def describe(self, request: Request) -> None:
        """Answer `_dragoman/sessions`."""
        request.answer({"sessions": self._describe()})

    def delete(self, request: Request) -> None:
        """Have the agent delete a session, and then delete its journal."""
        session_id = request.session_id or ""

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET:
                self._hub.delete_session(session_id)

        self._desk.forward(request, then=answered)

    def close(self, request: Request) -> None:
        """Have the agent put a session away, until it is opened again."""
        session = self._hub.sessions.get(request.session_id or "")
        request.viewer.note_step(request.session_id or "")

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET and session is not None:
                session.live = False
                session.put_away = True
                self._hub.asks.forget_session(session)
                self._hub.changed(session)

        self._desk.forward(request, then=answered)

    def _describe(self) -> "list[dict[str, Any]]":
        """Say how the sessions are that were prompted, or are being looked at."""
        shown = [session for session in self._hub.sessions.values() if session.prompted or session.attachments]
        found = [session.describe() for session in shown]
        found += [_describe_known(known) for known in self._hub.shelf.known.values() if known.prompted]
        return sorted(found, key=lambda session: session["updatedAt"], reverse=True)


def _describe_known(known: Known) -> dict[str, Any]:
    return {
        "sessionId": known.header.id,
        "cwd": known.header.cwd,
        "title": known.title,
        "state": "asleep",
        "pending": 0,
        "viewers": 0,
        "updatedAt": to_iso(known.updated_ms),
    }
