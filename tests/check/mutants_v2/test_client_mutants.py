"""For each rule on clients that only version 2 has, a client that breaks it alone: that is found, and nothing else."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.results import CheckReport
from tests.check.mutants_v2.client_breaches import BREACHES

ROOT = Path(__file__).parents[3]
OWN = sorted(rule.id for rule in RULES.values() if rule.role == "client" and rule.versions == (2,))


@pytest.fixture(autouse=True)
def _is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def command(directory: Path, rule: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants_v2.client", rule, str(directory))


def verdicts_of(report: CheckReport, *left_out: str) -> dict[str, tuple[str, str]]:
    return {each.id: (each.verdict, each.detail) for each in report.results if each.verdict not in left_out}


@pytest.mark.parametrize("rule", sorted(BREACHES))
async def test_a_client_of_version_2_that_breaks_one_rule_is_found_to_break_that_one(rule: str, tmp_path: Path):
    parts = frozenset({BREACHES[rule].part})
    report = await check_client(ClientOptions(command=command(tmp_path, rule), protocols=(2,), parts=parts))
    found = verdicts_of(report, "pass", "not_exercised")
    assert {name: verdict for name, (verdict, _) in found.items()} == {rule: "fail"}, found


async def test_a_client_of_version_2_that_keeps_every_rule_raises_no_alarm(tmp_path: Path):
    report = await check_client(ClientOptions(command=command(tmp_path, "none"), protocols=(2,)))
    assert verdicts_of(report, "pass", "not_exercised") == {}
    passed = verdicts_of(report, "not_exercised")
    assert [rule for rule in OWN if rule not in passed] == []
    assert report.exit_code() == 0


def test_every_rule_on_clients_of_version_2_is_broken_by_a_client():
    assert sorted(BREACHES) == OWN
