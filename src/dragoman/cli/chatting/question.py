"""What the agent asks for permission to do, as rows."""

import json

from dragoman.cli.chatting.styled import Row, Span, hard_wrap, plain, wrap
from dragoman.cli.chatting.tool_calls import diff_rows
from dragoman.cli.permission_choice import Choice
from dragoman.client import Foreign, Question, Read, Run, Several, Write
from dragoman.protocol import v1
from dragoman.text import visible
from dragoman.text.width import cells

_BAR = [Span("┃ ", "yellow")]


def question_rows(question: Question, choices: list[Choice], width: int) -> list[Row]:
    """Return all of what is asked for: whole commands and whole diffs, with nothing hidden in them."""
    inner = width - 2
    title = visible(question.tool_call.title or question.tool_call.kind)
    rows = wrap([Span("May the agent do this? ", "bold yellow"), Span(title, "bold")], inner)
    details = _deed_rows(question, inner)
    for item in question.tool_call.content:
        details += diff_rows(item, inner) if isinstance(item, v1.Diff) else []
    rows += [*details, [], *_choice_rows(choices, inner)] if details else _choice_rows(choices, inner)
    return [[*_BAR, *row] for row in rows]


def _deed_rows(question: Question, width: int) -> list[Row]:
    deed = question.deed
    with_diff = {item.path for item in question.tool_call.content if isinstance(item, v1.Diff)}
    rows: list[Row] = []
    for each in deed.deeds if isinstance(deed, Several) else (deed,):
        match each:
            case Run(command, cwd):
                for line in command.split("\n"):
                    rows += hard_wrap([Span(visible(line, lines=True), "cyan")], width, [Span("  $ ", "dim")], "    ")
                if cwd and cwd != question.cwd:
                    rows += hard_wrap([Span(f"in {visible(cwd)}", "dim")], width, [Span("  ")])
            case Write(path, root):
                outside = "" if root else "  outside of the session's directory"
                if path not in with_diff or outside:
                    rows += hard_wrap([Span(f"write {visible(path)}"), Span(outside, "red")], width, [Span("  ")])
            case Read(path, root):
                outside = "" if root else "  outside of the session's directory"
                rows += hard_wrap([Span(f"read {visible(path)}"), Span(outside, "red")], width, [Span("  ")])
            case Foreign(_, raw_input):
                for line in _input_lines(raw_input):
                    rows += hard_wrap([Span(line, "cyan")], width, [Span("  ")])
    return rows


def _input_lines(raw_input: object) -> list[str]:
    if raw_input in (None, {}, ""):
        return []
    text = raw_input if isinstance(raw_input, str) else json.dumps(raw_input, indent=2, ensure_ascii=False)
    return [visible(line, lines=True) for line in text.split("\n")]


def _choice_rows(choices: list[Choice], width: int) -> list[Row]:
    """Return the choices in one row if they fit, else one below the other."""
    listed: list[Row] = [[Span(f"[{'/'.join(choice.keys)}]", "bold"), Span(f" {choice.name}")] for choice in choices]
    in_one = [span for row in listed for span in (*row, Span("   "))]
    if cells(plain(in_one)) <= width:
        return [in_one]
    return [row for each in listed for row in wrap(each, width, later="      ")]
