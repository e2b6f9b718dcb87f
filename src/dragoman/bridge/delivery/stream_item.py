"""A run of messages in the form for one viewer, and the cursors that are added to messages."""

from functools import partial

import msgspec

from dragoman.bridge.envelope import add_cursors
from dragoman.store.runs import Encoder, Mark, MessageRun


def mark_cursors(epoch: str) -> Mark:
    """Return the function that adds a cursor of this epoch to each message of a run."""
    return partial(_with_cursors, epoch.encode())


def _with_cursors(epoch: bytes, run: MessageRun) -> MessageRun:
    return run.with_cursors(epoch, add_cursors)


class StreamItem(msgspec.Struct, frozen=True, gc=False):
    """A run in the form for one viewer."""

    run: MessageRun
    epoch: bytes | None = None
    """Part of the event ids, with which a viewer over HTTP continues. None without ids."""
    number: int = 0

    def messages(self) -> list[bytes]:
        """Return the messages, without newlines."""
        return self.run.messages()

    def ids(self) -> list[bytes]:
        """Return the event id of each message, or an empty list without an epoch."""
        return [] if self.epoch is None else self.run.ids(self.epoch, self.number)

    def encode(self, encoder: Encoder) -> bytes:
        """Return the run in the form of an encoder."""
        return self.run.encode(encoder, self.epoch, self.number)
