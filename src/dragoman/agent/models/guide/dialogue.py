"""Where a conversation stands, read from its messages alone: a session that comes back goes on as if it had stayed.

The state machine has two places. A turn is *at a step*: the tools that its replies asked for are its steps that are
done, in order. Between turns a *question* may be open: the last words said name the tool and the parameter that are
missing, and the next prompt is the answer to it.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.agent.models.guide.choice import Ask, Call, Decision, Say, Step, decide
from dragoman.agent.models.guide.literal import Masked
from dragoman.agent.models.guide.prompt import Prompt, read_prompt, without_courtesy
from dragoman.agent.models.guide.request import split_steps
from dragoman.agent.models.guide.schema import misfit
from dragoman.agent.models.guide.trade import PLAN_TOOL
from dragoman.agent.models.guide.value import read_value
from dragoman.agent.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.agent.models.model import ToolDefinition
from dragoman.protocol import v1

MAX_QUESTIONS = 12
"""How many questions and answers one request may take; beyond that it starts anew."""

_QUESTION = re.compile(r"To use `([^`]+)` I need `([^`]+)`")
_GIVE_UP = re.compile(
    r"\s*(?:never ?mind|cancel|stop|forget it|forget that|skip it|abort|no thanks?)[.!]*\s*\Z", re.IGNORECASE
)


class Turn(msgspec.Struct):
    """A prompt and what came after it."""

    content: list[v1.ContentBlock]
    uses: list[ToolUse] = []
    results: dict[str, ToolResult] = {}
    said: str = ""
    last_uses: list[ToolUse] = []


class Done(msgspec.Struct, frozen=True):
    """A step that was tried, and what came of it."""

    step: Step
    call: Call
    use: ToolUse
    result: ToolResult | None


class Position(msgspec.Struct, frozen=True):
    """Where a turn is: what was tried, and what comes next."""

    steps: list[Step]
    done: list[Done]
    ahead: list[tuple[Step, Decision]]
    turn: Turn
    prompt: Prompt
    abandoned: bool = False


def locate(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> Position:
    """Find out where a conversation stands."""
    turns = _turns(messages)
    start = len(turns) - 1
    while start > 0 and len(turns) - start <= MAX_QUESTIONS and _QUESTION.search(turns[start - 1].said):
        start -= 1
    position = _Scene.of(turns, start, tools).begin()
    for index in range(start + 1, len(turns)):
        position = _Scene.of(turns, index, tools).answer(position)
    return position


def _turns(messages: Sequence[Message]) -> list[Turn]:
    turns: list[Turn] = []
    for message in messages:
        match message:
            case UserMessage(content):
                turns.append(Turn(content))
            case SummaryMessage(_, prompt) if prompt:
                turns.append(Turn(prompt))
            case AssistantMessage(text, _, tool_uses) if turns:
                turns[-1].uses += tool_uses
                turns[-1].last_uses = tool_uses
                turns[-1].said = text
            case ToolMessage(results) if turns:
                turns[-1].results.update({result.id: result for result in results})
            case _:  # what is left of a conversation that was compacted
                pass
    return turns or [Turn([])]


def _last_path(turns: Sequence[Turn]) -> str | None:
    for turn in reversed(turns):
        for use in reversed(turn.uses):
            if isinstance(use.arguments.get("path"), str):
                return use.arguments["path"]
    return None


class _Scene(msgspec.Struct, frozen=True):
    """A turn, and what was there when it began."""

    turn: Turn
    prompt: Prompt
    tools: Sequence[ToolDefinition]
    path: str | None

    @classmethod
    def of(cls, turns: Sequence[Turn], index: int, tools: Sequence[ToolDefinition]) -> "_Scene":
        return cls(turns[index], read_prompt(turns[index].content), tools, _last_path(turns[:index]))

    def begin(self) -> Position:
        """Take the prompt as a request of its own."""
        return self._position(self._steps())

    def answer(self, before: Position) -> Position:
        """Take the prompt as the answer to the question that the turn before it ended with."""
        asked = _open_question(before)
        if asked is None:
            return self.begin()
        masked = self.prompt.masked
        if _GIVE_UP.match(masked.text):
            return Position([], [], [], self.turn, self.prompt, abandoned=True)
        step, ask, rest = asked
        value = _answer(masked, ask)
        problem = _NOTHING if value is None else misfit(value, ask.parameter.schema, ask.tool.parameters)
        if problem is None:
            settled = Step(step.masked, ask.tool.name, {**step.given, ask.parameter.name: value})
        elif self._is_request():
            return self.begin()
        else:
            settled = Step(step.masked, ask.tool.name, step.given, problem)
        return self._position([settled, *rest])

    def _steps(self) -> list[Step]:
        steps = [Step(part) for part in split_steps(self.prompt.masked)]
        if len(steps) > 1 and all(isinstance(decide(step, self.tools, self.path), Say) for step in steps):
            steps = []
        return steps or [Step(self.prompt.masked)]

    def _is_request(self) -> bool:
        decisions = [decide(step, self.tools, self.path) for step in self._steps()]
        return any(not isinstance(one, Say) or not one.lost for one in decisions)

    def _position(self, steps: list[Step]) -> Position:
        decisions = self._decisions(steps)
        plans = any(isinstance(one, Call) and one.tool.name == PLAN_TOOL for _, one in decisions)
        uses = [use for use in self.turn.uses if plans or use.name != PLAN_TOOL]
        done: list[Done] = []
        after = 0
        for index, (step, decision) in enumerate(decisions):
            if len(done) == len(uses):
                break
            if isinstance(decision, Call):
                use = uses[len(done)]
                done.append(Done(step, decision, use, self.turn.results.get(use.id)))
                after = index + 1
        return Position(steps, done, decisions[after:], self.turn, self.prompt)

    def _decisions(self, steps: list[Step]) -> list[tuple[Step, Decision]]:
        path = self.path
        decisions: list[tuple[Step, Decision]] = []
        for step in steps:
            decision = decide(step, self.tools, path)
            if isinstance(decision, Call):
                named = decision.arguments.get("path")
                path = named if isinstance(named, str) else path
            decisions.append((step, decision))
        return decisions


_NOTHING = "it says nothing that fits"


def _open_question(before: Position) -> tuple[Step, Ask, list[Step]] | None:
    """Return the step that waits for an answer, what is asked for, and the steps after it."""
    for index, (step, decision) in enumerate(before.ahead):
        if isinstance(decision, Ask):
            rest = [one for one, _ in before.ahead[index + 1 :]]
            return (step, decision, rest) if _is_open(before.turn, decision) else None
    return None


def _answer(masked: Masked, ask: Ask) -> Any:
    value = read_value(masked.restore(masked.text), ask.parameter)
    if value is not None:
        return value
    return read_value(_short_answer(masked.restore(without_courtesy(masked.text))), ask.parameter)


def _short_answer(text: str) -> str:
    return re.sub(r"\A(?:in|at|it(?:'s| is)|use|to|the|for|from)\s+", "", text.strip(), flags=re.IGNORECASE)


def _is_open(turn: Turn, ask: Ask) -> bool:
    found = _QUESTION.search(turn.said)
    return found is not None and found[1] == ask.tool.name and found[2] == ask.parameter.name
