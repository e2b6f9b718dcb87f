"""Reports agree in every format, and an agent's text stays text in each."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from jsonschema import Draft4Validator

from dragoman.check.baseline import BaselineError, fixed, read_baseline, without_known, write_baseline
from dragoman.check.reports import FORMATS, render, text
from dragoman.check.reports.json import ReportError
from dragoman.check.reports.json import read as read_report
from dragoman.check.reports.markdown import matrix
from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import CheckReport, Evidence, Result, count_verdicts

SARIF_SCHEMA = Path(__file__).parent / "data" / "sarif-schema-2.1.0.json"
HOSTILE = "<script>alert(1)</script> & \x1b]0;owned\x07\x1b[31m \u202e | ]]> \" ' \x00 \ud800"
URL = "https://agentclientprotocol.com/protocol/v1/session-setup#creating-a-session"


def result(rule, verdict, level="must", **more):
    given = {
        "title": f"The title of {rule}",
        "clause": "session-setup#creating",
        "detail": "",
        "evidence": [],
        "url": URL,
    }
    return Result(id=rule, level=level, verdict=verdict, **(given | more))


REQUEST = Evidence("first", 3, 0.25, "client", '{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}')
ANSWER = Evidence("first", 9, 0.5, "agent", json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"text": HOSTILE}}))
NOISE = Evidence("first", 10, 0.75, "agent", HOSTILE)
DEATH = Evidence("first", 11, 1.0, "agent", "", f"exited 1 {HOSTILE}")

RESULTS = [
    result("ACP-INIT-001", "pass"),
    result(
        "ACP-NEW-001",
        "fail",
        detail=f"it said {HOSTILE}",
        evidence=[REQUEST, ANSWER, NOISE, DEATH],
        fix=f"Say no {HOSTILE}",
    ),
    result("ACP-NEW-002", "fail", "should", detail="known already"),
    result("ACP-TOOL-001", "warn", "disputed", detail="hm", evidence=[NOISE]),
    result("ACP-PLAN-001", "not_exercised", detail="needed: a plan"),
]
REPORT = CheckReport("agent", RESULTS, count_verdicts(RESULTS))
SUBJECT = NamedReport(f"my agent {HOSTILE}", REPORT, frozenset({"ACP-NEW-002"}))


@pytest.mark.parametrize("form", FORMATS)
def test_agent_text_is_harmless_in_every_format(form):
    text = render(SUBJECT, form)
    assert text.encode()  # impossible with a lone surrogate
    for letter in "\x00\x07\x1b\u202e":
        assert letter not in text
    if form in ("html", "junit", "markdown"):
        assert "<script" not in text


def test_terminal_shows_failures_first_with_evidence_and_fix():
    lines = text.render(SUBJECT, width=100).splitlines()
    assert lines[0].endswith("2 failed, 1 warnings, 1 passed, 1 not exercised")
    heads = [line for line in lines if re.match(r"(FAIL|WARN|ERROR|pass)", line)]
    assert [head.split("ACP")[0].strip() for head in heads] == ["FAIL", "FAIL (known)", "WARN"]
    assert any(line.strip().startswith("Fix: Say no") for line in lines)
    assert any(re.match(r"\s+3 → \{\"jsonrpc\"", line) for line in lines)
    assert all(len(line) <= 100 for line in lines)


def test_terminal_colours_are_optional():
    assert "\x1b[31mFAIL" in text.render(SUBJECT, colours=True)
    assert "\x1b" not in text.render(SUBJECT)


def test_verbose_shows_passed_and_unexercised_rules():
    shown = text.render(SUBJECT, verbose=True)
    assert "pass  ACP-INIT-001" in shown
    assert "needed: a plan" in shown


def test_json_is_one_object_of_results_and_a_summary():
    read = json.loads(render(SUBJECT, "json"))
    assert set(read) == {"results", "summary"}
    for each in read["results"]:
        assert set(each) == {"id", "title", "level", "verdict", "clause", "detail", "evidence", "protocol"}
    assert read["summary"] == {"pass": 1, "fail": 2, "warn": 1, "not_exercised": 1, "error": 0}
    assert read["results"][1]["evidence"][0]["line"] == REQUEST.line


def test_json_is_read_back_for_the_matrix(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(render(SUBJECT, "json"))
    assert [each.id for each in read_report(str(path)).results] == [each.id for each in RESULTS]
    path.write_text("{}")
    with pytest.raises(ReportError, match="not a report"):
        read_report(str(path))


def test_junit_has_one_case_per_rule():
    suites = ET.fromstring(render(SUBJECT, "junit"))
    [suite] = suites
    assert set(suites.attrib) == {"name", "tests", "failures", "errors"}  # the schema of Jenkins allows no others
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "1", "2")
    [failure] = suite.findall("testcase/failure")
    assert failure.get("type") == "must"
    assert "session/new" in failure.text
    assert len(suite.findall("testcase/skipped")) == 2


def test_sarif_fits_its_schema():
    schema = json.loads(SARIF_SCHEMA.read_bytes())
    results = [*RESULTS, result("ACP-LIST-001", "error", detail="KeyError: 'cursor'")]
    subject = NamedReport(SUBJECT.name, CheckReport("agent", results, count_verdicts(results)), SUBJECT.known)
    written = json.loads(render(subject, "sarif"))
    assert [error.message for error in Draft4Validator(schema).iter_errors(written)] == []


def test_sarif_names_the_rules_and_the_breaches():
    read = json.loads(render(SUBJECT, "sarif"))
    assert read["version"] == "2.1.0"
    [run] = read["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == [each.id for each in RESULTS]
    found = {each["ruleId"]: each for each in run["results"]}
    assert set(found) == {"ACP-NEW-001", "ACP-NEW-002", "ACP-TOOL-001"}
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    assert found["ACP-NEW-001"]["level"] == "error"
    assert found["ACP-NEW-002"]["suppressions"]
    assert all(each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"])


def test_matrix_has_one_column_per_subject():
    other = CheckReport("agent", [result("ACP-INIT-001", "fail", detail="no")], count_verdicts([]))
    lines = matrix([NamedReport("a|b", REPORT), NamedReport("c", other)]).splitlines()
    assert lines[0] == "| rule | level | a\\|b | c |"
    assert "| ACP-INIT-001 The title of ACP-INIT-001 | must | pass | **FAIL** |" in lines
    assert "| ACP-NEW-001 The title of ACP-NEW-001 | must | **FAIL** |  |" in lines


def test_page_draws_the_exchange_and_forbids_other_content():
    page = render(SUBJECT, "html")
    assert "default-src 'none'" in page
    assert page.count("<svg") == 2
    assert ">session/new (id 7)</text>" in page
    assert "⋮ 5 others" in page
    assert "http" not in re.sub(r'<a href="https://agentclientprotocol\.com[^"]*"|xmlns="[^"]*"|http-equiv', "", page)


def test_known_failures_do_not_count_and_fixed_ones_are_named(tmp_path):
    path = str(tmp_path / "baseline.json")
    assert write_baseline(path, REPORT) == 2
    known = frozenset(read_baseline(path))
    assert known == {"ACP-NEW-001", "ACP-NEW-002"}
    assert REPORT.exit_code() == 1
    assert without_known(REPORT, known).exit_code() == 0
    assert without_known(REPORT, frozenset({"ACP-NEW-001"})).exit_code() == 1
    assert without_known(REPORT, frozenset({"ACP-NEW-001"})).exit_code("must") == 0
    assert fixed(REPORT, frozenset({"ACP-INIT-001"})) == ["ACP-INIT-001"]


@pytest.mark.parametrize("content", ["", "[]", '{"known":{}}', '{"dragoman-baseline":2,"known":{}}'])
def test_file_that_is_not_a_baseline_is_reported(content, tmp_path):
    path = tmp_path / "baseline.json"
    path.write_text(content)
    with pytest.raises(BaselineError, match=re.escape(str(path))):
        read_baseline(str(path))
