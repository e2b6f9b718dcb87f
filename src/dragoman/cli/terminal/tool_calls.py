"""Rows of a tool call: its latest output while it runs, its result when it has ended."""

import re
from collections.abc import Sequence

import msgspec

from dragoman.cli.terminal.rows import Row, Span, hard_wrap, wrap
from dragoman.client import ToolCallState
from dragoman.client.transcripts.hunks import hunk_lines, split_lines
from dragoman.protocol import v1
from dragoman.text import clean_text, one_line, visible
from dragoman.text.width import cut

LIVE_LINES = 5
"""Shown lines of a running call's output."""
KEPT_LINES = 5
"""Shown lines of an ended call's output."""
MAX_DIFF_LINES = 40
"""Shown lines of a diff. A permission question shows all of them."""

_GUTTER = [Span("  │ ", "dim")]
_FENCE = re.compile(r"`{3,}|~{3,}")
_SUMMED_UP = ("read", "search", "fetch")


def running_rows(call: ToolCallState, spinner: str, width: int) -> list[Row]:
    """Return the rows of a running call, with the last lines of its output."""
    lines = [line for line in _text(call).split("\n") if line.strip()][-LIVE_LINES:]
    return [
        _head(call, Span(spinner, "yellow"), width),
        *([*_GUTTER, Span(_cut(line, width), "dim")] for line in lines),
    ]


def ended_rows(call: ToolCallState, width: int, *, with_diff: bool = True) -> list[Row]:
    """Return the rows of an ended call, or of one left unfinished by its turn."""
    mark = _MARKS.get(call.status, Span("-", "dim"))
    rows = [_head(call, mark, width)]
    diffs = [item for item in call.content if isinstance(item, v1.Diff)]
    if call.status != "failed" and with_diff:
        for diff in diffs:
            rows += diff_rows(diff, width, MAX_DIFF_LINES)
    return rows + _output_rows(call, width)


_MARKS = {"completed": Span("✓", "green"), "failed": Span("✗", "red")}


def diff_rows(diff: v1.Diff, width: int, max_lines: int | None = None) -> list[Row]:
    """Return a coloured diff with at most `max_lines` lines."""
    lines = hunk_lines(diff, context=2)
    shown = lines if max_lines is None else lines[:max_lines]
    rows = hard_wrap([Span(visible(diff.path), "bold"), *_counts(lines)], width, [Span("  ")])
    for line in shown:
        rows += hard_wrap([Span(visible(line, lines=True), _diff_style(line))], width, _GUTTER)
    if len(shown) < len(lines):
        rows.append([*_GUTTER, Span(f"… {len(lines) - len(shown)} more lines", "dim")])
    return rows


def with_output_of(before: ToolCallState, ended: ToolCallState) -> ToolCallState:
    """Return a cancelled call with the output it had shown before, if its last update removed it."""
    lines = _text(before).rstrip().split("\n")
    if before.status != "in_progress" or ended.status != "failed" or lines[-1] in _text(ended):
        return ended
    return msgspec.structs.replace(ended, content=(*before.content, *ended.content))


def plan_rows(entries: Sequence[v1.PlanEntry], width: int) -> list[Row]:
    """Return the plan with the state of each step."""
    done = sum(entry.status == "completed" for entry in entries)
    rows: list[Row] = [[Span("Plan", "bold"), Span(f" {done}/{len(entries)}", "dim")]]
    for entry in entries:
        mark, style = _STEPS.get(entry.status, ("☐", ""))
        rows += wrap([Span(one_line(entry.content), style)], width, f"  {mark} ")
    return rows


_STEPS = {"completed": ("☑", "dim"), "in_progress": ("▸", "bold"), "pending": ("☐", "")}


def _head(call: ToolCallState, mark: Span, width: int) -> Row:
    title = one_line(call.title or call.name or call.kind)
    return [mark, Span(" "), Span(cut(title, width - 2), "bold" if not call.is_over else "")]


def _output_rows(call: ToolCallState, width: int) -> list[Row]:
    text = _text(call)
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return []
    if call.kind in _SUMMED_UP and call.status == "completed":
        count = len(split_lines(text))
        return [[*_GUTTER, Span(f"{count} line{'s' if count != 1 else ''}", "dim")]]
    # A command's result is at the end of its output. Other tools begin with the important lines.
    rest = len(lines) - KEPT_LINES
    more: list[Row] = [[*_GUTTER, Span(f"… {rest} more line{'s' if rest != 1 else ''}", "dim")]] if rest > 0 else []
    if call.kind == "execute":
        return [*more, *([*_GUTTER, Span(_cut(line, width), "dim")] for line in lines[-KEPT_LINES:])]
    return [*([*_GUTTER, Span(_cut(line, width), "dim")] for line in lines[:KEPT_LINES]), *more]


def _text(call: ToolCallState) -> str:
    texts = [
        item.content.text
        for item in call.content
        if isinstance(item, v1.Content) and isinstance(item.content, v1.TextContent)
    ]
    return last_state("".join(map(_unfence, filter(None, texts))))


def last_state(text: str) -> str:
    """Return the output as a terminal shows it after carriage returns overwrote lines."""
    return "\n".join(clean_text(line.rstrip("\r").rsplit("\r", 1)[-1]) for line in text.split("\n"))


def _unfence(text: str) -> str:
    """Return the lines inside a code block if the text is one. A streaming agent may not have closed it yet."""
    lines = text.strip("\n").split("\n")
    mark = _FENCE.match(lines[0])
    if mark is None:
        return text if text.endswith("\n") else f"{text}\n"
    inside = lines[1:-1] if len(lines) > 1 and lines[-1].strip() == mark[0] else lines[1:]
    return "".join(f"{line}\n" for line in inside)


def _cut(line: str, width: int) -> str:
    return cut(line.replace("\t", "    "), width - 4)


def _counts(lines: Sequence[str]) -> list[Span]:
    added, removed = count_changes(lines)
    return [Span(f" +{added}", "green"), Span(f" -{removed}", "red")]


def _diff_style(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def count_changes(lines: Sequence[str]) -> tuple[int, int]:
    """Return how many lines the hunks add and remove."""
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)
