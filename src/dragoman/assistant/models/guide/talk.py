"""The guide's answers about itself: greetings, help, and how to connect a language model."""

import re
from collections.abc import Sequence

from dragoman.assistant.models.guide.named_tool import own_name, required_names, shown_name
from dragoman.assistant.models.guide.results import one_line
from dragoman.assistant.models.model import ToolDefinition

MAX_LISTED = 40
"""Tools that `help` lists. The rest is counted."""
MAX_TALK_CHARS = 100

CONNECT = (
    "Connect one with “Connect a model” on the page, with `:connect` in `dragoman chat`, or with `--model NAME`: "
    "`anthropic:…`, `openai:…`, or `ollama:…`, which needs no key."
)
NOT_UNDERSTOOD = (
    f"I can't do that without a language model. {CONNECT}\n\n"
    "Without one I can list, read, search, write and edit files, show git status and diffs, run commands and tests, "
    "and call tools by name. Write `help` for examples."
)
INTRODUCTION = (
    "I am **guide**, the model built into dragoman. I follow fixed rules, need no key and no network, and am not a "
    "language model."
)
EXAMPLES = {
    "read_file": "read README.md lines 1-20",
    "list_directory": "list src",
    "search_files": "find TODO in src",
    "write_file": "write notes.txt: buy milk",
    "edit_file": "replace 'milk' by 'bread' in notes.txt",
    "run_command": "run make test",
}
_TRY = "Try `what is this project`, `find TODO`, `what changed` or `run the tests`. `help` shows what I can do."

_HELLO = (
    r"(?:say )?(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day))"
    r"(?:[ ,]+(?:there|guide|dragoman|everyone|world|again|you|all))?"
    r"(?:[!.,]? (?:please )?(?:answer|reply|respond)(?: (?:in|with|by) .{0,40})?)?"
)
_WHO = (
    r"(?:who|what) are you.{0,12}|who(?:'s| is) (?:this|there)|introduce yourself|tell me about yourself|"
    r"what(?:'s| is) (?:dragoman|guide|your name)|(?:what|which) (?:language |ai )?(?:model|llm|ai) .{0,30}|"
    r"are you (?:an? )?(?:real )?(?:ai|llm|language model|human|bot|\w*gpt\w*|claude|gemini|there)"
)
_THANKS = r"(?:many |ok[, ]+|great[, ]+)?(?:thanks|thank you|cheers)(?: (?:a lot|so|very|much|again|guide))*"
_BYE = r"(?:good ?)?bye|see you(?: later)?|exit|quit"
_HELP = (
    r"/?help(?: me)?|what can (?:you|i|we) (?:do|ask|say).{0,20}|what (?:should|do) i (?:do|say|type)(?: now| here)?|"
    r"how (?:does this work|do i (?:use|start)(?: (?:this|you|dragoman))?)|(?:list |show )?(?:me )?(?:the |your )?tools"
)
_ANSWERS = (
    (_HELLO, f"Hello! I am **guide**, the model built into dragoman. I follow fixed rules. {_TRY}"),
    (r"ping", "Pong. The agent works."),
    (_WHO, f"{INTRODUCTION} {_TRY}\n\nTo work with a language model: {CONNECT[0].lower()}{CONNECT[1:]}"),
    (_THANKS, "You're welcome."),
    (_BYE, "Goodbye. The session is kept."),
)


def small_talk(text: str, tools: Sequence[ToolDefinition]) -> str | None:
    """Return the answer to a text that asks for no work, or None."""
    if not text:
        return f"There is nothing to do in that prompt. {_TRY}"
    if len(text) > MAX_TALK_CHARS:
        return None
    plain = text.strip(" \t\n.!,?").replace("\u2019", "'")
    if re.fullmatch(_HELP, plain, re.IGNORECASE):
        return help_text(tools)
    return next((answer for pattern, answer in _ANSWERS if re.fullmatch(pattern, plain, re.IGNORECASE)), None)


def help_text(tools: Sequence[ToolDefinition]) -> str:
    """Return the tools of the session, with an example of each."""
    lines = [f"- `{_example(tool)}`: {_summary(tool)}" for tool in tools[:MAX_LISTED] if tool.name != "update_plan"]
    if len(tools) > MAX_LISTED:
        lines.append(f"- and {len(tools) - MAX_LISTED} more")
    return "\n".join(
        [
            "I am not a language model, but I understand simple requests:\n",
            *lines,
            "\nAlso: `what is this project`, `what changed`, `git diff`, `run the tests`.",
            "Put literal text in quotes or backticks.\n",
            f"For everything else you need a language model. {CONNECT}",
        ]
    )


def _example(tool: ToolDefinition) -> str:
    return EXAMPLES.get(tool.name) or " ".join([own_name(tool), *(f"{name}=…" for name in required_names(tool)[:4])])


def _summary(tool: ToolDefinition) -> str:
    first = re.split(r"(?<=[.!?])\s", " ".join(tool.description.split()), maxsplit=1)[0]
    return one_line(first, 90) or f"`{shown_name(tool)}`"
