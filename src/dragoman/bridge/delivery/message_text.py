"""The texts of the messages in the records of a session, for searching them."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import Raw

from dragoman.store.runs import MessageRun
from dragoman.wire.message import BAD_JSON

MAX_MESSAGE_CHARS = 1_000_000
"""Characters searched per message."""

_MESSAGE = re.compile(rb'"sessionUpdate": ?"(user|agent)_message(?:_chunk)?"')

Role = Literal["user", "agent"]


class _Update(msgspec.Struct, rename="camel"):
    content: Raw = Raw(b"null")
    message_id: str | None = None


class _UpdateParams(msgspec.Struct):
    update: _Update


class _Notification(msgspec.Struct):
    params: _UpdateParams


class _Block(msgspec.Struct):
    text: str = ""


_decode_line = msgspec.json.Decoder(_Notification).decode
_decode_block = msgspec.json.Decoder(_Block).decode
_decode_many = msgspec.json.Decoder(list[_Block] | None).decode


def _decode_blocks(content: Raw) -> list[_Block] | None:
    """Decode the content of a chunk, which is one block, or of a whole message of version 2, which is a list."""
    return [_decode_block(content)] if bytes(content)[:1] == b"{" else _decode_many(content)


class MessageText(NamedTuple):
    """A message of the user or the agent."""

    seq: int
    """Its first record."""
    role: Role
    text: str


class _OpenMessage:
    """A message, collected from chunks in consecutive records."""

    def __init__(self, role: Role, message_id: str | None, seq: int) -> None:
        self.role: Role = role
        self.message_id = message_id
        self.seq = seq
        self._pieces: list[str] = []
        self._chars = 0

    def has_chunk(self, role: Role, message_id: str | None) -> bool:
        return role == self.role and message_id == self.message_id

    def add(self, text: str) -> None:
        if self._chars < MAX_MESSAGE_CHARS:
            self._pieces.append(text)
            self._chars += len(text)

    def close(self) -> MessageText:
        return MessageText(self.seq, self.role, "".join(self._pieces))


class MessageTexts:
    """Collects the messages of one session, given its records in order. Runs in threads."""

    def __init__(self) -> None:
        self._open: _OpenMessage | None = None

    def feed(self, runs: Sequence[MessageRun]) -> Iterator[MessageText]:
        """Add the next records, and yield the messages that are now complete."""
        for run in runs:
            for seq, line in enumerate(run.messages(), run.first):
                yield from self._feed_line(seq, line)

    def finish(self) -> Iterator[MessageText]:
        """Yield the last message, if there is one."""
        message, self._open = self._open, None
        if message is not None:
            yield message.close()

    def _feed_line(self, seq: int, line: bytes) -> Iterator[MessageText]:
        kind = _MESSAGE.search(line)
        if kind is None:
            yield from self.finish()
            return
        role: Role = "user" if kind[1] == b"user" else "agent"
        try:
            update = _decode_line(line).params.update
            content = _decode_blocks(update.content)
        except BAD_JSON:
            yield from self.finish()
            return
        if self._open is None or not self._open.has_chunk(role, update.message_id):
            yield from self.finish()
            self._open = _OpenMessage(role, update.message_id, seq)
        for block in content or []:
            self._open.add(block.text)
