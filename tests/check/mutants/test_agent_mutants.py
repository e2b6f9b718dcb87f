"""For each rule for agents, an agent breaks only this rule, and the checker finds only that."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.results import CheckReport
from dragoman.check.rules import REMOTE_AREAS
from tests.check.mutants.agent_breaches import BREACHES
from tests.check.mutants.agent_plays import PLAYS, play_of

ROOT = Path(__file__).parents[3]
JUDGED = [rule for rule in RULES.values() if rule.side == "agent" and rule.area not in REMOTE_AREAS]
AGENT_RULES = sorted(rule.id for rule in JUDGED if 1 in rule.versions)


def command(home: Path, *rule: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants.agent", str(home), *rule)


def found(report: CheckReport) -> dict[str, str]:
    return {each.id: each.verdict for each in report.results if each.verdict not in ("pass", "not_exercised")}


@pytest.mark.parametrize("name", sorted(BREACHES))
async def test_agent_breach_is_found(name: str, tmp_path: Path):
    play, rule = play_of(name), name.partition(" ")[0]
    options = {"auth": "key", "protocols": (1,), **play.options}
    report = await check_agent(
        AgentOptions(
            command=command(tmp_path, name),
            env={"PYTHONPATH": str(ROOT)},
            turns=play.turns,
            scenes=frozenset(play.scenes),
            **options,
        )
    )
    verdicts = found(report)
    assert verdicts.pop(rule, None) == ("warn" if RULES[rule].level == "disputed" else "fail"), verdicts
    details = {each.id: each.detail for each in report.results if each.id in verdicts}
    assert verdicts.keys() == play.implied.keys(), details


@pytest.mark.basic
async def test_clean_agent_exercises_every_rule_without_findings(tmp_path: Path):
    report = await check_agent(
        AgentOptions(
            command=command(tmp_path),
            env={"PYTHONPATH": str(ROOT)},
            turns=(ScriptTurn("work"), ScriptTurn("and then rest")),
            auth="key",
            protocols=(1,),
        )
    )
    assert {each.id: (each.verdict, each.detail) for each in report.results if each.verdict != "pass"} == {}
    assert report.exit_code() == 0


@pytest.mark.basic
def test_every_agent_rule_has_a_breaking_agent():
    assert sorted({name.partition(" ")[0] for name in BREACHES}) == AGENT_RULES
    assert PLAYS.keys() <= BREACHES.keys()
