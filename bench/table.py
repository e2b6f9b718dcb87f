"""Formats results as a table."""

from collections.abc import Iterator, Sequence

from bench.measure import PYTHON_SDK, Target
from bench.rounds import Outcome, Result

HEADER = ("measure", "peer", "median", "from", "to", f"/ {PYTHON_SDK}", "target")
LEFT_ALIGNED = {0, 1, 6}

Row = tuple[str, ...]


def render(results: Sequence[Result]) -> str:
    """Return the table, with one block per measure."""
    blocks = [list(_block(result)) for result in results]
    rows = [HEADER, *(row for block in blocks for row in block)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    rule = "  ".join("─" * width for width in widths)
    lines = [_line(HEADER, widths)]
    for block in blocks:
        lines += [rule, *(_line(row, widths) for row in block)]
    return "\n".join(lines)


def _block(result: Result) -> Iterator[Row]:
    title = f"{result.measure.title}, {result.measure.unit}"
    for outcome in result.outcomes:
        targets = [target for target in result.measure.targets if target.ours == outcome.contender]
        in_line = next((target for target in targets if target.theirs in (PYTHON_SDK, None)), None)
        yield (title, *_figures(result, outcome), _verdict(result, in_line))
        title = ""
        for target in targets:
            if target is not in_line:
                yield _beside(result, target.ours, target.theirs, _verdict(result, target))
        for ours, theirs in result.measure.ratios:
            if ours == outcome.contender:
                yield _beside(result, ours, theirs, "")


def _beside(result: Result, ours: str, theirs: str | None, verdict: str) -> Row:
    return ("", f"  / {theirs}", "", "", "", _ratio(result, ours, theirs), verdict)


def _figures(result: Result, outcome: Outcome) -> Row:
    if not outcome.samples:
        return (f"{outcome.contender} ({outcome.missing})", "-", "", "", "")
    spread = (_number(min(outcome.samples)), _number(max(outcome.samples)))
    return (
        outcome.contender,
        _number(outcome.median),
        *spread,
        _ratio(result, outcome.contender, PYTHON_SDK),
    )


def _ratio(result: Result, ours: str, theirs: str | None) -> str:
    ratio = result.ratio(ours, theirs)
    return "-" if ratio is None else f"{ratio:.2f}"


def _verdict(result: Result, target: Target | None) -> str:
    if target is None:
        return ""
    ratio = result.ratio(target.ours, target.theirs)
    if ratio is None:
        return f"{target.text} not measured"
    return f"{target.text} {'reached' if target.is_reached(ratio) else 'MISSED'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def _line(row: Row, widths: Sequence[int]) -> str:
    cells = (
        cell.ljust(width) if column in LEFT_ALIGNED else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
