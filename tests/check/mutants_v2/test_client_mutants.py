"""For each client rule that only version 2 has, a client breaks only this rule, and the checker finds only that."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.results import CheckReport
from tests.check.mutants_v2.client_breaches import BREACHES

ROOT = Path(__file__).parents[3]
OWN = sorted(rule.id for rule in RULES.values() if rule.side == "client" and rule.versions == (2,))


@pytest.fixture(autouse=True)
def _is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def command(directory: Path, rule: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants_v2.client", rule, str(directory))


def verdicts_of(report: CheckReport, *left_out: str) -> dict[str, tuple[str, str]]:
    return {each.id: (each.verdict, each.detail) for each in report.results if each.verdict not in left_out}


@pytest.mark.parametrize("name", sorted(BREACHES))
async def test_version_2_client_breach_is_found(name: str, tmp_path: Path):
    parts, rule = frozenset({BREACHES[name].part}), name.partition(" ")[0]
    report = await check_client(ClientOptions(command=command(tmp_path, name), protocols=(2,), parts=parts))
    found = verdicts_of(report, "pass", "not_exercised")
    assert {name: verdict for name, (verdict, _) in found.items()} == {rule: "fail"}, found


@pytest.mark.basic
async def test_clean_version_2_client_has_no_findings(tmp_path: Path):
    report = await check_client(ClientOptions(command=command(tmp_path, "none"), protocols=(2,)))
    assert verdicts_of(report, "pass", "not_exercised") == {}
    passed = verdicts_of(report, "not_exercised")
    assert [rule for rule in OWN if rule not in passed] == []
    assert report.exit_code() == 0


@pytest.mark.basic
def test_every_version_2_client_rule_has_a_breaking_client():
    assert {name.partition(" ")[0] for name in BREACHES} >= set(OWN)
