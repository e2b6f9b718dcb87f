"""Questions to the person, and what the next prompt means as an answer to one.

A question is recognised by its words when the answer comes, because a conversation has no other memory.
"""

import re
from typing import Any

from dragoman.assistant.models.guide.choice import AskParameter, Which
from dragoman.assistant.models.guide.literal import Masked
from dragoman.assistant.models.guide.prompt import without_courtesy, without_ending
from dragoman.assistant.models.guide.schema import choices
from dragoman.assistant.models.guide.talk import one_line, shown_name
from dragoman.assistant.models.guide.trade import own_name
from dragoman.assistant.models.guide.value import read_number, read_value
from dragoman.assistant.models.guide.words import split_words, vocabulary
from dragoman.assistant.models.model import ToolDefinition

_ANY = re.compile(r"To use `[^`]+` I need `[^`]+`|Do you mean `[^`]+`\?|Which of these do you mean\?")
_YES = re.compile(
    r"(?:yes|y|yep|yeah|sure|ok|okay|right|correct|exactly|indeed|please do|do it|go ahead|that one|that|it)"
    r"(?:[ ,]+(?:please|do|that|it|that one|right))*\Z",
    re.IGNORECASE,
)
_FILLER = vocabulary("the one tool use number i mean it is s that please of from")
_PLACES = {"first": 0, "second": 1, "third": 2}


def question(asked: AskParameter | Which) -> str:
    """Ask for a parameter by its name, or for the tool that is meant."""
    return _ask(asked) if isinstance(asked, AskParameter) else _which(asked)


def is_question(said: str) -> bool:
    """Tell whether words that were said end with a question of this kind."""
    return _ANY.search(said) is not None


def was_asked(asked: AskParameter | Which, said: str) -> bool:
    """Tell whether words that were said ask just that."""
    return _core(asked) in said


def read_answer(masked: Masked, ask: AskParameter) -> Any:
    """Return the value that an answer gives to a parameter, or None."""
    value = read_value(masked.restore(masked.text), ask.parameter)
    if value is not None:
        return value
    return read_value(_short(masked.restore(without_courtesy(masked.text))), ask.parameter)


def read_choice(masked: Masked, which: Which) -> ToolDefinition | None:
    """Return the tool that an answer picks: by yes, by its number, or by words that only its name has."""
    text = without_ending(masked.restore(masked.text)).strip()
    if len(which.tools) == 1 and _YES.match(text):
        return which.tools[0]
    words = set(split_words(text)) - _FILLER
    number = read_number(re.sub(r"\A(?:number|the)\s+", "", text).rstrip(")"), whole=True)
    place = int(number) - 1 if number is not None else _PLACES.get(" ".join(words), -1)
    if 0 <= place < len(which.tools):
        return which.tools[place]
    known = [tool for tool in which.tools if words and words <= _name_words(tool)]
    exact = [tool for tool in known if text.lower() in (own_name(tool).lower(), tool.name.lower(), tool.title.lower())]
    found = exact or known
    return found[0] if len(found) == 1 else None


def _name_words(tool: ToolDefinition) -> set[str]:
    return {*split_words(tool.name), *split_words(tool.title)}


def _core(asked: AskParameter | Which) -> str:
    if isinstance(asked, AskParameter):
        return f"To use `{shown_name(asked.tool)}` I need `{asked.parameter.name}`"
    if len(asked.tools) == 1:
        return f"Do you mean `{shown_name(asked.tools[0])}`?"
    names = "\n".join(f"{number}. `{shown_name(tool)}`" for number, tool in enumerate(asked.tools, 1))
    return f"Which of these do you mean?\n\n{names}"


def _ask(ask: AskParameter) -> str:
    problem = f"I could not use that: {ask.problem}.\n" if ask.problem else ""
    description = " ".join(ask.parameter.description.split())
    what = f": {description.rstrip('.')}" if description else ""
    allowed = choices(ask.parameter.schema)
    one_of = f" One of {', '.join(map(str, allowed[:20]))}." if allowed else ""
    return f"{problem}{_core(ask)}{what}.{one_of} What shall it be?"


def _which(which: Which) -> str:
    if len(which.tools) > 1:
        return f"I am not sure. {_core(which)}\n\nSay its number or its name, or say what you want in other words."
    what = "".join(f" ({about})" for tool in which.tools if (about := one_line(tool.description, 90).rstrip(".")))
    return f"I am not sure. {_core(which)}{what} Say yes, or say what you want in other words."


def _short(text: str) -> str:
    return re.sub(r"\A(?:in|at|it(?:'s| is)|use|to|the|for|from)\s+", "", text.strip(), flags=re.IGNORECASE)
