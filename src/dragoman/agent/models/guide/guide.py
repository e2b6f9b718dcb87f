"""`guide`: a model without a language model, which uses every tool of a session from ordinary words."""

from collections.abc import AsyncGenerator, Sequence

from dragoman.agent.models.model import ModelRequest, Part

CONTEXT_SIZE = 1_000_000
"""What a guide reports as its context: it reads everything and counts nothing."""


class GuideModel:
    """Understands fixed phrases and any tool's schema; needs no key, no network and no state."""

    name = "guide"
    context_size = CONTEXT_SIZE
    takes: frozenset[str] = frozenset()
    thought_levels: Sequence[str] = ()
    summarises = False

    def start(self) -> "GuideConversation":
        """Begin a conversation; all of them are alike."""
        return GuideConversation()


class GuideConversation:
    """Answers from the messages alone."""

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Stream the reply to the last message."""
        # Its many patterns take 30 ms to compile, which a session that is only loaded need not wait for.
        from dragoman.agent.models.guide.reply import Reply

        for part in Reply(request).parts():
            yield part
