"""The result of a turn as one value: its text, tool calls and changed files, how it ended and what went wrong."""

import os
from io import StringIO
from typing import Self

import msgspec

from dragoman.client.events import Done, Event, FileWritten, ToolChanged, Withdrawn
from dragoman.client.tool_call import ToolCallState
from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.text import one_line

SHOWN_CHARACTERS = 60
"""The part of an answer that a repr shows."""


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that a turn changed; `before` is None for a file that it created.

    The texts are those that the agent wrote through us, or showed as diffs of completed tool calls. An agent that shows
    only the lines around an edit gives only these. Deletions are not told by diffs.
    """

    path: str
    before: str | None
    after: str


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """A whole turn; after an error it has all that came until then."""

    text: str
    """The agent's answer: all its messages, without those that it has withdrawn."""
    stop_reason: str | None
    """One of the protocol's `StopReason`, or another word of the agent; None when the turn did not come to an end."""
    tool_calls: tuple[ToolCallState, ...] = ()
    """The tool calls, in the order in which they began, each in its last state."""
    changed_files: tuple[ChangedFile, ...] = ()
    """The files that differ from what they were, in the order in which they were changed first."""
    usage: v1.Usage | None = None
    """The tokens of the turn, from agents that count them."""
    error: DragomanError | None = None
    """What ended the turn before its time: `TurnTimeout`, `ProcessDied`, `RemoteError` and so on."""

    @property
    def is_complete(self) -> bool:
        """Whether the agent came to the end of its answer: no error, and the stop reason `end_turn`."""
        return self.error is None and self.stop_reason == "end_turn"

    def raise_for_error(self) -> Self:
        """Return the result itself; raises its error if there is one."""
        if self.error is not None:
            raise self.error
        return self

    def __repr__(self) -> str:
        parts = [self.stop_reason or "not ended"]
        if self.tool_calls:
            parts.append(f"{len(self.tool_calls)} tool calls")
        if self.changed_files:
            parts.append(f"{len(self.changed_files)} changed files")
        if self.error is not None:
            parts.append(f"error {type(self.error).__name__}: {one_line(str(self.error))[:SHOWN_CHARACTERS]}")
        return f"<TurnResult {', '.join(parts)}, text {one_line(self.text)[:SHOWN_CHARACTERS]!r}>"


class TurnSummary:
    """Gathers the result of a turn from its events, as they come."""

    def __init__(self, cwd: str) -> None:
        self.answer = Answer()
        self.end: Done | DragomanError | None = None
        self._calls: dict[str, ToolCallState] = {}
        self._changes = _FileChanges(cwd)

    def note(self, event: Event) -> None:
        """Take an event that is not `Text`: those go to `answer` directly."""
        match event:
            case ToolChanged(call):
                self._calls[call.tool_call_id] = call
                self._changes.note_call(call)
            case FileWritten(path, before, after):
                self._changes.note_written(path, before, after)
            case Withdrawn(message_id):
                self.answer.withdraw(message_id)
            case _:
                pass

    def result(self, error: DragomanError | None = None) -> TurnResult:
        """Return the result so far; `error` counts for more than the end of the turn."""
        done = self.end if isinstance(self.end, Done) else None
        failure = self.end if isinstance(self.end, DragomanError) else None
        return TurnResult(
            text="".join(self.answer.messages()),
            stop_reason=done.stop_reason if done else None,
            tool_calls=tuple(self._calls.values()),
            changed_files=self._changes.list_changed(),
            usage=done.usage if done else None,
            error=error or failure,
        )


class _FileChanges:
    """The first text before and the last text after, by path.

    A diff counts once its tool call is completed, because a call may be denied or fail after it was shown; it is kept
    until then, because later updates may replace it. Texts that were written through us are exact: the diffs of a file
    that was written so are ignored, because they may be fragments of the same change.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._changed: dict[str, ChangedFile] = {}
        self._written: set[str] = set()
        self._shown: dict[tuple[str, str], v1.Diff] = {}
        self._counted: dict[tuple[str, str], v1.Diff] = {}

    def note_call(self, call: ToolCallState) -> None:
        for item in call.content:
            if isinstance(item, v1.Diff):
                self._shown[call.tool_call_id, self._path(item.path)] = item
        if call.status != "completed":
            return
        for key, diff in self._shown.items():
            if key[0] == call.tool_call_id and self._counted.get(key) != diff:
                self._counted[key] = diff
                self._note_diff(key[1], diff)

    def note_written(self, path: str, before: str | None, after: str) -> None:
        path = self._path(path)
        earlier = self._changed.get(path) if path in self._written else None
        self._written.add(path)
        self._changed[path] = ChangedFile(path, earlier.before if earlier else before, after)

    def list_changed(self) -> tuple[ChangedFile, ...]:
        return tuple(each for each in self._changed.values() if each.before != each.after)

    def _note_diff(self, path: str, diff: v1.Diff) -> None:
        if path in self._written:
            return
        earlier = self._changed.get(path)
        if earlier is None:
            self._changed[path] = ChangedFile(path, diff.old_text, diff.new_text)
        elif diff.old_text and diff.old_text != earlier.after and diff.old_text in earlier.after:
            # An edit that shows only its lines, of a file that is known as a whole.
            self._changed[path] = ChangedFile(
                path, earlier.before, earlier.after.replace(diff.old_text, diff.new_text, 1)
            )
        else:
            self._changed[path] = ChangedFile(path, earlier.before, diff.new_text)

    def _path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path))  # noqa: PTH118 -- a Path would take `..` for words


class Answer:
    """The text of each message so far; chunks without an id that follow each other are one message."""

    def __init__(self) -> None:
        self._messages: list[tuple[str | None, StringIO]] = []
        self._id: str | None = None
        self._open: StringIO | None = None

    def add(self, text: str, message_id: str | None) -> None:
        """Take some of it."""
        if self._open is None or message_id != self._id:
            self._id, self._open = message_id, StringIO()
            self._messages.append((message_id, self._open))
        self._open.write(text)

    def withdraw(self, message_id: str | None) -> None:
        """Forget a message; without an id it is the last one."""
        if message_id is None:
            del self._messages[-1:]
        else:
            self._messages = [message for message in self._messages if message[0] != message_id]
        self._open = None

    def messages(self) -> list[str]:
        """Return the text of each message."""
        return [text.getvalue() for _, text in self._messages]
