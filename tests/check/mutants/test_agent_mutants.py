"""For each rule on agents, an agent that breaks it alone: the checker finds that, and nothing else."""

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
JUDGED = [rule for rule in RULES.values() if rule.role == "agent" and rule.area not in REMOTE_AREAS]
AGENT_RULES = sorted(rule.id for rule in JUDGED if 1 in rule.versions)


def command(home: Path, *rule: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.check.mutants.agent", str(home), *rule)


def found(report: CheckReport) -> dict[str, str]:
    return {each.id: each.verdict for each in report.results if each.verdict not in ("pass", "not_exercised")}


@pytest.mark.parametrize("rule", sorted(BREACHES))
async def test_an_agent_that_breaks_one_rule_is_found_to_break_that_one(rule: str, tmp_path: Path):
    play = play_of(rule)
    options = {"auth": "key", "protocols": (1,), **play.options}
    report = await check_agent(
        AgentOptions(
            command=command(tmp_path, rule),
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


async def test_an_agent_that_keeps_every_rule_exercises_them_all_and_raises_no_alarm(tmp_path: Path):
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


def test_every_rule_on_agents_is_broken_by_an_agent():
    assert sorted(BREACHES) == AGENT_RULES
    assert PLAYS.keys() <= BREACHES.keys()
