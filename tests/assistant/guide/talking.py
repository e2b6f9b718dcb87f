"""A conversation with the guide, tools played by the test."""

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.message import AssistantMessage, ToolMessage, ToolResult, ToolUse, UserMessage
from dragoman.assistant.models.model import ModelRequest, ReplyText, ReplyThought
from dragoman.protocol import v1


def prompt(text):
    return UserMessage([v1.TextContent(text=text)])


def plain(parts):
    """A reply without the parts that differ each time."""
    return [(part.name, part.arguments) if isinstance(part, ToolUse) else part for part in parts]


async def reply(messages, tools):
    return [part async for part in GuideModel().start().reply(ModelRequest(messages, tools))]


class Talk:
    """Keeps the messages as a turn does."""

    def __init__(self, tools):
        self.tools = tools
        self.messages = []
        self.replies = []

    async def say(self, text, results=()):
        """Send a prompt and play the tools: `results` are texts, or exceptions for failures, in order of the calls."""
        self.messages.append(prompt(text) if isinstance(text, str) else text)
        said, calls, waiting = [], [], list(results)
        while True:
            parts = await reply(self.messages, self.tools)
            self.replies.append(parts)
            uses = [part for part in parts if isinstance(part, ToolUse)]
            spoken = "".join(part.text for part in parts if isinstance(part, ReplyText))
            thought = "".join(part.text for part in parts if isinstance(part, ReplyThought))
            self.messages.append(AssistantMessage(spoken, thought, uses))
            said.append(spoken)
            calls += [(use.name, use.arguments) for use in uses]
            assert len(calls) < 100, "it does not end"
            if not uses:
                return "\n".join(said), calls
            self.messages.append(ToolMessage([self.play(use, waiting) for use in uses]))

    def play(self, use, waiting):
        result = "ok" if use.name == "update_plan" or not waiting else waiting.pop(0)
        if isinstance(result, Exception):
            return ToolResult(use.id, str(result), failed=True)
        return ToolResult(use.id, result)


async def first_call(text, tools):
    """The first thing that the guide does for a prompt: (name, arguments), or None when it only talks."""
    parts = await reply([prompt(text)], tools)
    calls = [(part.name, part.arguments) for part in parts if isinstance(part, ToolUse) and part.name != "update_plan"]
    return calls[0] if calls else None
