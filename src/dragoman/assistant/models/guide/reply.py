"""Replies of the guide: the steps of a prompt, the routine of each, and how far the turn has come with them.

A reply is made from the messages alone. The routines of the turn's steps are started anew and sent the results that
the messages have; the first call without a result is what the guide does next.
"""

import re
import uuid
from collections.abc import Generator, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import msgspec

from dragoman.assistant.models.guide.arguments import ArgumentReader
from dragoman.assistant.models.guide.file_phrases import FILE_PHRASES
from dragoman.assistant.models.guide.phrases import PhraseBook, Trust, is_path
from dragoman.assistant.models.guide.project_phrases import PROJECT_PHRASES
from dragoman.assistant.models.guide.prompt import MAX_CHARS, Words, read_prompt, without_courtesy
from dragoman.assistant.models.guide.results import one_line
from dragoman.assistant.models.guide.routines import GuideCall, GuideRoutine, say
from dragoman.assistant.models.guide.server_tools import GivenValues, ServerTools, read_question
from dragoman.assistant.models.guide.talk import not_understood, small_talk
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.assistant.models.model import ModelRequest, Part, ReplyStop, ReplyText, ReplyThought, ToolDefinition
from dragoman.assistant.search.thesaurus import STOP_WORDS
from dragoman.protocol import v1
from dragoman.text.match import near_matches

MAX_STEPS = 20
"""Steps that one prompt may have."""
MAX_QUESTIONS = 8
"""Questions about one request; after them it starts anew."""
MAX_ENTRY_CHARS = 80

_PIECE = re.compile(r"\s*\S+\s*|\s+\Z")
_ITEM = re.compile(r"[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+")
_JOINT = re.compile(
    r"(?P<strong>\s*[,;.]?\s+(?:and\s+)?then\s+|\s*[,;.]\s+(?:after that|afterwards|finally|next),?\s+|\n+)"
    r"|\s*[;!]\s+|(?<=[^\s\d])\.\s+|,?\s+and\s+(?:also\s+)?|,\s+",
    re.IGNORECASE,
)
_PHRASES = PhraseBook(FILE_PHRASES.phrases + PROJECT_PHRASES.phrases)
_NONE = ToolResult("", "")


class GuideTurn(msgspec.Struct):
    """A prompt and what came after it."""

    content: Sequence[v1.ContentBlock]
    uses: list[ToolUse] = []
    results: dict[str, ToolResult] = {}
    said: str = ""


class GuideReplies:
    """Makes the replies of one conversation."""

    def __init__(self) -> None:
        self._tools: Sequence[ToolDefinition] = ()
        self._servers = ServerTools(())
        self._last_split: tuple[object, list[Words]] = (None, [])
        self._has_unknown_step = False
        """Whether a step of this reply was not understood."""

    def make(self, request: ModelRequest) -> list[Part]:
        """Return the parts of the reply to the last message."""
        if request.tools != self._tools:
            self._tools, self._servers = request.tools, ServerTools(request.tools)
        turns = _read_turns(request.messages)
        recorded = [turns[-1].results[use.id] for use in turns[-1].uses if use.id in turns[-1].results]
        return list(self._replay(self._answer(turns), recorded))

    def _replay(self, routine: GuideRoutine, recorded: list[ToolResult]) -> Iterator[Part]:
        """Send a routine the results that are there; what it says after them, and its next call, are the reply."""
        said: list[str] = []
        result = None
        self._has_unknown_step = False
        names = {tool.name for tool in self._tools}
        while True:
            try:
                move = next(routine) if result is None else routine.send(result)
            except StopIteration:
                break
            result = _NONE
            if isinstance(move, str):
                said.append(move)
            elif move.tool not in names:
                result = ToolResult("", "there is no tool of this name in this session", failed=True)
            elif recorded:
                result = recorded.pop(0)
                said.clear()  # it was said before the call was made
            else:
                yield from _stream("\n\n".join(said) + "\n" if said else "")
                yield ReplyThought(_explain_call(move))
                yield ToolUse(f"call-{uuid.uuid4()}", move.tool, move.arguments)
                return
        yield from _stream("\n\n".join(said) or "There is nothing left for me to do.")
        if self._has_unknown_step:
            yield ReplyStop("refusal")  # a program is not to take it for work that was done

    def _answer(self, turns: Sequence[GuideTurn]) -> GuideRoutine:
        """Do the steps of the last prompt, or of the one before it that waits for an answer."""
        prompt = read_prompt(turns[-1].content)
        if prompt.unseen:
            yield f"I cannot look at {' and '.join(prompt.unseen)}: I go by your words alone."
        last_path = prompt.attached or _last_path(turns[:-1])
        first = self._find_open_request(turns)
        given: GivenValues = {}
        if first == len(turns) - 1 or self._is_request(prompt.words, last_path):
            steps = self._split(prompt.words, last_path)
        else:
            steps = self._split(read_prompt(turns[first].content).words, last_path)
            given = self._read_answers(turns[first:])
            steps = steps[self._find_asking(steps, last_path) :]
        return (yield from self._do(steps, last_path, given))

    def _do(self, steps: Sequence[Words], last_path: str | None, given: GivenValues) -> GuideRoutine:
        """Do the steps one after the other, with a plan when there are several."""
        has_plan = len(steps) > 1 and any(tool.name == "update_plan" for tool in self._tools)
        done: list[bool] = []
        for number, step in enumerate(steps):
            if has_plan:
                has_plan = not (yield _plan(steps, number)).failed
            routine = self._understand(step, last_path, given)
            if routine is None:
                self._has_unknown_step = True
                routine = say(not_understood(step.value(step.text)), is_done=False)
            is_done, last_path, waits = yield from _follow(routine, last_path)
            done.append(is_done)
            if waits:
                return False
        if has_plan:
            yield _plan(steps, len(steps))
        if len(steps) > 1:
            yield f"All {len(steps)} steps are done." if all(done) else f"{sum(done)} of {len(steps)} steps are done."
        return all(done)

    def _understand(self, words: Words, last_path: str | None, given: GivenValues) -> GuideRoutine | None:
        """Return the routine that a request means; sure phrases come first, guesses after the tools of servers."""
        if len(words.text) > MAX_CHARS:
            return None
        for text in (words, mended := words.part(_mend(words.text))):
            talk = small_talk(text.text, self._tools)
            routine = say(talk) if talk else _PHRASES.find(text, last_path)
            routine = routine or self._servers.find(text, given) or _PHRASES.find(text, last_path, Trust.GUESS)
            if routine is not None or mended == words:
                break
        return routine or _PHRASES.find(words, last_path, Trust.COMMAND)

    def _is_request(self, words: Words, last_path: str | None) -> bool:
        return bool(small_talk(words.text, self._tools) or _PHRASES.find(words, last_path))

    def _split(self, words: Words, last_path: str | None) -> list[Words]:
        """Return the steps of a prompt, parted where both sides are requests, and at "then" where the first one is."""
        if len(words.text) > MAX_CHARS:
            return [words]
        if self._last_split[0] != (words, last_path):  # each reply of a turn needs them again
            self._last_split = (words, last_path), self._find_steps(words, last_path)
        return self._last_split[1]

    def _find_steps(self, words: Words, last_path: str | None) -> list[Words]:
        steps: list[Words] = []
        for block in _blocks(words):
            position = 0
            for joint in _JOINT.finditer(block.text):
                left, right = block.text[position : joint.start()].strip(), block.text[joint.end() :]
                if len(steps) == MAX_STEPS or _PHRASES.takes_rest(block.part(block.text[position:])):
                    break
                if joint.start() >= position and left and self._is_joint(block.part(left), joint, right, last_path):
                    steps.append(block.part(left))
                    position = joint.end()
            steps.append(block.part(block.text[position:]))
        return [step for step in steps if step.text][:MAX_STEPS] or [words]

    def _is_joint(self, left: Words, joint: re.Match[str], right: str, last_path: str | None) -> bool:
        """Tell whether a joint parts two steps, or stands inside one."""
        if small_talk(left.text, self._tools):
            return False
        first = without_courtesy(left.text)
        is_command = re.match(r"(?:run|execute|exec|\$|!)", first, re.IGNORECASE) is not None
        next_joint = _JOINT.search(right)
        after = [left.part(text) for text in (right, right[: next_joint.start()] if next_joint else right)]
        if joint["strong"]:
            is_left = not is_command and self._understand(left, last_path, {}) is not None
            return is_left or any(self._understand(one, last_path, {}) for one in after)
        if (is_command and ";" in joint[0]) or self._understand(left, last_path, {}) is None:
            return False
        if any(is_path(one) for one in after):
            return is_path(left) or re.match(r"(?:read|cat|open|view|show)\b", first, re.IGNORECASE) is not None
        return any(self._is_request(one, last_path) for one in after)

    def _find_open_request(self, turns: Sequence[GuideTurn]) -> int:
        """Return the place of the turn whose request waits for the answer in the last prompt; else of the last turn."""
        first = len(turns) - 1
        while first > 0 and len(turns) - first <= MAX_QUESTIONS and read_question(turns[first - 1].said):
            first -= 1
        return first

    def _read_answers(self, turns: Sequence[GuideTurn]) -> dict[str, dict[str, Any]]:
        """Return the values that were given for the parameters that were asked for, by the name of their tool."""
        given: dict[str, dict[str, Any]] = {}
        for before, after in pairwise(turns):
            question = read_question(before.said)
            tool = next((tool for tool in self._tools if question and tool.name == question.tool), None)
            if question is None or tool is None:
                continue
            answer = read_prompt(after.content).words
            name = question.parameter
            alone = {"properties": {name: tool.parameters["properties"][name]}, "required": [name]}
            asked = msgspec.structs.replace(tool, parameters=alone)
            reader = ArgumentReader(asked, answer.part(without_courtesy(answer.text)), {}).read(is_named=True)
            given.setdefault(tool.name, {}).update(reader.values)
        return given

    def _find_asking(self, steps: Sequence[Words], last_path: str | None) -> int:
        """Return the place of the step that asks for a value: those before it were done when it asked."""
        for place, step in enumerate(steps):
            routine = self._understand(step, last_path, {})
            move = next(routine, None) if routine else None
            if isinstance(move, str) and read_question(move):
                return place
        return 0


def _follow(
    routine: GuideRoutine, last_path: str | None
) -> Generator[GuideCall | str, ToolResult, tuple[bool, str | None, bool]]:
    """Pass on what a routine does; return whether it did it, its last path, and whether it waits for an answer."""
    waits, result = False, None
    while True:
        try:
            move = next(routine) if result is None else routine.send(result)
        except StopIteration as end:
            return bool(end.value), last_path, waits
        if isinstance(move, str):
            waits = waits or read_question(move) is not None
        else:
            last_path = _path_of(move.arguments) or last_path
        result = yield move


def _blocks(words: Words) -> list[Words]:
    """Return the items of a list, or the whole text when it is none, or when the list is the text for a file."""
    lines = [line for line in words.text.split("\n") if line.strip()]
    if len(lines) > 1 and lines[0].rstrip().endswith(":") and not _PHRASES.takes_rest(words):
        lines = lines[1:]
    if _PHRASES.takes_rest(words) or not all(_ITEM.match(line) for line in lines):
        return [words]
    return [words.part(_ITEM.sub("", line, count=1)) for line in lines]


def _read_turns(messages: Sequence[Message]) -> list[GuideTurn]:
    turns: list[GuideTurn] = []
    for message in messages:
        match message:
            case UserMessage(content):
                turns.append(GuideTurn(content))
            case SummaryMessage(_, prompt) if prompt:
                turns.append(GuideTurn(prompt))
            case AssistantMessage(text, _, tool_uses) if turns:
                turns[-1].uses += tool_uses
                turns[-1].said = text
            case ToolMessage(results) if turns:
                turns[-1].results.update({result.id: result for result in results})
            case _:  # the rest of a conversation that was compacted
                pass
    return turns or [GuideTurn([])]


def _last_path(turns: Sequence[GuideTurn]) -> str | None:
    paths = (_path_of(use.arguments) for turn in reversed(turns) for use in reversed(turn.uses))
    return next(filter(None, paths), None)


def _path_of(arguments: dict[str, Any]) -> str | None:
    path = arguments.get("path")
    return path if isinstance(path, str) and path != "." else None


def _plan(steps: Sequence[Words], current: int) -> GuideCall:
    """Return the call that shows the steps, those before `current` as completed."""
    entries: list[dict[str, str]] = []
    for number, step in enumerate(steps):
        status = "completed" if number < current else "in_progress" if number == current else "pending"
        text = one_line(step.value(f"{step.text} "), MAX_ENTRY_CHARS)
        entries.append({"content": text[:1].upper() + text[1:], "priority": "medium", "status": status})
    return GuideCall("update_plan", {"entries": entries})


def _explain_call(call: GuideCall) -> str:
    values = ", ".join(f"{name} = {one_line(str(value), 60)}" for name, value in call.arguments.items())
    return f"I call `{call.tool}`{f': {values}' if values else ''}"


def _stream(text: str) -> Iterator[Part]:
    return (ReplyText(piece) for piece in _PIECE.findall(text))


def _mend(text: str) -> str:
    """Return a text with its likely typing errors corrected to the words of the phrases."""
    return re.sub(r"(?<![\w/.-])[A-Za-z][a-z]{2,11}(?![\w/.-])", lambda found: _mend_word(found[0]), text)


@cache
def _known_words() -> frozenset[str]:
    return frozenset(_PHRASES.words()) | STOP_WORDS


@lru_cache(maxsize=1000)
def _mend_word(word: str) -> str:
    known, lower = _known_words(), word.lower()
    if lower in known:
        return word
    swapped = (one for one in sorted(known) if one[0] == lower[0] and sorted(one) == sorted(lower))
    near = near_matches(lower, known, count=1, cutoff=0.85) if len(lower) > 3 else []
    return next(swapped, None) or next(iter(near), word)
