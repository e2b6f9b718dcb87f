"""Where a conversation stands, read from its messages alone: a session that comes back goes on as if it had stayed.

The state machine has two places. A turn is *at a step*: the tools that its replies asked for are its steps that are
done, in order. Between turns a *question* may be open: the last words said name the tool and the parameter that are
missing, or the tools that may be meant, and the next prompt is the answer to it.
"""

import re
from collections.abc import Sequence

import msgspec

from dragoman.assistant.models.guide.choice import (
    AskParameter,
    GuideDecision,
    GuideStep,
    SayText,
    Surroundings,
    UseTool,
    Which,
    decide,
)
from dragoman.assistant.models.guide.meaning import Meaning
from dragoman.assistant.models.guide.prompt import Prompt, read_prompt
from dragoman.assistant.models.guide.question import is_question, read_answer, read_choice, was_asked
from dragoman.assistant.models.guide.request import split_steps
from dragoman.assistant.models.guide.schema import misfit
from dragoman.assistant.models.guide.trade import PLAN_TOOL
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.assistant.models.model import ToolDefinition
from dragoman.protocol import v1

MAX_QUESTIONS = 12
"""How many questions and answers one request may take; beyond that it starts anew."""

_GIVE_UP = re.compile(
    r"\s*(?:never ?mind|cancel|stop|forget it|forget that|skip it|abort|no thanks?)[.!]*\s*\Z", re.IGNORECASE
)
_NO = re.compile(r"\s*(?:no|nope|neither|none(?: of (?:them|these|those))?)[.!]*\s*\Z", re.IGNORECASE)


class GuideTurn(msgspec.Struct):
    """A prompt and what came after it."""

    content: list[v1.ContentBlock]
    uses: list[ToolUse] = []
    results: dict[str, ToolResult] = {}
    said: str = ""
    last_uses: list[ToolUse] = []


class TriedStep(msgspec.Struct, frozen=True):
    """A step that was tried, and what came of it."""

    step: GuideStep
    call: UseTool
    use: ToolUse
    result: ToolResult | None


class GuidePosition(msgspec.Struct, frozen=True):
    """Where a turn is: what was tried, and what comes next."""

    steps: list[GuideStep]
    done: list[TriedStep]
    ahead: list[tuple[GuideStep, GuideDecision]]
    turn: GuideTurn
    prompt: Prompt
    abandoned: bool = False


def locate(messages: Sequence[Message], tools: Sequence[ToolDefinition], meaning: Meaning) -> GuidePosition:
    """Find out where a conversation stands."""
    turns = _turns(messages)
    start = len(turns) - 1
    while start > 0 and len(turns) - start <= MAX_QUESTIONS and is_question(turns[start - 1].said):
        start -= 1
    scenes: list[_Scene] = []
    for index in range(start, len(turns)):
        prompt = read_prompt(turns[index].content)
        around = Surroundings(tools, meaning, prompt.attached or _last_path(turns[:index]))
        scenes.append(_Scene(turns[index], prompt, around))
    position = scenes[0].begin()
    for scene in scenes[1:]:
        position = scene.answer(position)
    return position


def _turns(messages: Sequence[Message]) -> list[GuideTurn]:
    turns: list[GuideTurn] = []
    for message in messages:
        match message:
            case UserMessage(content):
                turns.append(GuideTurn(content))
            case SummaryMessage(_, prompt) if prompt:
                turns.append(GuideTurn(prompt))
            case AssistantMessage(text, _, tool_uses) if turns:
                turns[-1].uses += tool_uses
                turns[-1].last_uses = tool_uses
                turns[-1].said = text
            case ToolMessage(results) if turns:
                turns[-1].results.update({result.id: result for result in results})
            case _:  # what is left of a conversation that was compacted
                pass
    return turns or [GuideTurn([])]


def _last_path(turns: Sequence[GuideTurn]) -> str | None:
    for turn in reversed(turns):
        for use in reversed(turn.uses):
            if isinstance(use.arguments.get("path"), str):
                return use.arguments["path"]
    return None


class _Scene(msgspec.Struct, frozen=True):
    """A turn, and what was there when it began."""

    turn: GuideTurn
    prompt: Prompt
    around: Surroundings

    def begin(self) -> GuidePosition:
        """Take the prompt as a request of its own."""
        return self._position(self._steps())

    def answer(self, before: GuidePosition) -> GuidePosition:
        """Take the prompt as the answer to the question that the turn before it ended with."""
        asked = _open_question(before)
        if asked is None:
            return self.begin()
        if _GIVE_UP.match(self.prompt.masked.text) or _is_no(self.prompt.masked.text, asked[1]):
            return GuidePosition([], [], [], self.turn, self.prompt, abandoned=True)
        step, wanted, rest = asked
        settled = self._chosen(step, wanted) if isinstance(wanted, Which) else self._given(step, wanted)
        return self.begin() if settled is None else self._position([settled, *rest])

    def _chosen(self, step: GuideStep, which: Which) -> GuideStep | None:
        tool = read_choice(self.prompt.masked, which)
        return None if tool is None else GuideStep(step.masked, tool.name, step.given)

    def _given(self, step: GuideStep, ask: AskParameter) -> GuideStep | None:
        """Return the step with what was asked for, or with why that cannot be used; None for another request."""
        value = read_answer(self.prompt.masked, ask)
        problem = _NOTHING if value is None else misfit(value, ask.parameter.schema, ask.tool.parameters)
        if problem is None:
            return GuideStep(step.masked, ask.tool.name, {**step.given, ask.parameter.name: value})
        return None if self._is_request() else GuideStep(step.masked, ask.tool.name, step.given, problem)

    def _steps(self) -> list[GuideStep]:
        steps = [GuideStep(part) for part in split_steps(self.prompt.masked)]
        if len(steps) > 1 and all(isinstance(decide(step, self.around), SayText) for step in steps):
            steps = []
        return steps or [GuideStep(self.prompt.masked)]

    def _is_request(self) -> bool:
        decisions = [decide(step, self.around) for step in self._steps()]
        return any(not isinstance(one, SayText) or not one.lost for one in decisions)

    def _position(self, steps: list[GuideStep]) -> GuidePosition:
        decisions = self._decisions(steps)
        plans = any(isinstance(one, UseTool) and one.tool.name == PLAN_TOOL for _, one in decisions)
        uses = [use for use in self.turn.uses if plans or use.name != PLAN_TOOL]
        done: list[TriedStep] = []
        after = 0
        for index, (step, decision) in enumerate(decisions):
            if len(done) == len(uses):
                break
            if isinstance(decision, UseTool):
                use = uses[len(done)]
                done.append(TriedStep(step, decision, use, self.turn.results.get(use.id)))
                after = index + 1
        return GuidePosition(steps, done, decisions[after:], self.turn, self.prompt)

    def _decisions(self, steps: list[GuideStep]) -> list[tuple[GuideStep, GuideDecision]]:
        around = self.around
        decisions: list[tuple[GuideStep, GuideDecision]] = []
        for step in steps:
            decision = decide(step, around)
            if isinstance(decision, UseTool) and isinstance(decision.arguments.get("path"), str):
                around = msgspec.structs.replace(around, last_path=decision.arguments["path"])
            decisions.append((step, decision))
        return decisions


_NOTHING = "it says nothing that fits"


def _open_question(before: GuidePosition) -> tuple[GuideStep, AskParameter | Which, list[GuideStep]] | None:
    """Return the step that waits for an answer, what is asked for, and the steps after it."""
    for index, (step, decision) in enumerate(before.ahead):
        if isinstance(decision, AskParameter | Which):
            rest = [one for one, _ in before.ahead[index + 1 :]]
            return (step, decision, rest) if was_asked(decision, before.turn.said) else None
    return None


def _is_no(text: str, asked: AskParameter | Which) -> bool:
    return isinstance(asked, Which) and _NO.match(text) is not None
