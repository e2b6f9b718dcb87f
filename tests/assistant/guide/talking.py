"""A conversation with the guide. The test runs the tools."""

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.message import AssistantMessage, ToolMessage, ToolResult, ToolUse, UserMessage
from dragoman.assistant.models.model import ReplyRequest, ReplyStop, ReplyText, ToolDefinition
from dragoman.protocol import v1


def tool(name, description, required="", **types):
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in types.items()}
    return ToolDefinition(name, description, {"type": "object", "properties": properties, "required": required.split()})


TOOLS = [
    tool("read_file", "Read a file.", "path", path="string", start_line="integer", line_count="integer"),
    tool("write_file", "Write a file.", "path content", path="string", content="string"),
    tool("edit_file", "Replace pieces of a file.", "path edits", path="string", edits="array"),
    tool("list_directory", "List a directory.", "path", path="string"),
    tool("search_files", "Search files.", "pattern", pattern="string", path="string", glob="string"),
    tool("run_command", "Run a command.", "command", command="string"),
    tool("update_plan", "Show the plan.", "entries", entries="array"),
    tool("time__get_current_time", "Get the time in a time zone.", "timezone", timezone="string"),
    tool("everything__echo", "Echo the input.", "message", message="string"),
    tool("everything__add", "Add two numbers.", "a b", a="number", b="number"),
    tool("github__list_issues", "List issues.", "owner repo", owner="string", repo="string", state={"enum": ["open"]}),
]
LISTING = "Makefile  20 bytes\nREADME.md  20 bytes\nsrc/\ntests/"
FILES = {"Makefile": "all:\n\ttrue\ntest:\n\tpytest\n", "README.md": "# Shop\nIt sells things.\n"}


def text(words):
    return v1.TextContent(text=words)


def prompt(*content):
    return UserMessage([text(one) if isinstance(one, str) else one for one in content])


def play(use):
    """Return the result of a call as the tools would in a small project."""
    if use.name == "list_directory" and use.arguments["path"] == ".":
        return LISTING
    return FILES.get(use.arguments["path"], "one\n") if use.name == "read_file" else "ok"


class Talk:
    """Stores the messages as a turn does."""

    def __init__(self, tools=TOOLS):
        self.tools = tools
        self.messages = []
        self.conversation = GuideModel().start()
        self.stops = []

    async def say(self, *content, results=()):
        """Send a prompt and run the tools. Return all text and the calls.

        `results` are texts, or exceptions for failures, in the order of the calls.
        """
        self.messages.append(prompt(*content))
        said, calls, waiting = [], [], list(results)
        while True:
            request = ReplyRequest(self.messages, self.tools)
            parts = [part async for part in self.conversation.reply(request)]
            uses = [part for part in parts if isinstance(part, ToolUse)]
            spoken = "".join(part.text for part in parts if isinstance(part, ReplyText))
            self.stops = [part.reason for part in parts if isinstance(part, ReplyStop)]
            self.messages.append(AssistantMessage(spoken, "", uses))
            said.append(spoken)
            calls += [(use.name, use.arguments) for use in uses]
            assert len(calls) < 20, "the turn does not end"
            if not uses:
                return "\n".join(said), calls
            self.messages.append(ToolMessage([self._result(use, waiting) for use in uses]))

    @staticmethod
    def _result(use, waiting):
        result = waiting.pop(0) if waiting else play(use)
        failed = isinstance(result, Exception)
        return ToolResult(use.id, str(result), failed=failed)
