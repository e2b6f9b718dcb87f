"""For each rule on clients, a client that breaks it alone: the checker finds that, and nothing else."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.results import CheckReport
from tests.check.mutants.client_breaches import BREACHES
from tests.check.mutants.client_plays import PLAYS, play_of

ROOT = Path(__file__).parents[3]
CLIENT_RULES = sorted(rule.id for rule in RULES.values() if rule.role == "client" and 1 in rule.versions)


@pytest.fixture(autouse=True)
def _is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def command(directory: Path, rule: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants.client", rule, str(directory))


def found(report: CheckReport) -> dict[str, str]:
    return {each.id: each.verdict for each in report.results if each.verdict not in ("pass", "not_exercised")}


@pytest.mark.parametrize("rule", sorted(BREACHES))
async def test_a_client_that_breaks_one_rule_is_found_to_break_that_one(rule: str, tmp_path: Path):
    play = play_of(rule)
    report = await check_client(
        ClientOptions(command=command(tmp_path, rule), parts=frozenset({play.part}), **play.options)
    )
    verdicts = found(report)
    assert verdicts.pop(rule, None) == ("warn" if RULES[rule].level == "disputed" else "fail"), verdicts
    details = {each.id: each.detail for each in report.results if each.id in verdicts}
    assert verdicts.keys() == play.implied.keys(), details


async def test_a_client_that_keeps_every_rule_exercises_them_all_and_raises_no_alarm(tmp_path: Path):
    report = await check_client(ClientOptions(command=command(tmp_path, "none")))
    assert {each.id: (each.verdict, each.detail) for each in report.results if each.verdict != "pass"} == {}
    assert report.exit_code() == 0


def test_every_rule_on_clients_is_broken_by_a_client():
    assert sorted(BREACHES) == CLIENT_RULES
    assert PLAYS.keys() <= BREACHES.keys()
