"""The result of a turn as one value: text, tool calls, changed files, stop reason and error."""

import os
from io import StringIO
from typing import Self

import msgspec

from dragoman.client.events import Event, FileWritten, MessageWithdrawn, ToolCallChanged, TurnFinished
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.text import one_line

SHOWN_CHARACTERS = 60
"""Length of the excerpt in a repr."""


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that a turn changed. `before` is None for a new file.

    The texts come from `fs/write_text_file` and from the diffs of completed tool calls. Some agents send only the lines
    around an edit, and then the texts are these lines. Diffs do not report deletions.
    """

    path: str
    before: str | None
    after: str


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """A whole turn. After an error it has everything that arrived before."""

    text: str
    """The agent's answer: all its messages except the withdrawn ones."""
    stop_reason: str | None
    """A `StopReason` of the protocol, or another word from the agent. None if the turn did not end normally."""
    tool_calls: tuple[ToolCallState, ...] = ()
    """The tool calls in the order in which they began, each in its last state."""
    changed_files: tuple[ChangedFile, ...] = ()
    """The files whose content changed, in the order of their first change."""
    usage: v1.Usage | None = None
    """The tokens of the turn, if the agent counts them."""
    error: DragomanError | None = None
    """The error that ended the turn, such as TurnTimeoutError, ProcessDiedError or RemoteError."""

    @property
    def is_complete(self) -> bool:
        """Whether the agent finished its answer: no error, and the stop reason `end_turn`."""
        return self.error is None and self.stop_reason == "end_turn"

    def raise_for_error(self) -> Self:
        """Return the result itself, or raise its error if it has one."""
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
    """Builds the result of a turn from its events."""

    def __init__(self, cwd: str) -> None:
        self.answer = Answer()
        self.end: TurnFinished | DragomanError | None = None
        self._calls: dict[str, ToolCallState] = {}
        self._changes = _FileChanges(cwd)

    def add(self, event: Event) -> None:
        """Add an event other than `TextChunk`. The caller adds text chunks to `answer`."""
        match event:
            case ToolCallChanged(call):
                self._calls[call.tool_call_id] = call
                self._changes.add_call(call)
            case FileWritten(path, before, after):
                self._changes.add_written(path, before, after)
            case MessageWithdrawn(message_id):
                self.answer.withdraw(message_id)
            case _:
                pass

    def result(self, error: DragomanError | None = None) -> TurnResult:
        """Return the result so far. `error` replaces the error that ended the turn."""
        done = self.end if isinstance(self.end, TurnFinished) else None
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
    """The first text before and the last text after the turn, by path.

    A diff is shown before its call is allowed, and the call may still fail. It therefore counts only when its call is
    completed, and until then a later update may replace it. Texts from `fs/write_text_file` are exact. For a file with
    such a text the diffs are ignored, because they may be fragments of the same change.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._changed: dict[str, ChangedFile] = {}
        self._written: set[str] = set()
        self._shown: dict[tuple[str, str], v1.Diff] = {}
        self._counted: dict[tuple[str, str], v1.Diff] = {}

    def add_call(self, call: ToolCallState) -> None:
        for item in call.content:
            if isinstance(item, v1.Diff):
                self._shown[call.tool_call_id, self._path(item.path)] = item
        if call.status != "completed":
            return
        for key, diff in self._shown.items():
            if key[0] == call.tool_call_id and self._counted.get(key) != diff:
                self._counted[key] = diff
                self._add_diff(key[1], diff)

    def add_written(self, path: str, before: str | None, after: str) -> None:
        path = self._path(path)
        earlier = self._changed.get(path) if path in self._written else None
        self._written.add(path)
        self._changed[path] = ChangedFile(path, earlier.before if earlier else before, after)

    def list_changed(self) -> tuple[ChangedFile, ...]:
        return tuple(each for each in self._changed.values() if each.before != each.after)

    def _add_diff(self, path: str, diff: v1.Diff) -> None:
        if path in self._written:
            return
        earlier = self._changed.get(path)
        if earlier is None:
            self._changed[path] = ChangedFile(path, diff.old_text, diff.new_text)
        elif diff.old_text and diff.old_text != earlier.after and diff.old_text in earlier.after:
            # The diff has only the changed lines of a file whose whole text is known.
            self._changed[path] = ChangedFile(
                path, earlier.before, earlier.after.replace(diff.old_text, diff.new_text, 1)
            )
        else:
            self._changed[path] = ChangedFile(path, earlier.before, diff.new_text)

    def _path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path))  # noqa: PTH118 -- a Path would take `..` for words


class Answer:
    """The text of each message so far. Consecutive chunks without an id form one message."""

    def __init__(self) -> None:
        self._messages: list[tuple[str | None, StringIO]] = []
        self._id: str | None = None
        self._open: StringIO | None = None

    def add(self, text: str, message_id: str | None) -> None:
        """Append a piece of text to the message with this id."""
        if self._open is None or message_id != self._id:
            self._id, self._open = message_id, StringIO()
            self._messages.append((message_id, self._open))
        self._open.write(text)

    def withdraw(self, message_id: str | None) -> None:
        """Remove a message, or the last one if there is no id."""
        if message_id is None:
            del self._messages[-1:]
        else:
            self._messages = [message for message in self._messages if message[0] != message_id]
        self._open = None

    def messages(self) -> list[str]:
        """Return the text of each message."""
        return [text.getvalue() for _, text in self._messages]
