"""The compaction of a conversation, as clients see it.

    async with turn.compaction(messages=12) as compaction:
        async for piece in summarise():
            await compaction.say(piece)

A client with the capability `session.compaction` sees the start, the growing summary and the end. Any other client
receives a text at the end. The text is a message if a slash command requested the compaction, because it is the answer,
and a notice otherwise. The log always has one update for the end, so that a replay can show it to clients that support
it.
"""

import asyncio
import uuid
from typing import Any, Literal, Self

import msgspec

from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.unawaited import must_await
from dragoman.protocol import v1

META = "dragoman/compaction"
"""The `_meta` key of the text that replaces the update for clients that cannot show it."""


class _ReplacementText(msgspec.Struct):
    words: str = ""
    asked: bool = False


class Compaction:
    """One compaction. `async with` shows its start and its end, as completed, failed or cancelled."""

    def __init__(self, session: Session, *, messages: int | None = None, asked: bool) -> None:
        """Create a compaction of `messages` messages. `asked` says whether a slash command requested it."""
        self.id = str(uuid.uuid4())
        self.unawaited = session.unawaited
        self._session = session
        self._asked = asked
        count = "" if messages is None else f", {messages} message{'' if messages == 1 else 's'},"
        end = ". The session log keeps all messages." if asked else " to make room."
        self._words = f"The conversation so far{count} was summarized{end}"
        self._summary: list[str] = []

    async def __aenter__(self) -> Self:
        if self._session.client.shows_compaction:
            self._session.updates.send_unlogged(v1.CompactionUpdate(compaction_id=self.id, status="in_progress"))
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            text = "".join(self._summary).strip()
            self._end("completed", summary=[v1.TextContent(text=text)] if text else [])
        elif isinstance(error, asyncio.CancelledError):
            self._end("cancelled")
        else:
            self._end("failed", error=str(error) or type(error).__name__)

    @must_await
    async def say(self, text: str) -> None:
        """Add a piece of the summary."""
        self._summary.append(text)
        if text and self._session.client.shows_compaction:
            chunk = v1.CompactionSummaryChunk(compaction_id=self.id, content=v1.TextContent(text=text))
            self._session.updates.send_unlogged(chunk)
            await self._session.updates.flow()

    def start_over(self, text: str = "") -> None:
        """Replace the whole summary. The client sees the new one at the end."""
        self._summary[:] = [text]

    def _end(self, status: Literal["completed", "failed", "cancelled"], **fields: Any) -> None:
        session = self._session
        if status == "completed":
            fields["meta"] = {META: {"words": self._words, "asked": self._asked}}
        update = v1.CompactionUpdate(compaction_id=self.id, status=status, **fields)
        if session.client.shows_compaction:
            session.updates.put(update)
            return
        session.updates.record_update(update)
        if (message := as_message(update)) is not None:
            session.updates.send_unlogged(message)
        elif status == "completed":
            session.notice(self._words)


def as_message(update: v1.CompactionUpdate) -> v1.AgentMessageChunk | None:
    """Return the message for a client that cannot show a compaction, or None if no slash command requested it."""
    facts = msgspec.convert((update.meta or {}).get(META, {}), _ReplacementText)
    if not facts.asked:
        return None
    return v1.AgentMessageChunk(content=v1.TextContent(text=facts.words), message_id=update.compaction_id)
