"""Permission requests at a terminal, for `chat` and `run`: the question, the answers and their keys.

`y` allows once and `n` rejects once. A plain yes or no never applies for longer.
"""

import asyncio
import json
import sys
from typing import Literal, NamedTuple

from dragoman.cli.terminal.keys import END, read_key, single_keys
from dragoman.cli.terminal.rows import Row, Span, hard_wrap, plain, wrap
from dragoman.cli.terminal.screen import AnswerOutput
from dragoman.cli.terminal.tool_calls import diff_rows
from dragoman.client.policies import (
    ActionGroup,
    Decision,
    OpaqueAction,
    PermissionQuestion,
    ReadAction,
    RunAction,
    WriteAction,
)
from dragoman.protocol import v1
from dragoman.protocol.permission_options import find_default, read_scopes
from dragoman.text import one_line, visible
from dragoman.text.fence import unfenced
from dragoman.text.width import cells

MAX_NUMBER = 9
"""The last answer that a single digit can select."""

_KEYS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "d"}


class PermissionChoice(NamedTuple):
    """One answer and its keys."""

    keys: str
    name: str
    decision: Decision


def find_choices(question: PermissionQuestion) -> list[PermissionChoice]:
    """Return the possible answers: the agent's options, numbered, or plain yes and no."""
    choices: list[PermissionChoice] = []
    for option in question.options:
        for name, decision in _answers(option):
            letter, number = _KEYS[option.kind], len(choices) + 1
            is_used = any(letter in choice.keys for choice in choices)
            keys = ("" if is_used else letter) + (str(number) if number <= MAX_NUMBER else "")
            choices.append(PermissionChoice(keys, one_line(name), decision))
    if not question.options:
        choices.append(PermissionChoice("y1", "Allow", Decision("allow")))
    if not any(choice.decision.verdict == "deny" for choice in choices):
        choices.append(PermissionChoice(f"n{len(choices) + 1}", "No", Decision("deny")))
    return choices


def find_refusal(question: PermissionQuestion, choices: list[PermissionChoice]) -> PermissionChoice:
    """Return the choice for a plain no: Escape or the end of the input."""
    position = find_default([option.kind for option in question.options], "reject")
    option_id = None if position is None else question.options[position].option_id
    denying = [choice for choice in choices if choice.decision.verdict == "deny"]
    return next((choice for choice in denying if choice.decision.option_id == option_id), denying[0])


def _answers(option: v1.PermissionOption) -> list[tuple[str, Decision]]:
    """Return one answer per scope of the option. Return none for a kind that the protocol does not define."""
    if option.kind not in _KEYS:
        return []
    verdict: Literal["allow", "deny"] = "allow" if option.kind.startswith("allow") else "deny"
    scopes = read_scopes(option)
    if not scopes:
        return [(option.name, Decision(verdict, option.option_id))]
    return [(each.name, Decision(verdict, option.option_id, remember=each.scope)) for each in scopes]


_BAR = [Span("┃ ", "yellow")]


def question_rows(question: PermissionQuestion, choices: list[PermissionChoice], width: int) -> list[Row]:
    """Return the whole requested action: complete commands and diffs, with nothing hidden."""
    inner = width - 2
    title = visible(question.tool_call.title or question.tool_call.kind)
    rows = wrap([Span("May the agent do this? ", "bold yellow"), Span(title, "bold")], inner)
    details = _action_rows(question, inner)
    for item in question.tool_call.content:
        details += diff_rows(item, inner) if isinstance(item, v1.Diff) else []
    if not details:
        details = _content_rows(question, inner)
    rows += [*details, [], *_choice_rows(choices, inner)] if details else _choice_rows(choices, inner)
    return [[*_BAR, *row] for row in rows]


def _action_rows(question: PermissionQuestion, width: int) -> list[Row]:
    action = question.action
    # The rows come from the action that is checked, not from the agent's description of it. A write with a diff needs
    # no row, unless it is outside of the session's directories.
    with_diff = {item.path for item in question.tool_call.content if isinstance(item, v1.Diff)}
    rows: list[Row] = []
    for each in action.actions if isinstance(action, ActionGroup) else (action,):
        match each:
            case RunAction(command, cwd):
                for line in command.split("\n"):
                    rows += hard_wrap([Span(visible(line, lines=True), "cyan")], width, [Span("  $ ", "dim")], "    ")
                if cwd and cwd != question.cwd:
                    rows += hard_wrap([Span(f"in {visible(cwd)}", "dim")], width, [Span("  ")])
            case WriteAction(path, root):
                outside = "" if root else "  outside the session's directory"
                if path not in with_diff or outside:
                    rows += hard_wrap([Span(f"write {visible(path)}"), Span(outside, "red")], width, [Span("  ")])
            case ReadAction(path, root):
                outside = "" if root else "  outside the session's directory"
                rows += hard_wrap([Span(f"read {visible(path)}"), Span(outside, "red")], width, [Span("  ")])
            case OpaqueAction(_, raw_input):
                for line in _input_lines(raw_input):
                    rows += hard_wrap([Span(line, "cyan")], width, [Span("  ")])
    return rows


def _content_rows(question: PermissionQuestion, width: int) -> list[Row]:
    rows: list[Row] = []
    for item in question.tool_call.content:
        if isinstance(item, v1.Content) and isinstance(item.content, v1.TextContent):
            text = item.content.text.strip("\n")
            for line in (unfenced(text) or text).split("\n"):
                rows += hard_wrap([Span(visible(line, lines=True))], width, [Span("  ")], "      ")
    return rows


def _input_lines(raw_input: object) -> list[str]:
    if raw_input in (None, {}, ""):
        return []
    text = raw_input if isinstance(raw_input, str) else json.dumps(raw_input, indent=2, ensure_ascii=False)
    return [visible(line, lines=True) for line in text.split("\n")]


def _choice_rows(choices: list[PermissionChoice], width: int) -> list[Row]:
    """Return the choices in one row if they fit, or else one per row."""
    listed: list[Row] = [[Span(f"[{'/'.join(choice.keys)}]", "bold"), Span(f" {choice.name}")] for choice in choices]
    in_one = [span for row in listed for span in (*row, Span("   "))]
    if cells(plain(in_one)) <= width:
        return [in_one]
    return [row for each in listed for row in wrap(each, width, later="      ")]


def answer_row(choice: PermissionChoice) -> Row:
    """Return the row that shows the chosen answer below its question."""
    style = "green" if choice.decision.verdict == "allow" else "red"
    return [*_BAR, Span(f"→ {choice.name}", style)]


def has_terminal() -> bool:
    """Return whether a terminal can show questions and read answers."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class PermissionPrompt:
    """Asks the user at the terminal of `run`, one question at a time."""

    def __init__(self, output: AnswerOutput) -> None:
        self._output = output
        self._turn = asyncio.Lock()

    async def ask(self, question: PermissionQuestion) -> Decision:
        """Show the action and wait for the key of a choice."""
        choices = find_choices(question)
        async with self._turn:
            with single_keys():
                self._output.write_rows(question_rows(question, choices, self._output.width))
                choice = await self._choose(choices) or find_refusal(question, choices)
                self._output.write_rows([answer_row(choice)])
        return choice.decision

    async def _choose(self, choices: list[PermissionChoice]) -> PermissionChoice | None:
        while True:
            key = (await read_key(sys.stdin.fileno())).lower()
            if key in ("", END):
                return None
            for choice in choices:
                if key in choice.keys:
                    return choice
