"""The editor's messages that wait for the bridge, and its requests that the bridge has not answered.

When a connection breaks, the sent requests that may be repeated wait again, before all other messages.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from msgspec import UNSET, Raw

from dragoman.attach.sessions import LOAD, RESUME
from dragoman.wire import Message
from dragoman.wire.envelope import session_of

INITIALIZE = "initialize"
PROMPT = "session/prompt"
CANCEL = "session/cancel"
CANCEL_REQUEST = "$/cancel_request"

MAX_WAITING = 256
"""Messages that may wait for the bridge. The bridge accepts equally many requests from one viewer."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Bytes that may wait for the bridge: a few prompts with images."""

_REPEATABLE = frozenset(
    {
        INITIALIZE,
        LOAD,
        RESUME,
        "session/new",
        "session/list",
        "session/close",
        "session/delete",
        "session/set_mode",
        "session/set_config_option",
        "session/set_title",
        "session/archive",
        "session/unarchive",
        "session/status",
        "auth/status",
    }
)
"""Requests that may be sent twice. A second `session/new` only leaves an unused session."""


class EditorMessage(msgspec.Struct, eq=False):
    """A request or notification from the editor."""

    line: bytes
    method: str
    params: Raw
    id: bytes | None = None
    """None for a notification."""
    key: str | None = None
    """The key of a prompt, by which the bridge recognizes a repetition."""
    was_sent: bool = False
    expiry: asyncio.TimerHandle | None = None

    @property
    def session_id(self) -> str | None:
        """The session in the params, if any."""
        return session_of(self.params)

    @property
    def is_repeatable(self) -> bool:
        """Whether the message may be sent twice."""
        return self.key is not None or self.method in _REPEATABLE

    def stop_expiry(self) -> None:
        """Stop the timer that expires the message."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None


def read_message(message: Message, line: bytes) -> EditorMessage:
    """Return the message of a line that has a method."""
    id_ = None if message.id is UNSET else bytes(message.id)
    return EditorMessage(line, message.method or "", Raw(bytes(message.params)), id_)


class EditorRequests:
    """The waiting messages and the unanswered requests, in order."""

    def __init__(self) -> None:
        self._waiting: list[EditorMessage] = []
        self._sent: dict[bytes, EditorMessage] = {}

    def wait(self, message: EditorMessage) -> bool:
        """Add a message that must wait for the bridge. Return False if too many messages wait."""
        size = len(message.line) + sum(len(each.line) for each in self._waiting)
        if len(self._waiting) >= MAX_WAITING or size > MAX_WAITING_BYTES:
            return False
        self._waiting.append(message)
        return True

    def has_waiting(self, session_id: str | None) -> bool:
        """Return whether earlier messages of a session wait."""
        return any(each.session_id == session_id for each in self._waiting)

    def pop_ready(self, is_ready: Callable[[EditorMessage], bool]) -> Iterable[EditorMessage]:
        """Remove and yield the messages that can be sent, in order."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            if is_ready(message):
                yield message
            else:
                self._waiting.append(message)

    def record_sent(self, message: EditorMessage) -> None:
        """Mark a message as sent. If it is a request, expect its answer."""
        message.was_sent = True
        message.stop_expiry()
        if message.id is not None:
            self._sent[message.id] = message

    def is_pending(self, id_: bytes) -> bool:
        """Return whether a request with this id is unanswered."""
        return id_ in self._sent or any(each.id == id_ for each in self._waiting)

    def pop_answered(self, id_: bytes) -> EditorMessage | None:
        """Remove and return the request with this id, which was answered."""
        return self._sent.pop(id_, None)

    def lose_connection(self) -> list[EditorMessage]:
        """Move the repeatable requests back, before all waiting ones. Return the requests that cannot be repeated."""
        sent, self._sent = list(self._sent.values()), {}
        self._waiting = [each for each in sent if each.is_repeatable] + self._waiting
        return [each for each in sent if not each.is_repeatable]

    def withdraw(self, message: EditorMessage) -> bool:
        """Remove a waiting message. Return whether it was waiting."""
        if message not in self._waiting:
            return False
        self._waiting.remove(message)
        message.stop_expiry()
        return True

    def find_waiting(self, id_: bytes) -> EditorMessage | None:
        """Return the waiting request with this id, or None."""
        return next((each for each in self._waiting if each.id == id_), None)

    def waiting(self) -> list[EditorMessage]:
        """Return all waiting messages."""
        return list(self._waiting)

    def waiting_openings(self) -> set[str | None]:
        """Return the sessions that waiting requests will open."""
        return {each.session_id for each in self._waiting if each.method in (LOAD, RESUME)}

    def waiting_prompts(self, session_id: str | None) -> list[EditorMessage]:
        """Return the waiting prompts of a session."""
        return [each for each in self._waiting if each.method == PROMPT and each.session_id == session_id]

    def pop_all(self) -> list[EditorMessage]:
        """Remove all messages, and return the requests among them, which can no longer be answered."""
        found = [*self._sent.values(), *self._waiting]
        self._sent, self._waiting = {}, []
        for each in found:
            each.stop_expiry()
        return [each for each in found if each.id is not None]
