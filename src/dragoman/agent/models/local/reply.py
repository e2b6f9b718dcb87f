"""The library's chunks of one reply, turned into our parts."""

from collections.abc import Iterable
from typing import Any

from dragoman.agent.models.local.answer import AnswerReader
from dragoman.agent.models.local.engine import Chunk
from dragoman.agent.models.model import Part, ReplyStop, ReplyText, ReplyThought, TokenUsage


class LocalReplyReader:
    """Reads one reply: a JSON object where the model had tools to choose from, else plain text."""

    def __init__(self, *, constrained: bool) -> None:
        self._answer = AnswerReader() if constrained else None
        self._usage: TokenUsage | None = None
        self._cut_off = False

    def take(self, chunk: Chunk) -> Iterable[Part]:
        """Return what a chunk says."""
        usage = chunk.get("usage")
        if usage:
            self._usage = TokenUsage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
        for choice in chunk["choices"]:
            self._cut_off |= choice.get("finish_reason") == "length"
            delta: dict[str, Any] = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                yield ReplyThought(thought)
            if written := delta.get("content"):
                yield from (ReplyText(written),) if self._answer is None else self._answer.feed(written)

    def finish(self) -> Iterable[Part]:
        """Return what is left when the stream is over."""
        if self._answer is not None:
            yield from self._answer.finish(cut_off=self._cut_off)
        if self._usage is not None:
            yield self._usage
        if self._cut_off:
            yield ReplyStop("max_tokens")
