"""`guide`: a model without a language model, which uses the tools of a session from plain words."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from dragoman.assistant.models.model import ModelRequest, Part
from dragoman.loading import load_in_background

if TYPE_CHECKING:
    from dragoman.assistant.models.guide.reply import GuideReplies

CONTEXT_SIZE = 1_000_000
"""The context that the guide reports: it reads everything and counts nothing."""


class GuideModel:
    """Understands plain requests by fixed rules; needs no key and no network."""

    name = "guide"
    context_size = CONTEXT_SIZE
    takes: frozenset[str] = frozenset()
    thought_levels: Sequence[str] = ()
    summarises = False

    def start(self) -> "GuideConversation":
        """Begin a conversation; all of them are alike."""
        return GuideConversation()

    async def close(self) -> None:
        """Do nothing: it holds nothing."""


class GuideConversation:
    """Answers from the messages alone; the index of tools is kept to save making it again."""

    def __init__(self) -> None:
        self._replies: GuideReplies | None = None

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Stream the reply to the last message."""
        if self._replies is None:
            # The patterns take some 50 ms to compile, which a session that is only loaded need not wait for.
            self._replies = (await asyncio.wrap_future(load_in_background(_import_replies)))()
        for part in await asyncio.to_thread(self._replies.make, request):
            yield part


def _import_replies() -> "type[GuideReplies]":
    from dragoman.assistant.models.guide.reply import GuideReplies

    return GuideReplies
