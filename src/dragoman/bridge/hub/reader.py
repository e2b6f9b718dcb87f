"""What the agent says, line by line: updates into journals, answers to who asked, requests to who can answer them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from dragoman.bridge.envelope import UPDATE, fields_of, make_error, rename_request, session_of, session_of_update
from dragoman.bridge.hub.abilities import ELICIT
from dragoman.bridge.hub.ask import Ask
from dragoman.bridge.hub.request import Request
from dragoman.bridge.supervisor import AgentFailure
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.message import NULL_ID, is_sound, replace_lone_surrogates

if TYPE_CHECKING:
    from dragoman.bridge.hub.hub import Hub


class AgentReader:
    """Takes the lines of the agent."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines; the payload of an update is not decoded on its way."""
        sessions = self._hub.sessions
        for line in lines:
            if isinstance(line, bytes) and UPDATE in line and is_sound(line):
                session_id = session_of_update(line)
                if session_id is not None:
                    session = sessions.get(session_id)
                    if session is None:
                        self._hub.early.put(session_id, line)
                    else:
                        session.take(line)
                        self._hub.touch(session)
                    continue
            self._take(line)

    def input_ended(self, *, was_file: bool) -> None:
        """Do nothing: the process itself says that it ended."""

    def _take(self, line: bytes | Oversized) -> None:
        message = parse(line)
        if isinstance(message, Malformed):
            mended = replace_lone_surrogates(line) if isinstance(line, bytes) else None
            if mended is not None:
                self.lines_received([mended])
            else:
                self._refuse(message, line)
        elif message.method is None:
            self._hub.supervisor.calls.settle(message, bytes(line) if isinstance(line, bytes) else b"")
        elif isinstance(line, bytes):
            if message.id is UNSET:
                self._notification(message.method, message, line)
            else:
                self._request(message.method, bytes(message.id), message, line)

    def _refuse(self, malformed: Malformed, line: bytes | Oversized) -> None:
        """Tell whoever waits for a message that is none, on either side; else say that one was dropped."""
        if isinstance(line, bytes):
            self._hub.supervisor.note_printed(line.decode(errors="replace"))
        if malformed.id != NULL_ID and malformed.answerable:
            self._hub.supervisor.write(make_error(malformed.id, malformed.code, malformed.problem))
            return
        remedy = "" if isinstance(line, bytes) else ": ask for less at a time"
        lost = f"the agent has answered, and its answer was dropped because {malformed.problem}{remedy}"
        has_failed = malformed.id != NULL_ID and self._hub.supervisor.calls.fail(malformed.id, AgentFailure(lost))
        if not has_failed and not isinstance(line, bytes):
            self._hub.news.agent_notice(f"a message of the agent was dropped because {malformed.problem}")

    def _request(self, method: str, id_: bytes, message: Message, line: bytes) -> None:
        session = self._hub.sessions.get(session_of(message.params) or "")
        if session is not None or method != ELICIT:
            self._hub.asks.take(Ask(id_, method, message.params, line, session=session))
            return
        about = fields_of(message.params).get("requestId")
        request = None if about is None else self._hub.supervisor.calls.origin_of(bytes(about))
        if not isinstance(request, Request):
            self._hub.asks.take(Ask(id_, method, message.params, line))
            return
        line = rename_request(line, request.id)
        self._hub.asks.take(Ask(id_, method, message.params, line, only=request.viewer))

    def _notification(self, method: str, message: Message, line: bytes) -> None:
        if method == "$/cancel_request":
            cancelled = fields_of(message.params).get("requestId")
            if cancelled is not None:
                self._hub.asks.cancel(bytes(cancelled))
            return
        session = self._hub.sessions.get(session_of(message.params) or "")
        if session is not None:
            session.take(line)
            self._hub.touch(session)
            return
        viewer = self._hub.holdings.holder(method, message.params)
        viewers = [viewer] if viewer is not None else list(self._hub.viewers.values())
        for viewer in viewers:
            if viewer.abilities is not None:
                viewer.send(line)
