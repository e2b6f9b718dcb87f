"""The edge of a viewer: the records of a session in the form that this viewer understands.

Records are journalled as the agent sent them. A viewer may need them in another form:

- Its own prompts are left out, and its names of terminals put back.
- Updates that it does not support, such as compactions and subagents, become thoughts, which no client takes for the
  answer. The agent sends them because the bridge or another viewer supports them. One update stays one update, so that
  cursors are the same for every viewer.
- Records in another version of ACP are translated, by a translator that has read the earlier records. If a viewer
  continues at a cursor, its translator first reads the records up to there, and the viewer receives none of them. If
  one record becomes several messages, all but the last have the cursor of the previous record. So none of them is lost
  if the stream breaks in between.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from dragoman.bridge.delivery import MessageRun
from dragoman.bridge.delivery.stream_item import mark_cursors
from dragoman.bridge.envelope import rename_terminals, with_update
from dragoman.bridge.translation import StreamTranslator
from dragoman.protocol.translate.session_for_v1 import SupportedUpdates, fallback_text
from dragoman.store.history import ReadableHistory
from dragoman.store.runs import Mark
from dragoman.wire.envelope import decode_fields, fields_of, string_of

if TYPE_CHECKING:
    from dragoman.bridge.viewers.viewer import Viewer


class SessionEdge:
    """The form of one session's records for one viewer."""

    __slots__ = ("_session_id", "_viewer", "origin", "silent_until", "translator")

    def __init__(self, viewer: "Viewer", session_id: str) -> None:
        self.translator: StreamTranslator | None = None
        self.origin = 0
        """The record at which the translator begins."""
        self.silent_until = 0
        """The last record that the viewer already has. Only the translator reads the records up to it."""
        self._viewer = viewer
        self._session_id = session_id

    def restart(self, history: ReadableHistory | None, cursor: int, origin: int) -> int:
        """Restart for a viewer that has all records up to one. Return the record to begin after."""
        if history is None or history.is_all_in(self._viewer.version):
            origin = cursor
        self.translator = None
        self.origin = min(origin, cursor)
        self.silent_until = cursor
        return self.origin

    def mark_for(self, history: ReadableHistory) -> Mark | None:
        """Return the function that adds cursors to records. A translation adds them afterwards."""
        if self._viewer.has_cursors and history.is_all_in(self._viewer.version):
            return mark_cursors(history.epoch)
        return None

    def read_silently(self, history: ReadableHistory, runs: list[MessageRun]) -> None:
        """Feed the translator with records that the viewer has."""
        for run in runs:
            if history.version_at(run.first) != self._viewer.version:
                self._translator_of(history).translate(run.lines, run.first)

    def adapt(self, history: ReadableHistory, runs: list[MessageRun]) -> list[MessageRun]:
        """Return runs in the form of the viewer."""
        viewer = self._viewer
        if (replace := viewer.replace_unsupported) is not None:
            runs = [run if run.is_ordinary else self._replace(history, run, replace) for run in runs]
        if names := viewer.terminal_names.get(self._session_id):
            runs = [run.change(lambda lines, names=names: rename_terminals(lines, names)) for run in runs]
        if not history.is_all_in(viewer.version):
            runs = [translated for run in runs for translated in self._translate(history, run)]
        return runs

    def _replace(self, history: ReadableHistory, run: MessageRun, replace: Callable[[bytes], bytes]) -> MessageRun:
        return run.change(replace) if history.version_at(run.first) == self._viewer.version else run

    def _translate(self, history: ReadableHistory, run: MessageRun) -> Iterator[MessageRun]:
        """Return a run in the viewer's version, with its cursors."""
        translated: Iterator[MessageRun] = iter([run])
        if history.version_at(run.first) != self._viewer.version:
            translated = _translate_run(run, self._translator_of(history))
        if not self._viewer.has_cursors:
            return translated
        return map(mark_cursors(history.epoch), translated)

    def _translator_of(self, history: ReadableHistory) -> StreamTranslator:
        if self.translator is None:
            self.translator = self._viewer.make_translator(self._session_id, history.cursor)
        return self.translator


def _translate_run(run: MessageRun, translator: StreamTranslator) -> Iterator[MessageRun]:
    """Return the translated messages of a run. Messages that are each replaced by one message stay together."""
    translated = translator.translate(run.lines, run.first)
    if translated is run.lines:
        yield run
        return
    if isinstance(translated, bytes):
        yield MessageRun(translated, run.first, run.time_ms, count=run.last - run.first + 1)
        return
    together: list[bytes] = []
    for seq, messages in enumerate(translated, run.first):
        if len(messages) != 1 and together:
            yield _join(together, seq - 1, run.time_ms)
            together = []
        for message in messages[:-1]:
            yield _join([message], seq - 1, run.time_ms)
        if len(messages) > 1:
            yield _join(messages[-1:], seq, run.time_ms)
        else:
            together += messages
    if together:
        yield _join(together, run.last, run.time_ms)


def _join(messages: list[bytes], last: int, time_ms: int) -> MessageRun:
    return MessageRun(b"\n".join([*messages, b""]), last - len(messages) + 1, time_ms, count=len(messages))


_COMPACTION = frozenset({"compaction_update", "compaction_summary_chunk"})
_SUBAGENTS = frozenset({"subagent_update", "session_message", "session_message_chunk"})
_MARKS = {
    **dict.fromkeys(_COMPACTION, b'"compaction_'),
    "subagent_update": b'"subagent_update"',
    **dict.fromkeys(("session_message", "session_message_chunk"), b'"session_message'),
}
"""Bytes that every such update contains."""


@cache
def unsupported_replacer(takes: SupportedUpdates) -> Callable[[bytes], bytes] | None:
    """Return the function that replaces updates that a viewer does not support. None if it supports all.

    It is the same function for all viewers that support the same updates, so that they share its results.
    """
    is_supported = {**dict.fromkeys(_COMPACTION, takes.compaction), **dict.fromkeys(_SUBAGENTS, takes.subagents)}
    unsupported = frozenset(kind for kind, is_there in is_supported.items() if not is_there)
    if not unsupported:
        return None
    marks = tuple({_MARKS[kind] for kind in unsupported})

    def replace(lines: bytes) -> bytes:
        if not any(mark in lines for mark in marks):
            return lines
        return b"".join(_replace_line(line, unsupported) + b"\n" for line in lines[:-1].split(b"\n"))

    return replace


def _replace_line(line: bytes, unsupported: frozenset[str]) -> bytes:
    update = fields_of(fields_of(decode_fields(line).get("params", UNSET)).get("update", UNSET))
    if string_of(update.get("sessionUpdate")) not in unsupported:
        return line
    words = fallback_text({key: msgspec.json.decode(value) for key, value in update.items()})
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": f"{words}\n\n"}}
    return with_update(line, thought)
