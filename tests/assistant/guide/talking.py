"""A conversation with the guide, tools played by the test."""

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.message import AssistantMessage, ToolMessage, ToolResult, ToolUse, UserMessage
from dragoman.assistant.models.model import ModelRequest, ReplyText
from dragoman.protocol import v1

LISTING = "Makefile  20 bytes\nREADME.md  20 bytes\npyproject.toml  10 bytes\nsrc/\ntests/"
FILES = {"Makefile": "all:\n\ttrue\ntest:\n\tpytest\n", "README.md": "# Shop\nIt sells things.\n"}
STATUS = " M README.md\n M src/app.py\n[exit code 0]"


def prompt(text):
    return UserMessage([v1.TextContent(text=text)])


def play(use):
    """Answer a call as the tools do in a small project."""
    if use.name == "list_directory" and use.arguments["path"] == ".":
        return LISTING
    if use.name == "read_file":
        return FILES.get(use.arguments["path"], "one\n")
    return STATUS if use.arguments.get("command") == "git status --short" else "ok"


class Talk:
    """Keeps the messages as a turn does."""

    def __init__(self, tools):
        self.tools = tools
        self.messages = []
        self.conversation = GuideModel().start()
        self.parts = []

    async def say(self, text, results=()):
        """Send a prompt and play the tools; `results` are texts, or exceptions for failures, in order of the calls.

        Return what was said in all, and the calls.
        """
        self.messages.append(prompt(text) if isinstance(text, str) else text)
        said, calls, waiting = [], [], list(results)
        while True:
            request = ModelRequest(self.messages, self.tools)
            self.parts = [part async for part in self.conversation.reply(request)]
            uses = [part for part in self.parts if isinstance(part, ToolUse)]
            spoken = "".join(part.text for part in self.parts if isinstance(part, ReplyText))
            self.messages.append(AssistantMessage(spoken, "", uses))
            said.append(spoken)
            calls += [(use.name, use.arguments) for use in uses]
            assert len(calls) < 100, "it does not end"
            if not uses:
                return "\n".join(said), calls
            self.messages.append(ToolMessage([self.result(use, waiting) for use in uses]))

    def result(self, use, waiting):
        planned = use.name == "update_plan" or not waiting
        result = play(use) if planned else waiting.pop(0)
        if isinstance(result, Exception):
            return ToolResult(use.id, str(result), failed=True)
        return ToolResult(use.id, result)


async def calls_for(text, tools):
    """The calls that a prompt leads to, without those that show a plan."""
    _, calls = await Talk(tools).say(text)
    return [call for call in calls if call[0] != "update_plan"]
