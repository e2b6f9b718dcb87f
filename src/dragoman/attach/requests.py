"""The editor's messages that the bridge has not answered, or could not be sent yet."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from msgspec import UNSET, Raw

from dragoman.attach.sessions import LOAD, RESUME
from dragoman.wire import Message
from dragoman.wire.envelope import fields_of, string_of

INITIALIZE = "initialize"
PROMPT = "session/prompt"
CANCEL = "session/cancel"
CANCEL_REQUEST = "$/cancel_request"

MAX_WAITING = 256
"""Messages that wait for the bridge: as many requests as it takes from one viewer."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""And their bytes: some prompts with images."""

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
"""Requests that do no more when they are sent twice; a second `session/new` leaves a session that nobody sees."""


class EditorMessage(msgspec.Struct, eq=False):
    """A request or a notification of the editor."""

    line: bytes
    method: str
    params: Raw
    id: bytes | None = None
    """None for a notification."""
    key: str | None = None
    """Of a prompt that the bridge knows when it comes again."""
    was_sent: bool = False
    expiry: asyncio.TimerHandle | None = None

    @property
    def session_id(self) -> str | None:
        """The session that it is about."""
        return string_of(fields_of(self.params).get("sessionId"))

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent twice."""
        return self.key is not None or self.method in _REPEATABLE

    def stop_expiry(self) -> None:
        """Let it wait, or be answered, in its own time."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None


def read_message(message: Message, line: bytes) -> EditorMessage:
    """Make one of a line that has a method."""
    id_ = None if message.id is UNSET else bytes(message.id)
    return EditorMessage(line, message.method or "", Raw(bytes(message.params)), id_)


class EditorRequests:
    """All of them, in order."""

    def __init__(self) -> None:
        self._waiting: list[EditorMessage] = []
        self._sent: dict[bytes, EditorMessage] = {}

    def wait(self, message: EditorMessage) -> bool:
        """Have a message wait for the bridge; tells whether there was room for it."""
        size = len(message.line) + sum(len(each.line) for each in self._waiting)
        if len(self._waiting) >= MAX_WAITING or size > MAX_WAITING_BYTES:
            return False
        self._waiting.append(message)
        return True

    def has_waiting(self, session_id: str | None) -> bool:
        """Tell whether a message has to wait for others of its session."""
        return any(each.session_id == session_id for each in self._waiting)

    def take_ready(self, is_ready: Callable[[EditorMessage], bool]) -> Iterable[EditorMessage]:
        """Take the messages that can be sent, in order."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            if is_ready(message):
                yield message
            else:
                self._waiting.append(message)

    def note_sent(self, message: EditorMessage) -> None:
        """Expect the answer to a request."""
        message.was_sent = True
        message.stop_expiry()
        if message.id is not None:
            self._sent[message.id] = message

    def is_pending(self, id_: bytes) -> bool:
        """Tell whether a request of this id waits for its answer."""
        return id_ in self._sent or any(each.id == id_ for each in self._waiting)

    def take_answered(self, id_: bytes) -> EditorMessage | None:
        """Take the request that an answer is for."""
        return self._sent.pop(id_, None)

    def lose_connection(self) -> list[EditorMessage]:
        """Have the requests that may be sent again wait, before all others, and give those that may not."""
        sent, self._sent = list(self._sent.values()), {}
        self._waiting = [each for each in sent if each.is_repeatable] + self._waiting
        return [each for each in sent if not each.is_repeatable]

    def withdraw(self, message: EditorMessage) -> bool:
        """Take back a message that waits; tells whether it did."""
        if message not in self._waiting:
            return False
        self._waiting.remove(message)
        message.stop_expiry()
        return True

    def find_waiting(self, id_: bytes) -> EditorMessage | None:
        """Give the request of this id that waits."""
        return next((each for each in self._waiting if each.id == id_), None)

    def waiting(self) -> list[EditorMessage]:
        """Give all messages that wait."""
        return list(self._waiting)

    def waiting_openings(self) -> set[str | None]:
        """Give the sessions that a request which waits opens."""
        return {each.session_id for each in self._waiting if each.method in (LOAD, RESUME)}

    def waiting_prompts(self, session_id: str | None) -> list[EditorMessage]:
        """Give the prompts of a session that wait."""
        return [each for each in self._waiting if each.method == PROMPT and each.session_id == session_id]

    def take_all(self) -> list[EditorMessage]:
        """Take every request: none will be answered any more."""
        found = [*self._sent.values(), *self._waiting]
        self._sent, self._waiting = {}, []
        for each in found:
            each.stop_expiry()
        return [each for each in found if each.id is not None]
