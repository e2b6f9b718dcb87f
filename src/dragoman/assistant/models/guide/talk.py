"""What the guide says of itself: greetings, help, and how to get a language model."""

import re
from collections.abc import Sequence
from shlex import quote

from dragoman.assistant.models.guide.schema import choices, parameters
from dragoman.assistant.models.guide.trade import TRADES, own_name, trade_of
from dragoman.assistant.models.guide.words import meanings, split_words
from dragoman.assistant.models.model import ToolDefinition

MAX_LISTED = 40
"""Tools that `help` lists; the rest is counted."""

MAX_NAME = 100

INTRODUCTION = (
    "I am **guide**, the model built into dragoman. I am not a language model: I follow fixed rules, need no key and "
    "no network, and the same words always get the same answer."
)
CONNECT = (
    "For open questions, connect a language model: start with `--model NAME` or set `DRAGOMAN_MODEL`, where NAME is\n"
    "`anthropic:…`, `openai:…` or `ollama:…` (that one needs no key), or write `model:` into an agent file, "
    "`dragoman.yaml`."
)
_EXAMPLES = {
    "read": "`read README.md lines 1-20`",
    "list": "`list src`",
    "search": "`find TODO in src`",
    "write": "`write notes.txt: buy milk`",
    "edit": "`replace 'milk' by 'bread' in notes.txt`",
    "run": "`run make test`",
    "plan": "`plan: look around; change it; test it`",
}
_HINTS = (
    (r"(?:delete|remove|erase) (?:the )?(?:file )?(\S+)", "run rm {0}"),
    (r"(?:rename|move) (?:the )?(?:file )?(\S+) (?:to|into|as) (\S+)", "run mv {0} {1}"),
    (r"copy (?:the )?(?:file )?(\S+) (?:to|into|as) (\S+)", "run cp {0} {1}"),
    (r"(?:create|make|add) (?:a |the )?(?:new )?(?:directory|folder|dir) (?:called |named )?(\S+)", "run mkdir -p {0}"),
    (r"(?:(?:show|read|print|display) )?(?:me )?(?:the )?last (\d+) lines of (\S+)", "run tail -n {0} {1}"),
    (
        r"(?:append|add) (?:a |the )?(?:line |text )?(.+?) to (?:the )?(?:file )?(\S+\.\w+)",
        "run echo {0} >> {1}",
    ),
    (r"(?:show (?:me )?)?(?:the )?git (log|status|diff|branch)", "run git {0}"),
    (r"list (?:all )?(?:the )?(?:files (?:in|of) )?(\S+) recursively", "run ls -R {0}"),
    (r"count (?:the )?lines (?:in|of) (?:the )?(?:file )?(\S+)", "run wc -l {0}"),
)


_COURTESY = re.compile(r"\A(?:please |(?:can|could|would) you )+", re.IGNORECASE)


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{pattern})[\s.!?,]*\Z", re.IGNORECASE)


_WHO = _whole(
    r"(?:so )?(?:who|what)(?: exactly)? are you(?: exactly)?|who(?:'s| is) (?:this|there)|"
    r"what(?:'s| is) (?:this|dragoman|guide|your name)|introduce yourself|"
    r"tell me about yourself|(?:what|which) (?:language )?model "
    r"(?:are you|is this|do you use|am i (?:using|talking to))|"
    r"are you (?:an? )?(?:real |large )?(?:ai|llm|language model|human|person|bot|"
    r"robot|chatgpt|gpt|claude|chat ?bot|machine|alive|there)"
)
_HELLO = _whole(
    r"(?:hi|hello|hey|howdy|greetings|hallo|hiya|yo|good (?:morning|afternoon|evening|day))"
    r"(?:[ ,]+(?:there|guide|dragoman|everyone|again|you))?"
)
_HOW = _whole(r"how are you(?: (?:doing|today))*|how(?:'s| is) it going|what(?:'s| is) up")
_THANKS = _whole(
    r"(?:many |ok[, ]+|great[, ]+)?(?:thanks|thank you|thx|cheers|ty)(?: (?:a lot|so much|very much|you|guide|again))?|"
    r"(?:great|cool|nice|perfect|awesome|well done|good job|very good|excellent)(?: (?:work|job))?"
)
_BYE = _whole(r"(?:good ?)?bye(?: bye)?|see you(?: later)?|exit|quit|that(?:'s| is) all|good night")
_SHORT = _whole(r"yes|no|ok|okay|sure|yep|nope|never ?mind|cancel|stop|forget it|continue|go on|maybe")
_HELP = _whole(
    r"/?help(?: me)?|\?|what can (?:you|i|we) (?:do|ask|say)(?: (?:here|for me))?|"
    r"how (?:does (?:this|it) work|do i use (?:this|you|it)|do you work)|"
    r"(?:(?:list|show)(?: me)?|what(?: are)?|which)(?: (?:all|the|your|are))* "
    r"(?:tools|commands|abilities|capabilities)(?: (?:do you have|are (?:there|available|here)|can you use|you have))?|"
    r"what do you (?:do|know|understand)|tools|commands"
)
_HELP_ABOUT = _whole(
    r"(?:/?help(?: (?:me )?(?:with|on|about))?|what can you do with|how do i use|how does) "
    r"(?:the )?(?P<topic>[\w .-]{1,60}?)(?: tools?| work)?"
)


def small_talk(text: str, tools: Sequence[ToolDefinition]) -> str | None:
    """Return the answer to a text that asks for nothing to be done."""
    if len(text) > 200:
        return None
    if not text.strip():
        return f"There is nothing in that for me to do. {_first_steps(tools)}"
    for pattern, answer in _ANSWERS:
        if pattern.match(text):
            return answer.replace("{steps}", _first_steps(tools))
    if _HELP.match(text):
        return help_text(tools)
    about = _HELP_ABOUT.match(text)
    return None if about is None else _help_about(about["topic"], tools)


_ANSWERS = (
    (_HELLO, "Hello! I am **guide**, dragoman's built-in model: fixed rules, no language model. {steps}"),
    (_WHO, f"{INTRODUCTION} {{steps}}\n\n{CONNECT}"),
    (_HOW, "I am a set of rules, so always the same. {steps}"),
    (_THANKS, "You are welcome."),
    (_BYE, "Good-bye. The session is kept."),
    (_SHORT, "All right. Nothing is waiting for an answer; say what to do next, or `help`."),
)


def _first_steps(tools: Sequence[ToolDefinition]) -> str:
    examples = [_EXAMPLES[kind] for kind in ("list", "read", "search", "write", "run") if _has(kind, tools)]
    if not examples:
        return "Say `help` to see what I can do here."
    return f"Try {', '.join(examples[:3])}, or say `help`."


def _has(kind: str, tools: Sequence[ToolDefinition]) -> bool:
    return any(trade_of(tool) == kind for tool in tools)


def help_text(tools: Sequence[ToolDefinition]) -> str:
    """Return what can be done with the tools that are there, with an example each."""
    if not tools:
        return (
            f"{INTRODUCTION}\n\nThis session has no tools, so there is nothing that I can do for you here.\n\n{CONNECT}"
        )
    lines = [f"- {_summary(tool)}: {example(tool)}" for tool in tools[:MAX_LISTED]]
    if len(tools) > MAX_LISTED:
        lines.append(f"- and {len(tools) - MAX_LISTED} more; `help WORD` shows those about a word")
    shown = "\n".join(lines)
    joined = "Join steps with “then”. Quotes and backticks mark text that I shall take as it is."
    return f"I am no language model, but in plain words I can use these tools:\n\n{shown}\n\n{joined}\n\n{CONNECT}"


def _help_about(topic: str, tools: Sequence[ToolDefinition]) -> str | None:
    wanted = meanings(topic)
    found = [tool for tool in tools if tool.name == topic.strip() or (wanted and wanted <= meanings(tool.name))]
    return "\n\n".join(_manual(tool) for tool in found[:8]) if found else None


def _manual(tool: ToolDefinition) -> str:
    lines = [f"**`{shown_name(tool)}`**: {one_line(tool.description, 300) or 'no description'}"]
    for one in parameters(tool):
        need = "" if one.required else ", optional"
        allowed = f" One of {', '.join(map(str, choices(one.schema)[:12]))}." if choices(one.schema) else ""
        lines.append(f"- `{one.name}` ({one.kind}{need}) {one_line(one.description, 160)}{allowed}".rstrip())
    return "\n".join([*lines, f"\nFor example: {example(tool)}"])


def _summary(tool: ToolDefinition) -> str:
    words = one_line(tool.description, 90).rstrip(".")
    return f"`{shown_name(tool)}`, {words}" if words else f"`{shown_name(tool)}`"


def example(tool: ToolDefinition) -> str:
    """Return words that would use a tool."""
    kind = trade_of(tool)
    if kind is not None and tool.name == TRADES[kind].tool:
        return _EXAMPLES[kind]
    needed = [one.name for one in parameters(tool) if one.required]
    words = " ".join(split_words(own_name(tool))) or tool.name
    values = ", ".join(f"{name}: …" for name in needed[:4])
    return f"`{words} {values}`" if values else f"`{words}`"


def shown_name(tool: ToolDefinition) -> str:
    """Return a tool's name for people; a server may have put anything into it."""
    return " ".join((tool.title or tool.name).replace("`", "'").split())[:MAX_NAME]


def one_line(text: str, length: int) -> str:
    """Return the beginning of a text on one line: of a short one, its first sentence."""
    first = " ".join(text.split())
    sentence = re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0] if length <= 100 else first
    return sentence if len(sentence) <= length else f"{sentence[: length - 1].rstrip()}…"


def cannot(text: str, kind: str | None, tools: Sequence[ToolDefinition]) -> str:
    """Say that something cannot be done, what would work, and how to get a model that understands more."""
    shown = one_line(text, 100)
    hint = _hint(text, tools)
    if kind is not None and not _has(kind, tools):
        first = f"There is no tool here that could do that (I would need one like `{TRADES[kind].tool}`)."
    elif hint is not None:
        first = f"I cannot do that by myself, but a command can: say `{hint}`."
    else:
        first = f"I do not understand “{shown}”: I am no language model. Say `help` to see what I can do."
    return f"{first}\n{CONNECT}"


def _hint(text: str, tools: Sequence[ToolDefinition]) -> str | None:
    if not _has("run", tools) or len(text) > 200:
        return None
    for pattern, command in _HINTS:
        found = re.match(rf"{pattern}\Z", _COURTESY.sub("", text.strip()), re.IGNORECASE)
        if found is not None:
            return command.format(*(quote(group.strip("'\"`")) for group in found.groups()))
    return None
