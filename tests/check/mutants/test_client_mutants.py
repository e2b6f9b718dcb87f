"""For each rule for clients, a client breaks only this rule, and the checker finds only that."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.results import CheckReport
from tests.check.mutants.client_breaches import BREACHES
from tests.check.mutants.client_plays import PLAYS, play_of

ROOT = Path(__file__).parents[3]
CLIENT_RULES = sorted(rule.id for rule in RULES.values() if rule.side == "client" and 1 in rule.versions)


@pytest.fixture(autouse=True)
def _is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def command(directory: Path, rule: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants.client", rule, str(directory))


def found(report: CheckReport) -> dict[str, str]:
    return {each.id: each.verdict for each in report.results if each.verdict not in ("pass", "not_exercised")}


@pytest.mark.parametrize("name", sorted(BREACHES))
async def test_client_breach_is_found(name: str, tmp_path: Path):
    play, rule = play_of(name), name.partition(" ")[0]
    report = await check_client(
        ClientOptions(command=command(tmp_path, name), parts=frozenset({play.part}), **play.options)
    )
    verdicts = found(report)
    assert verdicts.pop(rule, None) == ("warn" if RULES[rule].level == "disputed" else "fail"), verdicts
    details = {each.id: each.detail for each in report.results if each.id in verdicts}
    assert verdicts.keys() == play.implied.keys(), details


@pytest.mark.basic
async def test_clean_client_exercises_every_rule_without_findings(tmp_path: Path):
    report = await check_client(ClientOptions(command=command(tmp_path, "none")))
    assert {each.id: (each.verdict, each.detail) for each in report.results if each.verdict != "pass"} == {}
    assert report.exit_code() == 0


@pytest.mark.basic
def test_every_client_rule_has_a_breaking_client():
    assert sorted({name.partition(" ")[0] for name in BREACHES}) == CLIENT_RULES
    assert PLAYS.keys() <= BREACHES.keys()
