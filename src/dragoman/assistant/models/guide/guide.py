"""`guide`: a model without a language model, which uses every tool of a session from ordinary words."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.assistant.models.model import ModelRequest, Part

if TYPE_CHECKING:
    from dragoman.assistant.models.guide.meaning import Meaning
    from dragoman.assistant.models.guide.reply import GuideReply
    from dragoman.assistant.search.embedder import Embedder

CONTEXT_SIZE = 1_000_000
"""What a guide reports as its context: it reads everything and counts nothing."""

MAX_LOOKUPS = 8
"""How often a reply may ask the search: what it learns may raise a further question, once for a step at most."""


class GuideModel:
    """Understands fixed phrases and any tool's schema; needs no key and no network.

    `load` replaces what makes vectors of texts, for the search among tools.
    """

    name = "guide"
    context_size = CONTEXT_SIZE
    takes: frozenset[str] = frozenset()
    thought_levels: Sequence[str] = ()
    summarises = False

    def __init__(self, load: "Callable[[], Embedder] | None" = None) -> None:
        self._load = load

    def start(self) -> "GuideConversation":
        """Begin a conversation; all of them are alike."""
        return GuideConversation(self._load)

    async def close(self) -> None:
        """Do nothing: it holds nothing."""


class GuideConversation:
    """Answers from the messages alone; what the search said is kept only to save asking again."""

    def __init__(self, load: "Callable[[], Embedder] | None" = None) -> None:
        self._load = load
        self._meaning: Meaning | None = None

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Stream the reply to the last message."""
        for part in (await self._decide(request)).parts():
            yield part

    async def _decide(self, request: ModelRequest) -> "GuideReply":
        # Its many patterns take 30 ms to compile, which a session that is only loaded need not wait for.
        from dragoman.assistant.models.guide.meaning import Meaning
        from dragoman.assistant.models.guide.reply import GuideReply

        self._meaning = self._meaning or Meaning(self._load)
        reply = GuideReply(request, self._meaning)
        for _ in range(MAX_LOOKUPS):
            if not await self._meaning.look_up():
                break
            reply = GuideReply(request, self._meaning)
        return reply
