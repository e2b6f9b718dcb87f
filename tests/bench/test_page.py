"""The performance page: its rows are measures that exist, and page and chart are made from the results."""

import json
import re
from xml.etree import ElementTree as ET

import msgspec

from bench.__main__ import MEASURES
from bench.chart import Bar, draw
from bench.page import CHART, PAGE, README, RESULTS, make_bars, make_claim, make_table, read_results, replace_part
from bench.rows import SECTIONS
from tests.table import each_row

ROWS = [row for section in SECTIONS for row in section.rows]
SVG = "{http://www.w3.org/2000/svg}"


def results_of(tmp_path, part, title, unit, samples, loads=(0.1, 0.5)):
    outcomes = [{"contender": name, "samples": found} for name, found in samples.items()]
    measure = {"part": part, "title": title, "unit": unit, "outcomes": outcomes, "loads": loads}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"machine": {"date": "today", "load": "0"}, "measures": [measure]}))
    return read_results(path)


@each_row("row", ROWS)
def test_each_row_is_a_measure_that_is_made_with_the_target_that_it_has(row):
    [measure] = [measure for measure in MEASURES if (measure.part, measure.title) == (row.part, row.title)]
    assert {row.ours, row.theirs} - {None} <= set(measure.contenders)
    for target in measure.targets:
        if (target.ours, target.theirs) == (row.ours, row.theirs):
            assert (target.relation, target.ratio) == (row.relation, row.target)


def test_the_page_and_the_chart_are_made_from_the_results():
    results = read_results(RESULTS)
    assert PAGE.read_text() == replace_part(PAGE.read_text(), make_table(results))
    assert CHART.read_text() == draw(make_bars(results))
    assert README.read_text() == replace_part(README.read_text(), make_claim(results))


def test_the_readme_claims_only_ratios_that_are_published(tmp_path):
    start = results_of(
        tmp_path, "start", "spawn to initialize", "ms", {"dragoman agent": [100.0], "Python SDK": [500.0]}
    )
    assert not re.search("[0-9]", make_claim(start))
    samples = {"dragoman": [340.0], "Python SDK": [20.0]}
    stream = results_of(tmp_path, "stream", "50,000 chunks, back to back", "k chunks/s", samples)
    claim = make_claim(msgspec.structs.replace(start, measures=[*start.measures, *stream.measures]))
    assert "in 0.2 of the time" in claim
    assert "streams 17 times as many chunks" in claim


def test_a_row_says_whether_its_target_is_reached_or_was_not_measured(tmp_path):
    samples = {"dragoman agent": [90.0, 100.0, 400.0], "Python SDK": [500.0], "TypeScript SDK": [80.0]}
    table = make_table(results_of(tmp_path, "start", "spawn to initialize", "ms", samples))
    assert "| 100 ms | 500 ms, Python SDK | **0.2** | at most 0.25 | reached | 0.1 to 0.5 |" in table
    assert "| 100 ms | 80 ms, TypeScript SDK | **1.25** | at most 1 | **missed** |" in table
    assert "| - | -, no log |  | at least 0.9 | not measured |  |" in table


@each_row("loads", [None, (0.5, 1.1)])
def test_a_row_measured_beside_other_work_is_not_published(tmp_path, loads):
    samples = {"dragoman agent": [100.0], "Python SDK": [500.0]}
    results = results_of(tmp_path, "start", "spawn to initialize", "ms", samples, loads)
    assert "| - | -, Python SDK |  | at most 0.25 | not measured |  |" in make_table(results)
    assert make_bars(results) == []


def test_the_chart_shows_less_as_better_where_less_is_aimed_at(tmp_path):
    samples = {"dragoman agent": [100.0], "Python SDK": [500.0]}
    [bar] = make_bars(results_of(tmp_path, "start", "spawn to initialize", "ms", samples))
    assert (bar.gain, bar.target, bar.is_reached) == (5.0, 4.0, True)


def test_chart_marks_each_target_and_supports_dark_pages():
    bars = [Bar("a & b", "against <c>", 20.0, 10.0), Bar("worse", "against d", 0.2, 0.5)]
    image = ET.fromstring(draw(bars))
    kinds = [element.get("class") for element in image.iter() if element.tag in (f"{SVG}rect", f"{SVG}line")]
    assert [kinds.count(kind) for kind in ("reached", "missed", "target")] == [1, 1, 2]
    assert "prefers-color-scheme: dark" in image.find(f"{SVG}style").text
    assert all(float(box.get("width")) > 0 for box in image.iter(f"{SVG}rect"))
