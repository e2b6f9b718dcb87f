"""Making a conversation shorter for the model that it outgrew: what was said is summed up, and goes on from there.

The log keeps everything; only the model's memory begins anew, with a `SummaryMessage`.
"""

from collections.abc import Sequence
from contextlib import aclosing

from dragoman.agent.models.message import AssistantMessage, Message, SummaryMessage, UserMessage
from dragoman.agent.models.model import ModelRequest, Retry, Text
from dragoman.agent.session import Session
from dragoman.protocol import v1

FULL = 0.8
"""How full the context may get before the conversation is summed up by itself: the next reply needs room too."""

_REQUEST = (
    "Sum up our conversation so far so that you could go on from your summary alone: what was asked for, what was "
    "done and found, with names of files and commands, what was decided, and what is left to do. Only the summary."
)
_DIGEST_PROMPTS = 20
_DIGEST_CHARACTERS = 2_000


async def compact(session: Session, prompt: list[v1.ContentBlock] | None = None) -> None:
    """Let the model go on from a summary of what was said, and from the prompt it is answering; raises ModelFailure."""
    session.remember(SummaryMessage(await _summarise(session), prompt or []))


async def _summarise(session: Session) -> str:
    messages = session.messages
    if not session.model.summarises:
        return _digest(messages)
    request = ModelRequest([*messages, UserMessage([v1.TextContent(text=_REQUEST)])])
    said: list[str] = []
    async with aclosing(session.conversation.reply(request)) as parts:
        async for part in parts:
            if isinstance(part, Text):
                said.append(part.text)
            elif isinstance(part, Retry):
                said.clear()
    return "".join(said).strip() or _digest(messages)


def _digest(messages: Sequence[Message]) -> str:
    """Sum up without a model: what the person asked for, and how the last answer began."""
    asked = [
        block.text
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, v1.TextContent)
    ]
    said = [message.text for message in messages if isinstance(message, AssistantMessage) and message.text]
    lines = [f"- {' '.join(text.split())[:_DIGEST_CHARACTERS]}" for text in asked[-_DIGEST_PROMPTS:]]
    last = f"\nThe last answer: {said[-1][:_DIGEST_CHARACTERS]}" if said else ""
    return "The person asked:\n" + "\n".join(lines) + last
