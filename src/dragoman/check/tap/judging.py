"""Judging what passes, behind the recording: what waits is bounded, and what was not judged is counted.

A judge that has missed a message would find fault with the next. So when too much waits, or something was missed, or
the judge itself fails, nothing more is judged, and the rest is counted.
"""

import time
from collections import deque

import msgspec

from dragoman.check.conversation import Conversation, Side
from dragoman.check.judge import Judge
from dragoman.check.tap.findings import Findings
from dragoman.check.tap.voice import say

SLICE = 64
"""Messages judged between two looks at what else came."""

MAX_WAITING_BYTES = 128 * 1024 * 1024
"""What may wait to be judged: a quarter of a minute of 20,000 messages a second."""

ENTRY_BYTES = 200
"""What a waiting message takes beside its bytes."""

MAX_ENTRIES = 2_000
"""Messages kept as evidence; a tap may run for weeks."""


class _Waiting(msgspec.Struct, gc=False):
    sender: Side
    at_s: float
    line: bytes
    event: str


class Judging:
    """A judge and what waits for it."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._conversation = Conversation("tap", max_entries=MAX_ENTRIES)
        self._judge = Judge(self._conversation)
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self.missed = 0
        """How many messages were not judged."""
        self.stopped = False
        """Whether nothing more is judged."""

    @property
    def is_behind(self) -> bool:
        """Whether something waits."""
        return bool(self._waiting)

    def add(self, sender: Side, at_s: float, line: bytes = b"", event: str = "") -> None:
        """Take what passed, for later."""
        if self.stopped:
            self.missed += not event
            return
        self._waiting.append(_Waiting(sender, at_s, line, event))
        self._waiting_bytes += len(line) + ENTRY_BYTES
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self.stop()

    def stop(self) -> None:
        """Judge no more."""
        self.stopped = True
        self.missed += sum(not each.event for each in self._waiting)
        self._waiting.clear()

    def judge_some(self) -> None:
        """Judge a little of what waits."""
        try:
            for _ in range(min(SLICE, len(self._waiting))):
                self._judge_next()
        except Exception as error:  # noqa: BLE001 -- the judge's fault must not end the recording
            say(f"judging has failed with {type(error).__name__}: {error}; that is a mistake in dragoman")
            self.stop()

    def finish(self, timeout_s: float) -> None:
        """Judge what is left, for so long at most, and what only the end can tell."""
        deadline = time.monotonic() + timeout_s
        while self._waiting and time.monotonic() < deadline:
            self.judge_some()
        if self._waiting:
            self.stop()
        if not self.stopped:
            self._findings.take(self._conversation, self._judge.end())

    def _judge_next(self) -> None:
        next_one = self._waiting.popleft()
        self._waiting_bytes -= len(next_one.line) + ENTRY_BYTES
        entry = self._conversation.add(next_one.sender, next_one.line, next_one.at_s, next_one.event)
        if found := self._judge.see(entry):
            self._findings.take(self._conversation, found)
