"""A report in SARIF 2.1.0 for code scanning. Each of our rules is a SARIF rule, each breach a result."""

from typing import Any
from urllib.parse import quote

from dragoman import __version__
from dragoman.check.reports.named_report import NamedReport, as_json
from dragoman.check.results import Evidence, Result
from dragoman.text import one_line

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {"must": "error", "should": "warning", "disputed": "note"}
_KINDS = {"fail": "fail", "warn": "review"}


def render(subject: NamedReport) -> str:
    """Render one run. Errors of the checker are its notifications."""
    results = subject.report.results
    places = {result.key: place for place, result in enumerate(results)}
    run = {
        "tool": {
            "driver": {
                "name": "dragoman check",
                "semanticVersion": __version__,
                "informationUri": "https://agentclientprotocol.com",
                "rules": [_rule(result) for result in results],
            }
        },
        "invocations": [_invocation(results)],
        "results": [
            _result(result, places[result.key], subject) for result in results if result.verdict in ("fail", "warn")
        ],
    }
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(result: Result) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": result.key,
        "shortDescription": {"text": result.title},
        "defaultConfiguration": {"level": _LEVELS[result.level]},
        "properties": {"clause": result.clause, "level": result.level, "verdict": result.verdict},
    }
    if result.url:
        rule["helpUri"] = result.url
    if result.fix:
        rule["help"] = {"text": result.fix}
    return rule


def _result(result: Result, place: int, subject: NamedReport) -> dict[str, Any]:
    fix = f" Fix: {result.fix}" if result.fix else ""
    found: dict[str, Any] = {
        "ruleId": result.key,
        "ruleIndex": place,
        "level": "note" if result.verdict == "warn" else _LEVELS[result.level],
        "kind": _KINDS[result.verdict] if result.verdict == "warn" else "fail",
        "message": {"text": f"{result.title}: {one_line(result.detail)}.{fix}"},
        "locations": [_location(subject)],
        "partialFingerprints": {"rule/v1": result.key},
        "properties": {"evidence": [_evidence(each) for each in result.evidence]},
    }
    if found["kind"] != "fail":
        found["level"] = "none"  # SARIF has a level only for failures
    if subject.is_known(result):
        found["baselineState"] = "unchanged"
        found["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
    return found


def _location(subject: NamedReport) -> dict[str, Any]:
    uri = quote(one_line(subject.name))
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
        "logicalLocations": [{"name": one_line(subject.name), "kind": "module"}],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"n": evidence.n, "sender": evidence.sender, "line": evidence.line, "event": evidence.event}


def _invocation(results: list[Result]) -> dict[str, Any]:
    errors = [
        {"descriptor": {"id": result.key}, "level": "error", "message": {"text": one_line(result.detail)}}
        for result in results
        if result.verdict == "error"
    ]
    return {"executionSuccessful": not errors, "toolExecutionNotifications": errors}
