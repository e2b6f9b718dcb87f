"""`guide`: the default model, which is not a language model. Fixed rules turn simple requests into tool calls.

A reply depends only on the messages. The routine of the last prompt is started again and receives the results that
the messages have. Its first call without a result is the next step of the turn.
"""

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.assistant.models.model import Part, ReplyRequest, ReplyStop, ReplyText, ReplyThought
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.assistant.models.guide.routines import GuideCall, GuideRoutine

CONTEXT_SIZE = 1_000_000
"""The context that the guide reports. It counts no tokens."""

_PIECE = re.compile(r"\s*\S+\s*|\s+\Z")


class GuideModel:
    """Understands simple requests by fixed rules. It needs no key and no network."""

    name = "guide"
    context_size = CONTEXT_SIZE
    content_types: frozenset[str] = frozenset()
    thought_levels: Sequence[str] = ()
    summarises = False

    def start(self) -> "GuideConversation":
        """Begin a conversation. It has no state."""
        return GuideConversation()

    async def close(self) -> None:
        """Do nothing: the model holds no resources."""


class GuideConversation:
    """Answers from the messages of each request."""

    async def reply(self, request: ReplyRequest) -> AsyncGenerator[Part]:
        """Stream the reply to the last message."""
        for part in await asyncio.to_thread(_reply, request):
            yield part


class _Turn(msgspec.Struct):
    """A prompt and the calls after it."""

    content: Sequence[v1.ContentBlock]
    uses: list[ToolUse] = []
    results: dict[str, ToolResult] = {}


def _reply(request: ReplyRequest) -> list[Part]:
    # The rules are imported and compiled in this thread, so that a session that is only loaded does not wait for them.
    from dragoman.assistant.models.guide.prompt import read_prompt
    from dragoman.assistant.models.guide.rules import understand

    turns = _read_turns(request.messages)
    prompt = read_prompt(turns[-1].content)
    results = [turns[-1].results[use.id] for use in turns[-1].uses if use.id in turns[-1].results]
    routine = understand(prompt, _last_path(turns[:-1]), request.tools)
    texts = [f"I can't read {' and '.join(prompt.unread)}, so I only look at the text."] if prompt.unread else []
    return list(_continue(routine, {tool.name for tool in request.tools}, results, texts))


def _continue(routine: "GuideRoutine", tools: set[str], results: list[ToolResult], texts: list[str]) -> Iterator[Part]:
    """Send a routine the available results, and yield its following text and its next call."""
    from dragoman.assistant.models.guide.routines import Refusal

    result, is_refused = None, False
    while True:
        try:
            move = next(routine) if result is None else routine.send(result)
        except StopIteration:
            break
        result = ToolResult("", "")
        if isinstance(move, str):
            texts.append(move)
        elif isinstance(move, Refusal):
            texts.append(move.text)
            is_refused = True
        elif move.tool not in tools:
            result = ToolResult("", "this session has no tool of that name", failed=True)
        elif results:
            result = results.pop(0)
            texts.clear()  # shown before that call
        else:
            yield from _stream("\n\n".join(texts) + "\n" if texts else "")
            yield ReplyThought(_explain(move))
            yield ToolUse(f"call-{uuid.uuid4()}", move.tool, move.arguments)
            return
    yield from _stream("\n\n".join(texts) or "Done.")
    if is_refused:
        yield ReplyStop("refusal")  # a program must not mistake this for work that was done


def _read_turns(messages: Sequence[Message]) -> list[_Turn]:
    turns: list[_Turn] = []
    for message in messages:
        match message:
            case UserMessage(content):
                turns.append(_Turn(content))
            case SummaryMessage(_, prompt) if prompt:
                turns.append(_Turn(prompt))
            case AssistantMessage(_, _, tool_uses) if turns:
                turns[-1].uses += tool_uses
            case ToolMessage(results) if turns:
                turns[-1].results.update({result.id: result for result in results})
            case _:  # the rest of a conversation that was compacted
                pass
    return turns or [_Turn([])]


def _last_path(turns: Sequence[_Turn]) -> str | None:
    """Return the file that was named last."""
    paths = (use.arguments.get("path") for turn in reversed(turns) for use in reversed(turn.uses))
    return next((path for path in paths if isinstance(path, str) and path != "."), None)


def _explain(call: "GuideCall") -> str:
    from dragoman.assistant.models.guide.results import one_line

    values = ", ".join(f"{name} = {one_line(str(value), 60)}" for name, value in call.arguments.items())
    return f"Calling `{call.tool}`{f' with {values}' if values else ''}"


def _stream(text: str) -> Iterator[Part]:
    return (ReplyText(piece) for piece in _PIECE.findall(text))
