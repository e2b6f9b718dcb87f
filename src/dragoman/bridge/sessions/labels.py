"""Labels of sessions: the title set by the user, the archive state, the parent of a subagent, and the origin.

The labels of an agent are in one small file, `<home>/bridge/<agent>/labels.json`. They are not in the journals, because
a session that only the agent lists has no journal, and a closed journal must be read completely before a record can be
added. Most sessions have no label. A changed label is on the disk before it is announced.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from dragoman.cancellation import finish_in_thread
from dragoman.files.replacement import replace_file
from dragoman.store.naming import link_damaged
from dragoman.text.title import make_title
from dragoman.wire.envelope import fields_of, string_of

_OWN_RIGHTS = 0o600

_COMMAND = re.compile(r"/[\w:.-]+(?:\s|$)")

_log = logging.getLogger("dragoman.bridge")


class SessionLabel(msgspec.Struct, frozen=True, omit_defaults=True):
    """The label of one session."""

    title: str | None = None
    """The title set by the user. A title from the agent does not replace it."""
    archived: bool = False
    parent: str | None = None
    """The session that this one is a subagent of."""
    origin: str | None = None
    """The program that started the session, if it named itself: `run` for `dragoman run`."""


NO_LABEL = SessionLabel()

LabelChanges: TypeAlias = Mapping[str, str | bool | None]
"""Fields of a label, with their new values."""

SESSIONS, RUNS, ARCHIVED = "sessions", "runs", "archived"
GROUPS = (SESSIONS, RUNS, ARCHIVED)
"""The groups of lists: sessions started by users, sessions started by programs, and all archived sessions."""


def group_of(label: SessionLabel) -> str | None:
    """Return the group of a session. A subagent belongs to its parent and has no group."""
    if label.parent is not None:
        return None
    if label.archived:
        return ARCHIVED
    return SESSIONS if label.origin is None else RUNS


_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict[str, SessionLabel]).decode


class SessionLabels:
    """The labels of one agent's sessions, in memory and in their file."""

    def __init__(self, path: Path) -> None:
        self.on_changed: Callable[[str], None] | None = None
        """Called with each session whose label changed."""
        self._path = path
        self._labels: dict[str, SessionLabel] = {}
        self._writing = asyncio.Lock()

    async def read(self) -> None:
        """Read the file if it exists. A copy of an unreadable file is kept. Raises OSError."""
        self._labels = await asyncio.to_thread(_read, self._path)

    def of(self, session_id: str) -> SessionLabel:
        """Return the label of a session."""
        return self._labels.get(session_id, NO_LABEL)

    def ids(self) -> list[str]:
        """Return the sessions that have a label."""
        return list(self._labels)

    def children_of(self, session_id: str) -> list[str]:
        """Return the subagents of a session."""
        return [each for each, label in self._labels.items() if label.parent == session_id]

    def descendants_of(self, session_id: str) -> list[str]:
        """Return the subagents of a session at all depths."""
        found = self.children_of(session_id)
        for child in found:  # the list grows during the loop
            found += [each for each in self.children_of(child) if each not in (session_id, *found)]
        return found

    async def change(self, session_id: str, **changes: str | bool | None) -> SessionLabel:
        """Change fields of a label, on the disk and then in memory. Raises OSError."""
        async with self._writing:
            label = await self._store(session_id, changes)
            if label != self.of(session_id):
                self.keep(session_id, label)
            return label

    async def forget(self, session_id: str) -> None:
        """Remove the label of a deleted session. Raises OSError."""
        async with self._writing:
            if session_id in self._labels:
                await self._remove(session_id)
                self.keep(session_id, NO_LABEL)

    def keep(self, session_id: str, label: SessionLabel) -> None:
        """Store a label in memory that is written already."""
        if label == NO_LABEL:
            self._labels.pop(session_id, None)
        else:
            self._labels[session_id] = label
        if self.on_changed is not None:
            self.on_changed(session_id)

    async def _store(self, session_id: str, changes: LabelChanges) -> SessionLabel:
        """Apply changes to a label, write it if it differs, and return it."""
        before = self.of(session_id)
        label = msgspec.structs.replace(before, **changes)
        if label != before:
            await self._write(_with(self._labels, session_id, label))
        return label

    async def _remove(self, session_id: str) -> None:
        await self._write(_with(self._labels, session_id, NO_LABEL))

    async def _write(self, labels: dict[str, SessionLabel]) -> None:
        await finish_in_thread(lambda: replace_file(self._path, _encode(labels), mode=_OWN_RIGHTS))


def _with(labels: dict[str, SessionLabel], session_id: str, label: SessionLabel) -> dict[str, SessionLabel]:
    """Return labels with one of them replaced. Empty labels are removed."""
    changed = {**labels, session_id: label}
    return {key: value for key, value in changed.items() if value != NO_LABEL}


def _read(path: Path) -> dict[str, SessionLabel]:
    try:
        return _decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        aside = link_damaged(path)
        _log.warning("%s cannot be read (%s) and is kept as %s: titles and the archive start empty", path, error, aside)
        path.unlink()
        return {}


def title_of(prompt: Iterable[Raw]) -> str | None:
    """Return a title made from the first words of a prompt, or None for a command. The next prompt says more."""
    for block in map(fields_of, prompt):
        words = (string_of(block.get("text")) or "").strip() if string_of(block.get("type")) == "text" else ""
        if words:
            return None if _COMMAND.match(words) else make_title(words) or None
    return None


def describe_label(label: SessionLabel) -> dict[str, Any]:
    """Return the fields that a label adds to an announcement."""
    described: dict[str, Any] = {"archived": True} if label.archived else {}
    named = {"parent": label.parent, "origin": label.origin}
    return {**described, **{key: value for key, value in named.items() if value is not None}}
