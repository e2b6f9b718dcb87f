"""`python -m bench.page`: write the table and the chart of `docs/performance.md` from the results of a run.

`make bench` writes the results to `bench/results.json` and then runs this. It also writes the sentence about speed in
the README, so that the README claims only published ratios. Text outside the two marks is kept. A result that was
measured while other programs were busy is not published.
"""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.chart import Bar, draw
from bench.commands import ROOT
from bench.rows import SECTIONS, START_ROW, STREAM_ROW, Row

RESULTS = ROOT / "bench" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "performance.svg"
README = ROOT / "README.md"

BEGIN = "<!-- made by python -m bench.page: begin -->"
END = "<!-- made by python -m bench.page: end -->"

MAX_LOAD = 1.0
"""The load by other programs up to which a row may be measured."""

MACHINE_NAMES = ("machine", "Python", "msgspec", "uvloop", "agent-client-protocol", "@agentclientprotocol/sdk", "node")


class _Outcome(msgspec.Struct):
    contender: str
    samples: list[float] = []
    missing: str | None = None


class _Measured(msgspec.Struct):
    part: str
    title: str
    unit: str
    outcomes: list[_Outcome]
    date: str = ""
    loads: tuple[float, float] | None = None


class _Results(msgspec.Struct):
    machine: dict[str, str]
    """The date of the last run. Some measures may be from earlier runs."""
    measures: list[_Measured]


class Figures(msgspec.Struct, frozen=True):
    """The results of a row in a run. A figure is None if it was not measured."""

    row: Row
    unit: str
    ours: float | None
    theirs: float | None

    @property
    def ratio(self) -> float | None:
        """The figure that the target applies to."""
        if self.row.theirs is None or self.ours is None:
            return self.ours
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def is_reached(self) -> bool | None:
        """Whether the target is reached, or None if unknown."""
        if self.ratio is None:
            return None
        return self.ratio <= self.row.target if self.row.relation == "at most" else self.ratio >= self.row.target


def read_results(path: Path) -> _Results:
    """Read the results of a run."""
    return msgspec.json.decode(path.read_bytes(), type=_Results)


def find_figures(results: _Results, row: Row) -> Figures:
    """Find the medians of a row. They are None for a measure that did not run."""
    measured = _find_measured(results, row)
    if measured is None:
        return Figures(row, "", None, None)
    medians = {
        outcome.contender: statistics.median(outcome.samples) for outcome in measured.outcomes if outcome.samples
    }
    theirs = None if row.theirs is None else medians.get(row.theirs)
    return Figures(row, measured.unit, medians.get(row.ours), theirs)


def _find_measured(results: _Results, row: Row) -> _Measured | None:
    same = (measured for measured in results.measures if (measured.part, measured.title) == (row.part, row.title))
    return next((measured for measured in same if _is_at_rest(measured)), None)


def _is_at_rest(measured: _Measured) -> bool:
    return measured.loads is not None and measured.loads[1] <= MAX_LOAD


def make_table(results: _Results) -> str:
    """Return the generated part of the page: the machine, the chart and the table."""
    machine = results.machine
    versions = ", ".join(
        machine[name] if name == "machine" else f"{name} {machine[name]}" for name in MACHINE_NAMES if name in machine
    )
    published = (_find_measured(results, row) for section in SECTIONS for row in section.rows)
    begun = [measured.date for measured in published if measured is not None]
    lines = [
        BEGIN,
        f"Measured until {max(begun, default='today')} ({versions}).",
        "",
        "![Each measure against its peer, and its target](performance.svg)",
        "",
        "| | measure | dragoman | against | ratio | target | | load |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for section in SECTIONS:
        title = section.title
        for row in section.rows:
            cells = (*_cells(find_figures(results, row)), _load(_find_measured(results, row)))
            lines.append(f"| {title} | {' | '.join(cells)} |")
            title = ""
    return "\n".join([*lines, END])


def _cells(figures: Figures) -> Iterator[str]:
    row = figures.row
    yield row.label.strip()
    yield _figure(figures.ours, figures.unit)
    if row.theirs is None:
        yield ""
        yield ""
    else:
        yield f"{_figure(figures.theirs, figures.unit)}, {row.against or row.theirs}"
        yield "" if figures.ratio is None else f"**{_number(figures.ratio)}**"
    yield f"{row.relation} {_figure(row.target, row.unit) if row.theirs is None else _number(row.target)}"
    yield {True: "reached", False: "**missed**", None: "not measured"}[figures.is_reached]


def _load(measured: _Measured | None) -> str:
    """Return the lowest and the highest load by other programs while a row was measured."""
    return "" if measured is None or measured.loads is None else " to ".join(map(_number, measured.loads))


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit.startswith("k "):
        return f"{_number(1000 * value)}/s"
    return f"{_number(value)} {unit}"


def _number(value: float) -> str:
    """Format a number with three significant digits."""
    if value >= 1000:
        step = 10 ** (len(str(int(value))) - 3)
        return f"{round(value / step) * step:,}"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 10 else f"{value:.2f}".rstrip("0").rstrip(".")


def make_claim(results: _Results) -> str:
    """Return the sentences about speed in the README. They have figures only if the page publishes them."""
    start, stream = (find_figures(results, row).ratio for row in (START_ROW, STREAM_ROW))
    if start is None or stream is None:
        claim = "`make bench` compares the agent, the client and the bridge with the SDKs of ACP."
    else:
        claim = (
            f"The agent answers `initialize` in {_number(start)} of the time of an agent built with the Python SDK, "
            f"and streams {_number(stream)} times as many chunks per second."
        )
    published = "[The results](docs/performance.md) list every target, including the missed ones."
    return "\n".join([BEGIN, f"- **Speed.** {claim} {published}", END])


def make_bars(results: _Results) -> list[Bar]:
    """Return the bars of the chart, each with the ratio to the other side and to the target."""
    # A label that begins with … continues the row above. If lower is better, the ratio is inverted.
    bars: list[Bar] = []
    for section in SECTIONS:
        subject = ""
        for row in section.rows:
            subject = subject if row.label.startswith("…") else row.label.replace("`", "")
            figures = find_figures(results, row)
            if row.theirs is None or figures.ratio is None:
                continue
            lower_is_better = row.relation == "at most"
            detail = row.label.removeprefix("…").strip()
            label = subject if not row.label.startswith("…") or not detail else f"{subject}, {detail}"
            bars.append(
                Bar(
                    label,
                    f"against {(row.against or row.theirs).removeprefix('limit: ').replace('`', '')}",
                    1 / figures.ratio if lower_is_better else figures.ratio,
                    1 / row.target if lower_is_better else row.target,
                )
            )
    return bars


def replace_part(page: str, part: str) -> str:
    """Replace the generated part. Raises ValueError if the page has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must have the lines {BEGIN!r} and {END!r}")
    return before + part + after


def main() -> None:
    """Write the page, the chart and the sentences in the README."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    results = read_results(path)
    PAGE.write_text(replace_part(PAGE.read_text(), make_table(results)))
    CHART.write_text(draw(make_bars(results)))
    README.write_text(replace_part(README.read_text(), make_claim(results)))


if __name__ == "__main__":
    main()
