"""The user messages of a session, in the history and in the agent's replay.

The history has records that an agent may omit from its replay: usage, ends of turns and updates of tool calls. The
agent has messages from times when the session was open elsewhere. So the history is kept, and the part of the replay
after the history's last user message is added. If the replay does not have that message, the agent has forgotten it,
and nothing is added. User messages without work of the agent are not added either, because claude ends a cancelled turn
with "[Request interrupted by user]".
"""

import hashlib
import re
from collections import Counter

import msgspec

from dragoman.wire.message import BAD_JSON

_USER = b'"user_message'
"""The beginning of the names of user message updates: chunks, and in version 2 whole messages."""

_WORK = re.compile(rb'"sessionUpdate"\s*:\s*"(?:agent_|tool_call)')

_MAX_CHUNKS = 16
"""Chunks of a replayed message to try, if the chunks have no message id."""


class UserBlock(msgspec.Struct, gc=False):
    """A block of a user message."""

    type: str = ""
    text: str = ""

    @property
    def said(self) -> str | None:
        """The text, or None for an attachment."""
        return self.text if self.type == "text" else None


class UserMessageUpdate(msgspec.Struct, gc=False, rename="camel"):
    """A user message, or a chunk of one."""

    session_update: str
    content: UserBlock | list[UserBlock] | None = None
    message_id: str | None = None

    @property
    def blocks(self) -> list[UserBlock]:
        """The blocks of its content."""
        content = self.content
        return content if isinstance(content, list) else [] if content is None else [content]


class _Params(msgspec.Struct, gc=False):
    update: UserMessageUpdate


class _Notification(msgspec.Struct, gc=False):
    params: _Params


_decode = msgspec.json.Decoder(_Notification).decode


def read_user_message(line: bytes) -> UserMessageUpdate | None:
    """Return the user message in an update, or None for any other update."""
    if _USER not in line:
        return None
    try:
        message = _decode(line).params.update
    except BAD_JSON:
        return None
    return message if message.session_update.startswith("user_message") else None


class UserMessages:
    """The user messages of a history, each as a digest of its words."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._last: bytes | None = None
        self._words: list[str] = []
        """The words of the last message, which may have more chunks."""

    def see(self, lines: bytes) -> None:
        """Read the next notifications. Consecutive chunks are one message."""
        if _USER not in lines:
            self.end_message()
            return
        for line in lines[:-1].split(b"\n"):
            message = read_user_message(line)
            if message is None:
                self.end_message()
            else:
                self._words.append(_words_of(message))

    def end_message(self) -> None:
        """End the current message, so that a later chunk begins another one."""
        if self._words:
            self._last = _digest(self._words)
            self._counts[self._last] += 1
            self._words = []

    @property
    def last(self) -> tuple[bytes | None, int]:
        """The digest of the last message, and the number of equal messages in the history."""
        return self._last, 0 if self._last is None else self._counts[self._last]


class AgentReplay:
    """Finds the messages in an agent's replay that the history does not have."""

    def __init__(self, last: tuple[bytes | None, int]) -> None:
        self._last, self._left = last
        """The last message of the history, and the number of equal messages that the replay must still have."""
        self._chunks: list[str] = []
        self._message_id: str | None = None
        self._more: list[bytes] = []
        self._has_work = False

    @property
    def continuation(self) -> bytes:
        """The lines after the history's last turn. Empty if they have no work of the agent."""
        return b"".join(self._more) if self._has_work else b""

    def append(self, lines: bytes, count: int | None = None, *, is_ordinary: bool = False) -> None:
        """Read the next notifications of the replay."""
        del count, is_ordinary
        if _USER not in lines:
            self._add_other(lines)
            return
        for line in lines.splitlines(keepends=True):
            message = read_user_message(line)
            if message is None:
                self._add_other(line)
                continue
            if message.message_id is None or message.message_id != self._message_id:
                self._end_message()
            self._message_id = message.message_id
            if self._left:
                self._chunks.append(_words_of(message))
            else:
                self._more.append(line)

    def _add_other(self, lines: bytes) -> None:
        self._end_message()
        self._chunks.clear()
        if self._more:
            self._more.append(lines)
            self._has_work = self._has_work or _WORK.search(lines) is not None

    def _end_message(self) -> None:
        """Compare the collected chunks with the last message. Without an id, a message may begin at any chunk."""
        for start in range(max(0, len(self._chunks) - _MAX_CHUNKS), len(self._chunks)):
            if _digest(self._chunks[start:]) == self._last:
                self._left -= 1
                self._chunks.clear()
                return


def _words_of(message: UserMessageUpdate) -> str:
    return "".join("".join(block.said or "" for block in message.blocks).split())


def _digest(words: list[str]) -> bytes:
    return hashlib.blake2b("".join(words).encode(errors="surrogatepass"), digest_size=16).digest()
