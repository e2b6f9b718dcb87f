"""For each rule on agents that only version 2 has, an agent that breaks it alone: that is found, and nothing else."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.driver.run import VersionNotSpoken
from dragoman.check.results import CheckReport
from dragoman.check.rules import REMOTE_AREAS
from tests.check.mutants_v2.agent_breaches import BREACHES

ROOT = Path(__file__).parents[3]
JUDGED = [rule for rule in RULES.values() if rule.role == "agent" and rule.area not in REMOTE_AREAS]
OWN = sorted(rule.id for rule in JUDGED if rule.versions == (2,))


def command(home: Path, *rule: str, version: int = 2) -> tuple[str, ...]:
    package = "mutants_v2" if version == 2 else "mutants"
    return (sys.executable, "-m", f"tests.check.{package}.agent", str(home), *rule)


def found(report: CheckReport) -> dict[str, str]:
    return {each.id: each.verdict for each in report.results if each.verdict not in ("pass", "not_exercised")}


async def check(home: Path, *rule: str, version: int = 2, **options) -> CheckReport:
    given = {"protocols": (2,), "auth": "key", **options}
    return await check_agent(
        AgentOptions(command=command(home, *rule, version=version), env={"PYTHONPATH": str(ROOT)}, **given)
    )


@pytest.mark.parametrize("rule", sorted(BREACHES))
async def test_an_agent_of_version_2_that_breaks_one_rule_is_found_to_break_that_one(rule: str, tmp_path: Path):
    mutant = BREACHES[rule]
    report = await check(tmp_path, rule, turns=mutant.turns, scenes=frozenset(mutant.scenes), **mutant.options)
    verdicts = found(report)
    assert verdicts.pop(rule, None) in ("fail", "warn"), verdicts
    details = {each.id: each.detail for each in report.results if each.id in verdicts}
    assert verdicts.keys() == mutant.implied, details


async def test_an_agent_of_version_2_that_keeps_every_rule_raises_no_alarm(tmp_path: Path):
    turns = (ScriptTurn("work"), ScriptTurn("and then rest"))
    report = await check(tmp_path, turns=turns, protocols=None)
    # It has every optional method of version 2, so that none is left to be called without being advertised.
    assert {each.key: (each.verdict, each.detail) for each in report.results if each.verdict != "pass"}.keys() == {
        "ACP-INIT-008@2"
    }
    assert report.protocols == [2]
    assert report.exit_code() == 0


async def test_an_agent_of_version_1_is_judged_by_version_1_alone(tmp_path: Path):
    report = await check(tmp_path, version=1, protocols=None, scenes=frozenset())
    assert report.protocols == [1]
    assert found(report) == {}


async def test_an_agent_of_version_1_cannot_be_judged_by_version_2(tmp_path: Path):
    with pytest.raises(VersionNotSpoken, match="does not speak version 2"):
        await check(tmp_path, version=1, scenes=frozenset())


def test_every_rule_on_agents_of_version_2_is_broken_by_an_agent():
    assert sorted(BREACHES) == OWN
