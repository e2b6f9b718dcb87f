"""What the guide says of itself: greetings, help, and how to connect a language model."""

import re
from collections.abc import Sequence

from dragoman.assistant.models.guide.arguments import read_parameters
from dragoman.assistant.models.guide.prompt import without_courtesy
from dragoman.assistant.models.guide.results import one_line
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.models.tool_index import own_name

MAX_LISTED = 40
"""Tools that `help` lists; the rest is counted."""
MAX_TITLE_CHARS = 100
MAX_TALK_CHARS = 100

CONNECT = (
    "To connect a language model, choose “Connect a model” on the page, write `:connect` in `dragoman chat`, or start "
    "with `--model NAME` or `DRAGOMAN_MODEL=NAME`: `anthropic:…`, `openai:…`, or `ollama:…`, which needs no key."
)
INTRODUCTION = (
    "I am **guide**, the model built into dragoman. I am no language model: I follow fixed rules, and need no key and "
    "no network."
)
EXAMPLES = {
    "read_file": "read README.md lines 1-20",
    "list_directory": "list src",
    "search_files": "find TODO in src",
    "write_file": "write notes.txt: buy milk",
    "edit_file": "replace 'milk' by 'bread' in notes.txt",
    "run_command": "run make test",
    "update_plan": "plan: look around; change it; test it",
}
_TRY = "Try `what is this project`, `find TODO`, `what changed` or `run the tests`; `help` shows all that I can do."

_HELLO = (
    r"(?:hi|hello|hey|howdy|greetings|hallo|hiya|yo|good (?:morning|afternoon|evening|day))"
    r"(?:[ ,]+(?:there|guide|dragoman|everyone|again|you|all))?"
    r"(?:[!.,]? (?:please )?(?:answer|reply|respond)(?: (?:in|with|by) .{0,40})?)?"
)
_WHO = (
    r"(?:so )?(?:who|what)(?: exactly)? are you.{0,12}|who(?:'s| is) (?:this|there)|introduce yourself|"
    r"what(?:'s| is) (?:this|dragoman|guide|your name)|tell me about yourself|"
    r"(?:what|which) (?:language |ai )?(?:model|llm|ai) .{0,30}|"
    r"are you (?:an? )?(?:real |large )?"
    r"(?:ai|llm|language model|human|person|bot|robot|\w*gpt\w*|claude|gemini|copilot|machine|there)"
)
_HOW = r"how are you.{0,20}|how(?:'s| is) it going|what(?:'s| is) up"
_THANKS = (
    r"(?:many |ok[, ]+|great[, ]+)?(?:thanks|thank you|thx|cheers|ty)(?: (?:a lot|so|very|much|again|guide))*|"
    r"(?:that(?:'s| is) )?(?:great|cool|nice|perfect|awesome|well done|good job|excellent)(?: (?:work|job))?"
)
_BYE = r"(?:good ?)?bye(?: bye)?|see you(?: later)?|exit|quit|that(?:'s| is) all|good night"
_SHORT = r"yes|no|ok|okay|sure|yep|nope|never ?mind|cancel|stop|forget it|continue|go on|maybe"
_SMALL_TALK = (
    (_HELLO, f"Hello! I am **guide**, the model built into dragoman: fixed rules, no language model. {_TRY}"),
    (_WHO, f"{INTRODUCTION} {_TRY}\n\n{CONNECT}"),
    (_HOW, f"I am a set of rules, so always the same. {_TRY}"),
    (_THANKS, "You are welcome."),
    (_BYE, "Good-bye. The session is kept."),
    (_SHORT, "All right. Nothing waits for an answer; say what to do next, or `help`."),
)
_HELP = re.compile(
    r"/?help(?: me)?|\?|what can (?:you|i|we) (?:do|ask|say).{0,20}|what do you (?:do|know|understand)|"
    r"what (?:should|shall|do|must) i (?:do|say|type)(?: (?:now|next|here|first))?|"
    r"how (?:does (?:this|it) work|do you work|(?:do|can|should) i (?:use|start|begin)(?: (?:this|you|it|dragoman))?)|"
    r"(?:(?:list|show)(?: me)?|what(?: are)?|which)(?: (?:all|the|your|are))* "
    r"(?:tools|commands|abilities|capabilities)(?: .{0,30})?|tools|commands|getting started",
    re.IGNORECASE,
)
_HELP_ABOUT = re.compile(
    r"(?:/?help(?: me)?(?: with| on| about)?|how do i use|how does)\s+"
    r"(?:the )?(?P<topic>[\w .-]{1,60}?)(?: tools?| work)?",
    re.IGNORECASE,
)


def small_talk(text: str, tools: Sequence[ToolDefinition]) -> str | None:
    """Return the answer to a text that asks for nothing to be done."""
    if not text.strip(" \t\n.!,?") and "?" not in text:
        return f"There is nothing in that for me to do. {_TRY}"
    if len(text) > MAX_TALK_CHARS:
        return None
    for plain in dict.fromkeys((text, without_courtesy(text))):
        answer = _answer(plain.strip(" \t\n.!,").replace("\u2019", "'"), tools)
        if answer is not None:
            return answer
    return None


def _answer(plain: str, tools: Sequence[ToolDefinition]) -> str | None:
    for pattern, answer in _SMALL_TALK:
        if re.fullmatch(pattern, plain.rstrip("?"), re.IGNORECASE):
            return answer
    if _HELP.fullmatch(plain) or _HELP.fullmatch(plain.rstrip("?")):
        return help_text(tools)
    about = _HELP_ABOUT.fullmatch(plain.rstrip("?"))
    return None if about is None else _help_about(about["topic"].lower(), tools)


def not_understood(text: str) -> str:
    """Say that a request needs a language model, and how to connect one."""
    return (
        f"“{one_line(text, 80)}” is beyond me: I am no language model. I can list, read, search, write and edit files, "
        f"run commands and call the tools of servers: say `help`.\n{CONNECT}"
    )


def help_text(tools: Sequence[ToolDefinition]) -> str:
    """Return the tools that are there, with an example each."""
    if not tools:
        return f"{INTRODUCTION} This session has no tools, so there is nothing that I can do here.\n\n{CONNECT}"
    lines = [f"- {_summary(tool)}: `{example(tool)}`" for tool in tools[:MAX_LISTED]]
    if len(tools) > MAX_LISTED:
        lines.append(f"- and {len(tools) - MAX_LISTED} more; `help WORD` shows those about a word")
    return "\n".join(
        [
            "I am no language model, but in plain words I can use these tools:\n",
            *lines,
            "\nAlso: `what is this project`, `show me all python files`, `run the tests`, `commit everything`.",
            "Join steps with “then”. Quotes and backticks mark text that I take as it is.\n",
            CONNECT,
        ]
    )


def example(tool: ToolDefinition) -> str:
    """Return words that use a tool."""
    needed = [one.name for one in read_parameters(tool).values() if one.is_required]
    return EXAMPLES.get(tool.name) or " ".join([own_name(tool), *(f"{name}: …" for name in needed[:4])])


def shown_name(tool: ToolDefinition) -> str:
    """Return a tool's name for people; a server may have put anything into it."""
    return " ".join((tool.title or tool.name).replace("`", "'").split())[:MAX_TITLE_CHARS]


def _help_about(topic: str, tools: Sequence[ToolDefinition]) -> str | None:
    found = [tool for tool in tools if topic in re.sub(r"[_-]+", " ", f"{tool.name} {tool.title}").lower()]
    found += [tool for tool in tools if tool.name.lower() == topic and tool not in found]
    return "\n\n".join(_manual(tool) for tool in found[:8]) if found else None


def _manual(tool: ToolDefinition) -> str:
    lines = [f"**`{shown_name(tool)}`**: {one_line(tool.description, 300) or 'no description'}"]
    for one in read_parameters(tool).values():
        kind = one.kind if one.is_required else f"{one.kind}, optional"
        choices = f" One of {', '.join(map(str, one.choices[:12]))}." if one.choices else ""
        lines.append(f"- `{one.name}` ({kind}) {one_line(one.description, 160)}{choices}".rstrip())
    return "\n".join([*lines, f"\nFor example: `{example(tool)}`"])


def _summary(tool: ToolDefinition) -> str:
    first = re.split(r"(?<=[.!?])\s", " ".join(tool.description.split()), maxsplit=1)[0]
    words = one_line(first, 90).rstrip(".")
    return f"`{shown_name(tool)}`, {words}" if words else f"`{shown_name(tool)}`"
