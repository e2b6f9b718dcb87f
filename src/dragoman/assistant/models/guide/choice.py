"""What to do for one step: call a tool, ask for what is missing, ask which is meant, or say something."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.assistant.models.guide.arguments import Filling
from dragoman.assistant.models.guide.guess import Guess, guess
from dragoman.assistant.models.guide.literal import Literal, Masked
from dragoman.assistant.models.guide.meaning import Meaning
from dragoman.assistant.models.guide.phrasebook import read_phrase
from dragoman.assistant.models.guide.prompt import without_courtesy, without_ending
from dragoman.assistant.models.guide.schema import Parameter, misfit, parameters
from dragoman.assistant.models.guide.talk import cannot, shown_name, small_talk
from dragoman.assistant.models.guide.trade import Fit, find_fit, trade_of
from dragoman.assistant.models.model import ToolDefinition


class GuideStep(msgspec.Struct, frozen=True):
    """One thing that was asked for, and what a dialogue about it has settled."""

    masked: Masked
    tool: str = ""
    given: dict[str, Any] = {}
    problem: str = ""


class UseTool(msgspec.Struct, frozen=True):
    """Use this tool; `kind` is the trade, when it is one of the known."""

    tool: ToolDefinition
    arguments: dict[str, Any]
    kind: str | None


class AskParameter(msgspec.Struct, frozen=True):
    """Ask for a parameter."""

    tool: ToolDefinition
    parameter: Parameter
    problem: str = ""


class Which(msgspec.Struct, frozen=True):
    """Ask which of these tools is meant, or whether the only one is."""

    tools: tuple[ToolDefinition, ...]


class SayText(msgspec.Struct, frozen=True):
    """Say this; nothing is to be done. `lost` when that is because the request was not understood."""

    text: str
    lost: bool = False


GuideDecision = UseTool | AskParameter | Which | SayText


class Surroundings(msgspec.Struct, frozen=True):
    """What a step is decided with: the tools, what the search says, and the path that was spoken of last."""

    tools: Sequence[ToolDefinition]
    meaning: Meaning
    last_path: str | None = None


def decide(step: GuideStep, around: Surroundings) -> GuideDecision:
    """Decide on a step; the same for the same words and tools."""
    masked, tools = _resolve_it(step.masked, around.last_path), around.tools
    if step.tool:
        return _settled(step, masked, tools)
    text = without_ending(masked.text)
    talk = small_talk(masked.restore(text), tools) or small_talk(masked.restore(without_courtesy(text)), tools)
    if talk is not None:
        return SayText(talk)
    phrase = read_phrase(masked)
    fit = find_fit(phrase, tools) if phrase is not None else None
    found = guess(masked, tools, around.meaning if fit is None else None)
    if found.tools and (phrase is None or fit is None or found.points > phrase.strength):
        return _guessed(found, masked, step)
    if fit is not None and phrase is not None:
        return _fitted(fit, phrase.kind, step)
    return SayText(cannot(masked.restore(text), phrase.kind if phrase else None, tools), lost=True)


def _guessed(found: Guess, masked: Masked, step: GuideStep) -> GuideDecision:
    return _filled(found.tools[0], masked, step) if found.is_sure else Which(found.tools)


def _settled(step: GuideStep, masked: Masked, tools: Sequence[ToolDefinition]) -> GuideDecision:
    tool = next((one for one in tools if one.name == step.tool), None)
    if tool is None:
        return SayText(f"The tool `{step.tool}` is no longer here.", lost=True)
    phrase = read_phrase(masked)
    fit = find_fit(phrase, [tool]) if phrase is not None else None
    if fit is not None and phrase is not None:
        return _fitted(fit, phrase.kind, step)
    return _filled(tool, masked, step)


def _fitted(fit: Fit, kind: str, step: GuideStep) -> GuideDecision:
    arguments = {**fit.arguments, **step.given}
    missing = [one for one in fit.missing if one.name not in arguments]
    return _finished(fit.tool, arguments, missing, kind, step)


def _filled(tool: ToolDefinition, masked: Masked, step: GuideStep) -> GuideDecision:
    filling = Filling(tool, masked, step.given)
    filling.fill()
    return _finished(tool, filling.arguments, filling.missing(), trade_of(tool), step)


def _finished(
    tool: ToolDefinition, arguments: dict[str, Any], missing: Sequence[Parameter], kind: str | None, step: GuideStep
) -> GuideDecision:
    if missing:
        return AskParameter(tool, missing[0], step.problem)
    known = [one for one in parameters(tool) if one.name in arguments]
    kept = {one.name: arguments[one.name] for one in known}
    problem = misfit(kept, tool.parameters, tool.parameters)
    if problem is None:
        return UseTool(tool, kept, kind)
    only_needed = {one.name: kept[one.name] for one in known if one.required}
    if misfit(only_needed, tool.parameters, tool.parameters) is None:
        return UseTool(tool, only_needed, kind)
    return SayText(f"I cannot fill in `{shown_name(tool)}` from that: {problem}.", lost=True)


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
