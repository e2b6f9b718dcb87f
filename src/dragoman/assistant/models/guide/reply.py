"""One reply of `guide`, put together from where the conversation stands."""

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dragoman.assistant.models.guide.answer import closing, describe, has_failed, intention, was_declined
from dragoman.assistant.models.guide.choice import AskParameter, GuideStep, SayText, UseTool, Which
from dragoman.assistant.models.guide.dialogue import GuidePosition, TriedStep, locate
from dragoman.assistant.models.guide.meaning import Meaning
from dragoman.assistant.models.guide.question import question
from dragoman.assistant.models.guide.schema import misfit
from dragoman.assistant.models.guide.talk import CONNECT, shown_name
from dragoman.assistant.models.guide.trade import PLAN_TOOL, plan_entry
from dragoman.assistant.models.message import ToolMessage, ToolUse
from dragoman.assistant.models.model import ModelRequest, Part, ReplyText, ReplyThought

MAX_ENTRY = 80
"""Characters of a step that its entry in the plan shows."""

_PIECE = re.compile(r"\s*\S+\s*|\s+\Z")


class GuideReply:
    """What is said and done next."""

    def __init__(self, request: ModelRequest, meaning: Meaning) -> None:
        self._tools = request.tools
        self._position: GuidePosition = locate(request.messages, request.tools, meaning)
        self._has_results = bool(request.messages) and isinstance(request.messages[-1], ToolMessage)
        self._said = False

    def parts(self) -> Iterator[Part]:
        position = self._position
        if position.abandoned:
            yield from self._say("All right, I leave it at that.")
            return
        if self._has_results:
            yield from self._say_what_happened()
        else:
            yield from self._say_what_is_unseen()
        said_how = False
        for step, decision in position.ahead if not self._is_closing() else ():
            match decision:
                case SayText(text, lost):
                    yield from self._say(text.replace(f"\n{CONNECT}", "") if lost and said_how else text)
                    said_how = said_how or lost
                case AskParameter() | Which():
                    yield from self._say(question(decision))
                    return
                case UseTool():
                    yield from self._call(step, decision)
                    return
        yield from self._end()

    def _say(self, text: str) -> Iterator[Part]:
        """Stream a paragraph, word by word."""
        if self._said:
            text = f"\n\n{text}"
        self._said = True
        for piece in _PIECE.findall(text):
            yield ReplyText(piece)

    def _break(self) -> Iterator[Part]:
        """End the line before a tool is shown."""
        if self._said:
            yield ReplyText("\n")

    def _say_what_is_unseen(self) -> Iterator[Part]:
        unseen = self._position.prompt.unseen
        if unseen:
            kinds = " and ".join("images" if kind == "image" else kind for kind in unseen)
            yield from self._say(f"I cannot look at {kinds}: I am no language model, and go by your words alone.")

    def _say_what_happened(self) -> Iterator[Part]:
        last = {use.id for use in self._position.turn.last_uses}
        for done in self._position.done:
            if done.use.id in last and done.result is not None:
                shown = msgspec.structs.replace(done.use, name=shown_name(done.call.tool))
                yield from self._say(describe(shown, done.result, done.call.kind))

    def _call(self, step: GuideStep, call: UseTool) -> Iterator[Part]:
        position = self._position
        total = len(position.steps)
        number = f"Step {_index(position.steps, step) + 1} of {total}. " if total > 1 else ""
        yield from self._break()
        yield ReplyThought(f"{number}{intention(call)}")
        yield from self._plan(current=_index(position.steps, step))
        yield _use(call.tool.name, call.arguments)

    def _plan(self, current: int) -> Iterator[Part]:
        """Show the plan as it stands, when there is more than one step and a tool to show it with."""
        position = self._position
        tool = next((tool for tool in self._tools if tool.name == PLAN_TOOL), None)
        if tool is None or len(position.steps) < 2 or self._plan_failed() or self._plans_itself():
            return
        marks = {_index(position.steps, done.step): _mark(done) for done in position.done}
        entries = [
            plan_entry(_title(step) + marks.get(index, ""), _status(index, current))
            for index, step in enumerate(position.steps)
        ]
        arguments: dict[str, Any] = {"entries": entries}
        if misfit(arguments, tool.parameters, tool.parameters) is None:
            yield _use(PLAN_TOOL, arguments)

    def _plan_failed(self) -> bool:
        turn = self._position.turn
        return any(use.name == PLAN_TOOL and has_failed(None, turn.results.get(use.id)) for use in turn.uses)

    def _plans_itself(self) -> bool:
        calls = [done.call for done in self._position.done]
        calls += [decision for _, decision in self._position.ahead if isinstance(decision, UseTool)]
        return any(call.tool.name == PLAN_TOOL for call in calls)

    def _is_closing(self) -> bool:
        """Tell whether all that was left was to show the plan as completed."""
        last = self._position.turn.last_uses
        return self._has_results and len(last) == 1 and last[0].name == PLAN_TOOL and not self._plans_itself()

    def _end(self) -> Iterator[Part]:
        done = self._position.done
        if not done:
            if not self._said:
                yield from self._say("There is nothing left for me to do.")
            return
        if not self._is_closing():
            shown = list(self._plan(current=len(self._position.steps)))
            if shown:
                yield from self._break()
                yield from shown
                return
        declined = sum(1 for one in done if one.result is not None and was_declined(one.result))
        failed = sum(1 for one in done if has_failed(one.call.kind, one.result)) - declined
        yield from self._say(closing(len(done) - failed - declined, failed, declined))


def _use(name: str, arguments: dict[str, Any]) -> ToolUse:
    return ToolUse(f"call-{uuid.uuid4()}", name, arguments)


def _index(steps: Sequence[GuideStep], step: GuideStep) -> int:
    return next(index for index, one in enumerate(steps) if one is step)


def _mark(done: TriedStep) -> str:
    if not has_failed(done.call.kind, done.result):
        return ""
    return " (declined)" if done.result is not None and was_declined(done.result) else " (failed)"


def _status(index: int, current: int) -> str:
    return "completed" if index < current else "in_progress" if index == current else "pending"


def _title(step: GuideStep) -> str:
    text = " ".join(step.masked.restore(f"{step.masked.text} ").split())
    text = text[:1].upper() + text[1:]
    return text if len(text) <= MAX_ENTRY else f"{text[: MAX_ENTRY - 1].rstrip()}…"
