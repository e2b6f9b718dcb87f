"""What to do for one step: call a tool, ask for what is missing, or say something."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.agent.models.guide.arguments import SQL, Filling
from dragoman.agent.models.guide.literal import TOKEN, Literal, Masked
from dragoman.agent.models.guide.path import is_url, looks_like_path
from dragoman.agent.models.guide.phrasebook import read_phrase
from dragoman.agent.models.guide.prompt import LONG, without_courtesy, without_ending
from dragoman.agent.models.guide.schema import Parameter, misfit, parameters
from dragoman.agent.models.guide.talk import cannot, small_talk
from dragoman.agent.models.guide.trade import BUILT_IN, Fit, find_fit, own_name, trade_of
from dragoman.agent.models.guide.words import GENERIC, STOP, mean, meanings, split_words, vocabulary
from dragoman.agent.models.model import ToolDefinition

NAMED = 20.0
"""The score of a tool that was called by its name."""

MIN_SCORE = 3.0
MIN_COVERAGE = 0.55
"""How much of what a request is about a tool must account for: a tool that knows one word of five is not meant."""

CLOSE = 2.5
MAX_CLOSE = 5
"""Tools whose scores are this close to the best, and so many, are judged by how well the request fills them."""


class Step(msgspec.Struct, frozen=True):
    """One thing that was asked for, and what a dialogue about it has settled."""

    masked: Masked
    tool: str = ""
    given: dict[str, Any] = {}
    problem: str = ""


class Call(msgspec.Struct, frozen=True):
    """Use this tool; `kind` is the trade, when it is one of the known."""

    tool: ToolDefinition
    arguments: dict[str, Any]
    kind: str | None


class Ask(msgspec.Struct, frozen=True):
    """Ask for a parameter."""

    tool: ToolDefinition
    parameter: Parameter
    problem: str = ""


class Say(msgspec.Struct, frozen=True):
    """Say this; nothing is to be done. `lost` when that is because the request was not understood."""

    text: str
    lost: bool = False


Decision = Call | Ask | Say


def decide(step: Step, tools: Sequence[ToolDefinition], last_path: str | None = None) -> Decision:
    """Decide on a step; the same for the same words and tools."""
    masked = _resolve_it(step.masked, last_path)
    if step.tool:
        return _settled(step, masked, tools)
    text = without_ending(masked.text)
    talk = small_talk(masked.restore(text), tools) or small_talk(masked.restore(without_courtesy(text)), tools)
    if talk is not None:
        return Say(talk)
    phrase = read_phrase(masked)
    fit = find_fit(phrase, tools) if phrase is not None else None
    score, filling = _best(masked, tools, step)
    if filling is not None and (phrase is None or fit is None or score > phrase.strength):
        return _finished(filling.tool, filling.arguments, filling.missing(), trade_of(filling.tool), step)
    if fit is not None and phrase is not None:
        return _fitted(fit, phrase.kind, step)
    return Say(cannot(masked.restore(text), phrase.kind if phrase else None, tools), lost=True)


def _settled(step: Step, masked: Masked, tools: Sequence[ToolDefinition]) -> Decision:
    tool = next((one for one in tools if one.name == step.tool), None)
    if tool is None:
        return Say(f"The tool `{step.tool}` is no longer here.", lost=True)
    phrase = read_phrase(masked)
    fit = find_fit(phrase, [tool]) if phrase is not None else None
    if fit is not None and phrase is not None:
        return _fitted(fit, phrase.kind, step)
    return _filled(tool, masked, step)


def _fitted(fit: Fit, kind: str, step: Step) -> Decision:
    arguments = {**fit.arguments, **step.given}
    missing = [one for one in fit.missing if one.name not in arguments]
    return _finished(fit.tool, arguments, missing, kind, step)


def _filled(tool: ToolDefinition, masked: Masked, step: Step) -> Decision:
    filling = _filling(tool, masked, step)
    return _finished(tool, filling.arguments, filling.missing(), trade_of(tool), step)


def _finished(
    tool: ToolDefinition, arguments: dict[str, Any], missing: Sequence[Parameter], kind: str | None, step: Step
) -> Decision:
    if missing:
        return Ask(tool, missing[0], step.problem)
    known = [one for one in parameters(tool) if one.name in arguments]
    kept = {one.name: arguments[one.name] for one in known}
    problem = misfit(kept, tool.parameters, tool.parameters)
    if problem is None:
        return Call(tool, kept, kind)
    only_needed = {one.name: kept[one.name] for one in known if one.required}
    if misfit(only_needed, tool.parameters, tool.parameters) is None:
        return Call(tool, only_needed, kind)
    return Say(f"I cannot fill in `{tool.name}` from that: {problem}.", lost=True)


# --- it

_IT = re.compile(
    r"(?P<front>(?:read|show|open|view|cat|print|display|see)(?: me)?|.+\s(?:in|into|to|from))\s+"
    r"(?:it|that|(?:that|this|the(?: same)?) file)(?P<back>(?:\s+again)?)\Z",
    re.IGNORECASE | re.DOTALL,
)
_RUN_IT = re.compile(r"(?:run|execute)\s+(?:it|that|(?:that|this|the) (?:file|script|program))\Z", re.IGNORECASE)
_RUNNERS = {"py": "python3", "sh": "sh", "js": "node", "rb": "ruby", "pl": "perl"}


def _resolve_it(masked: Masked, last_path: str | None) -> Masked:
    """Put the path that was spoken of last in the place of `it`."""
    if last_path is None:
        return masked
    text = without_ending(without_courtesy(masked.text))
    token = f"\ue000{len(masked.literals)}\ue001"
    literal = Literal(last_path, last_path)
    found = _IT.match(text)
    if found is not None:
        return Masked(f"{found['front']} {token}", (*masked.literals, literal))
    runner = _RUNNERS.get(last_path.rpartition(".")[2])
    if _RUN_IT.match(text) and runner is not None:
        from shlex import quote

        command = f"{runner} {quote(last_path)}"
        return Masked(f"run {token}", (*masked.literals, Literal(command, command)))
    return masked


# --- choosing among strangers


def _best(masked: Masked, tools: Sequence[ToolDefinition], step: Step) -> tuple[float, Filling | None]:
    """Return the tool that the words speak of, with its arguments: of several, the one that they fill best."""
    if len(masked.text) > LONG:
        return 0.0, None
    text = without_ending(without_courtesy(masked.text))
    named = _named(text, tools)
    if named is not None:
        filling = _filling(named, masked, step)
        if (
            "_" in named.name.rpartition("__")[2]
            or mean(own_name(named).lower()) not in GENERIC
            or not filling.missing()
        ):
            return NAMED, filling
    request = Request(tuple(_subjects(text)), _has_url(masked.restore(text)), SQL.search(text) is not None)
    strangers = [tool for tool in tools if tool.name not in BUILT_IN]
    scores = [(_score(tool, request), -position, tool) for position, tool in enumerate(strangers)]
    top = max((score for score, _, _ in scores), default=0.0)
    if not top:
        return 0.0, None
    close = sorted((one for one in scores if one[0] > top - CLOSE), key=lambda one: one[:2], reverse=True)[:MAX_CLOSE]
    fillings = [(score, _filling(tool, masked, step)) for score, _, tool in close]
    return max(fillings, key=lambda one: one[0] + _fullness(one[1]))


def _filling(tool: ToolDefinition, masked: Masked, step: Step) -> Filling:
    filling = Filling(tool, masked, step.given)
    filling.fill()
    return filling


def _fullness(filling: Filling) -> float:
    return 0.5 * len(filling.arguments) - len(filling.missing())


def _has_url(text: str) -> bool:
    return any(is_url(word) for word in text.split())


_CALLS = re.compile(r"(?:use|call|invoke|try)\s+(?:the\s+)?(?:tool\s+)?(?P<name>[\w./-]+)", re.IGNORECASE)


def _named(text: str, tools: Sequence[ToolDefinition]) -> ToolDefinition | None:
    """Return the tool that a text calls by its name."""
    words = {word.strip(".,:;!?()'\"`") for word in text.split()}
    first = re.match(r"[\w-]+", text)
    called = _CALLS.match(text)
    openings = {first[0]} if first is not None else set[str]()
    if called is not None:
        openings.add(called["name"])
    for tool in tools:
        if tool.name in words and ("_" in tool.name or tool.name in openings):
            return tool
    for tool in tools:
        own = own_name(tool)
        if (
            own
            and "__" in tool.name
            and ((own in words and "_" in own) or (own in openings and own.lower() not in STOP))
        ):
            return tool
    return None


class Subject(msgspec.Struct, frozen=True):
    """A word of a request; `loose` when it may as well be the value of a parameter."""

    word: str
    loose: bool


class Request(msgspec.Struct, frozen=True):
    """What a request is about, and what it holds that only some tools can take."""

    subjects: tuple[Subject, ...]
    has_url: bool
    has_sql: bool


_VALUE = re.compile(r"[\d#@$%&*+=<>{}\[\]]|://")
_PREPOSITIONS = vocabulary(
    "in at near for of about on from to with by named called titled into as saying that regarding"
)


def _subjects(text: str) -> list[Subject]:
    """Return what a request is about, without its values."""
    found: dict[str, bool] = {}
    after = after_colon = False
    for position, word in enumerate(re.sub(TOKEN, " ", text).split()):
        plain = word.strip(".,:;!?()'\"\u2019")
        after = after or plain.lower() in _PREPOSITIONS or after_colon
        after_colon = after_colon or word.endswith(":")
        if not plain or _VALUE.search(plain) or looks_like_path(plain):
            continue
        loose = after or (position > 0 and plain[:1].isupper())
        for part in split_words(re.sub(r"['\u2019]s\Z", "", plain)):
            if part not in STOP:
                found[mean(part)] = found.get(mean(part), True) and loose
    return [Subject(word, loose) for word, loose in found.items()]


def _score(tool: ToolDefinition, request: Request) -> float:
    """Say how well a tool's texts account for a request; 0 when it is not meant."""
    server, _, own = tool.name.rpartition("__")
    name, home = meanings(own or tool.name), meanings(server)
    about = meanings(tool.description[:600])
    inputs = meanings(" ".join(_property_names(tool)))
    if _is_at_odds(name | about, name, request):
        return 0.0
    score, telling = _special(tool, request, inputs)
    matched = total = 0.0
    leads = _leads(own or tool.name, request)
    for subject in request.subjects:
        word, generic = subject.word, subject.word in GENERIC
        in_name, in_text = word in name or word in home, word in about or word in inputs
        share = 1.0 if in_name else 0.6 if in_text else 0.0
        score += _weight(in_own_name=word in name, in_name=in_name, in_text=in_text, generic=generic)
        score += 1.0 if in_name and in_text and not generic else 0.0
        matched += share
        total += 0.0 if (subject.loose or leads) and not in_name else 0.5 if generic and not in_name else 1.0
        telling += 0.0 if generic else 1.0 if in_name else 0.5 * bool(share)
    if telling < 1 or score < MIN_SCORE or (total and matched / total < MIN_COVERAGE):
        return 0.0
    unsaid = name - {subject.word for subject in request.subjects}
    return score - sum(0.1 if word in GENERIC else 0.3 for word in unsaid)


_CHANGING = frozenset(("create", "delete", "update", "send", "move"))


def _is_at_odds(texts: frozenset[str], name: frozenset[str], request: Request) -> bool:
    """Tell whether one of the two would change something that the other does not speak of."""
    words = {subject.word for subject in request.subjects}
    first = request.subjects[0].word if request.subjects else ""
    if first == "memory":  # to remember is to create, by another word
        words.add("create")
    changes = name & _CHANGING
    return (first in _CHANGING and first not in texts) or (bool(changes) and not changes & words)


def _leads(name: str, request: Request) -> bool:
    """Tell whether a request begins with the very verb that a tool's name begins with: what follows is its object."""
    first = split_words(name)[:1]
    word = mean(first[0]) if first else ""
    return bool(request.subjects) and request.subjects[0].word == word and word not in GENERIC


def _weight(*, in_own_name: bool, in_name: bool, in_text: bool, generic: bool) -> float:
    if in_name:
        return 1.2 if generic else 3.0 if in_own_name else 2.0
    return (0.4 if generic else 1.0) if in_text else 0.0


def _special(tool: ToolDefinition, request: Request, inputs: frozenset[str]) -> tuple[float, float]:
    if request.has_url and inputs & {"url", "uri"}:
        return 2.5, 1.0
    if request.has_sql and "sql" in tool.description.lower() and inputs & {"search", "sql", "statement"}:
        return 2.5, 1.0
    return 0.0, 0.0


def _property_names(tool: ToolDefinition) -> list[str]:
    properties = tool.parameters.get("properties")
    return [str(name) for name in properties] if isinstance(properties, dict) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- a stranger's JSON
