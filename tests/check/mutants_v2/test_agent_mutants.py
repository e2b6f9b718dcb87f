"""For each agent rule that only version 2 has, an agent breaks only this rule, and the checker finds only that."""

import sys
from pathlib import Path

import pytest

from dragoman.check import RULES
from dragoman.check.driver import AgentOptions, ScriptTurn, check_agent
from dragoman.check.driver.run import UnsupportedVersionError
from dragoman.check.results import CheckReport
from dragoman.check.rules import REMOTE_AREAS
from tests.check.mutants_v2.agent_breaches import BREACHES

ROOT = Path(__file__).parents[3]
JUDGED = [rule for rule in RULES.values() if rule.side == "agent" and rule.area not in REMOTE_AREAS]
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


@pytest.mark.parametrize("name", sorted(BREACHES))
async def test_version_2_agent_breach_is_found(name: str, tmp_path: Path):
    mutant, rule = BREACHES[name], name.partition(" ")[0]
    report = await check(tmp_path, name, turns=mutant.turns, scenes=frozenset(mutant.scenes), **mutant.options)
    verdicts = found(report)
    assert verdicts.pop(rule, None) in ("fail", "warn"), verdicts
    details = {each.id: each.detail for each in report.results if each.id in verdicts}
    assert verdicts.keys() == mutant.implied, details


@pytest.mark.basic
async def test_agent_that_never_idles_ends_the_work_scenes(tmp_path: Path):
    scenes = frozenset({"converse", "reopen_sessions", "cancel_parts", "two_prompts", "reject", "cancel", "close"})
    turns = (ScriptTurn("work"), ScriptTurn("work more"))
    given = {"scenes": scenes, "turns": turns, "turn_timeout_s": 4.0, "timeout_s": 3.0}
    report = await check(tmp_path, "ACP-PROMPT-016", **given)
    assert found(report) == {"ACP-PROMPT-016": "fail"}
    results = {each.id: each for each in report.results}
    assert "nor after a cancel" in results["ACP-PROMPT-016"].detail
    assert results["ACP-PROMPT-011"].occasions <= 2, "two scenes prompt once each"


@pytest.mark.basic
async def test_clean_version_2_agent_has_no_findings(tmp_path: Path):
    turns = (ScriptTurn("work"), ScriptTurn("and then rest"))
    report = await check(tmp_path, turns=turns, protocols=None)
    # It has every optional method of version 2, so no method is called without being advertised.
    assert {each.key: (each.verdict, each.detail) for each in report.results if each.verdict != "pass"}.keys() == {
        "ACP-INIT-008@2"
    }
    assert report.protocols == [2]
    assert report.exit_code() == 0


@pytest.mark.basic
async def test_version_1_agent_is_only_judged_by_version_1(tmp_path: Path):
    report = await check(tmp_path, version=1, protocols=None, scenes=frozenset())
    assert report.protocols == [1]
    assert found(report) == {}


@pytest.mark.basic
async def test_version_1_agent_cannot_be_judged_by_version_2(tmp_path: Path):
    with pytest.raises(UnsupportedVersionError, match="does not speak version 2"):
        await check(tmp_path, version=1, scenes=frozenset())


@pytest.mark.basic
def test_every_version_2_agent_rule_has_a_breaking_agent():
    assert {name.partition(" ")[0] for name in BREACHES} >= set(OWN)
