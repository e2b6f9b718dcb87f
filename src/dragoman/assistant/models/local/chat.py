"""A conversation as a local model is given it: a system message, then person and model in turns.

Many chat templates know no tools and insist on turns, so calls and results are written out as words: a call as the
model wrote it, its result as a message of the person. Of many tools a small model is shown only the few that fit the
prompt, because it loses its way among many.
"""

import json
import math
from collections.abc import Collection, Sequence
from typing import Any

from dragoman.assistant.models.local.answer import write_call, write_reply
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    UserMessage,
    blob_kind,
    blob_text,
    link_words,
    refusal_words,
    resource_words,
)
from dragoman.assistant.models.model import ModelRequest, ToolDefinition
from dragoman.assistant.models.tool_index import ToolIndex
from dragoman.errors import ContextOverflow
from dragoman.protocol import v1
from dragoman.text.excerpt import shorten_middle

TOOLS_IN_FRONT = 6
"""Each costs about a hundred tokens to read, one to two seconds on one core; the number is chosen, not measured."""


async def choose_tools(
    tools: Sequence[ToolDefinition], prompt: str, used: Collection[str], index: ToolIndex
) -> list[ToolDefinition]:
    """Return the tools that the search finds nearest to the prompt and those in use, in the order they were given in.

    Nothing is searched, nor the search loaded, where they are few enough to show all.
    """
    if len(tools) <= TOOLS_IN_FRONT:
        return list(tools)
    near = await index.near(prompt, tools)
    ranked = sorted(tools, key=lambda tool: -near.get(tool.name, 0.0))
    chosen = {tool.name for tool in ranked[:TOOLS_IN_FRONT]} | set(used)
    return [tool for tool in tools if tool.name in chosen]


MAX_DESCRIPTION = 300
"""Characters of a tool's description, whose beginning matters most."""

RESULT_SHARE = 0.25
"""How much of the room one result, or one file that came with a prompt, may take; of a longer one the beginning and the
end are given."""

INSTRUCTIONS_SHARE = 0.25
"""The same for the instructions, among them the project's own, which may be as long as they like."""

STRIDES = 4
"""The oldest is dropped by quarters of the room: a conversation that begins as the last one did need not be read anew,
and one that lost a little at its beginning with each request would be, every time."""

_CUT = "\n[… cut: too long for this model …]\n"
_HOW = """Answer with one JSON object and nothing else. To say something to the person:
{"reply": "…"}
To use a tool:
{"tool": "its name", "arguments": {…}}
When something is to be looked up or done, use the tool for it; you get its result, and then reply.

The tools, each with the JSON schema of its arguments:
"""

ChatTurn = tuple[str, str]


async def tools_in_front(request: ModelRequest, index: ToolIndex) -> list[ToolDefinition]:
    """Return the tools that the prompt being answered needs, by the search, and those that its answer used so far."""
    messages = _since_summary(request.messages)
    return await choose_tools(request.tools, _last_prompt(messages), _used_tools(messages), index)


class Chat:
    """The messages for one reply, within a number of characters; `tools` are the tools that the model is shown."""

    def __init__(self, request: ModelRequest, tools: Sequence[ToolDefinition]) -> None:
        self._messages = _since_summary(request.messages)
        self._instructions = request.instructions
        self.tools = tools

    def write(self, max_characters: int) -> list[dict[str, str]]:
        """Return the newest of it that fits; raises ContextOverflow when not even the prompt does."""
        system = self._system(int(max_characters * INSTRUCTIONS_SHARE))
        turns, prompt = self._turns(int(max_characters * RESULT_SHARE))
        turns = _newest(turns, prompt, max_characters - len(system))
        messages = [{"role": "system", "content": system}] if system else []
        return messages + [{"role": role, "content": text} for role, text in _merge(turns)]

    def _system(self, max_instructions: int) -> str:
        instructions = shorten_middle(self._instructions, max_instructions, _CUT)
        if not self.tools:
            return instructions
        tools = "\n".join(_describe(tool) for tool in self.tools)
        return f"{instructions}\n\n{_HOW}{tools}".strip()

    def _turns(self, max_result: int) -> tuple[list[ChatTurn], int]:
        """Return all turns, and which of them is the prompt that is being answered."""
        turns: list[ChatTurn] = []
        prompt, names = 0, _names(self._messages)
        for message in self._messages:
            if isinstance(message, UserMessage | SummaryMessage):
                prompt = len(turns)
            turns += self._write_message(message, names, max_result)
        return turns, min(prompt, len(turns) - 1)

    def _write_message(self, message: Message, names: dict[str, str], max_result: int) -> list[ChatTurn]:
        match message:
            case UserMessage(content):
                return [("user", prompt_text(content, max_result))]
            case SummaryMessage(text, prompt):
                asked = prompt_text(prompt, max_result)
                return [("user", f"What was said before, in short: {text}\n\n{asked}".strip())]
            case AssistantMessage():
                return self._write_reply(message)
            case ToolMessage(results):
                return [("user", _result(result, names, max_result)) for result in results]

    def _write_reply(self, message: AssistantMessage) -> list[ChatTurn]:
        said = [message.text] if message.text else []
        if self.tools:
            said = [write_reply(text) for text in said]
        said += [write_call(use.name, use.arguments) for use in message.tool_uses]
        return [("assistant", text) for text in said]


def prompt_text(blocks: Sequence[v1.ContentBlock], max_resource: int) -> str:
    """Return a prompt's blocks as text, each file within so many characters; other content becomes a word."""
    return "\n".join(_block(block, max_resource) for block in blocks)


def _block(block: v1.ContentBlock, max_resource: int) -> str:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.ResourceLink():
            return link_words(block)
        case v1.EmbeddedResource(resource=resource):
            return _resource(resource, max_resource)
        case _:
            return "[something that this model cannot be given: it takes text only]"


def _resource(resource: v1.EmbeddedResourceResource, max_characters: int) -> str:
    text = resource.text if isinstance(resource, v1.TextResourceContents) else blob_text(resource)
    if text is not None:
        return resource_words(resource.uri, shorten_middle(text, max_characters, _CUT))
    kind, media_type = blob_kind(resource)
    return refusal_words(kind, f"{resource.uri}, {media_type}")


def _since_summary(messages: Sequence[Message]) -> Sequence[Message]:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, SummaryMessage):
            rest = messages[index + 1 :]
            repeated = bool(rest) and rest[0] == UserMessage(message.prompt)  # the summary has said it already
            return [message, *rest[repeated:]]
    return messages


def _last_prompt(messages: Sequence[Message]) -> str:
    """Return the person's own words, which state the request better than the files that came with them."""
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return prompt_text(message.content, 0)
        if isinstance(message, SummaryMessage) and message.prompt:
            return prompt_text(message.prompt, 0)
    return ""


def _used_tools(messages: Sequence[Message]) -> frozenset[str]:
    """Return the tools that were called since the last prompt: the model is in the middle of using them."""
    used: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, AssistantMessage):
            used |= {use.name for use in message.tool_uses}
    return frozenset(used)


def _names(messages: Sequence[Message]) -> dict[str, str]:
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    return {use.id: use.name for reply in replies for use in reply.tool_uses}


def _result(result: ToolResult, names: dict[str, str], max_characters: int) -> str:
    what = "failed" if result.failed else "returned"
    return f"{names.get(result.id, 'The tool')} {what}:\n{shorten_middle(result.text, max_characters, _CUT)}"


def _newest(turns: list[ChatTurn], prompt: int, max_characters: int) -> list[ChatTurn]:
    """Drop the oldest until the rest fits; the prompt and the last turn stay."""
    size = sum(len(text) for _, text in turns)
    if size <= max_characters:
        return turns
    kept = dict(enumerate(turns))
    stride = max(max_characters // STRIDES, 1)
    goal = size - math.ceil((size - max_characters) / stride) * stride
    for index, (_, text) in enumerate(turns):
        if size <= goal:
            break
        if index not in (prompt, len(turns) - 1):
            size -= len(text)
            del kept[index]
    if size > max_characters:
        raise ContextOverflow("the prompt and its results are too long for this model; ask for less at a time")
    return list(kept.values())


def _merge(turns: Sequence[ChatTurn]) -> list[ChatTurn]:
    """Join messages of the same side that follow each other, and let the person begin."""
    merged: list[ChatTurn] = []
    for role, text in turns:
        if merged and merged[-1][0] == role:
            merged[-1] = (role, f"{merged[-1][1]}\n\n{text}")
        elif merged or role == "user":
            merged.append((role, text))
    return merged


def _describe(tool: ToolDefinition) -> str:
    about = " ".join(tool.description.split())
    about = about if len(about) <= MAX_DESCRIPTION else f"{about[:MAX_DESCRIPTION]}…"
    schema: dict[str, Any] = {key: value for key, value in tool.parameters.items() if not key.startswith("$schema")}
    return f"- {tool.name}: {about} {json.dumps(schema, ensure_ascii=False)}"
