"""Each rule has a conversation that breaks only this rule, and one that follows it."""

from importlib import import_module

from dragoman.check import AREAS, RULES
from dragoman.check.rules import REMOTE_AREAS
from tests.check.judge.cases import version_2
from tests.check.judge.cases.case import Case
from tests.check.judge.talking import judge
from tests.table import each_row

JUDGED = [rule for rule in RULES.values() if rule.area not in REMOTE_AREAS]
"""Servers at a URL are judged by requests and frames. tests/check/mutants_http has a server for each of their rules."""

FIRST: list[Case] = [
    case
    for area in AREAS
    if any(1 in rule.versions for rule in JUDGED if rule.area == area)
    for case in import_module(f"tests.check.judge.cases.{area.lower()}").CASES
]
CASES = [*FIRST, *version_2.CASES]


@each_row("case", CASES)
def test_breaking_conversation_breaks_only_its_rule(case: Case):
    court = judge(case.broken, RULES[case.rule].side)
    assert court.failures == []
    assert {(each.rule, each.verdict) for each in court.findings} == {(case.rule, case.verdict)}, court.findings
    assert all(each.entries and each.detail for each in court.findings)


@each_row("case", CASES)
def test_keeping_conversation_exercises_its_rule_without_findings(case: Case):
    court = judge(case.kept, RULES[case.rule].side)
    assert court.failures == []
    assert court.findings == []
    assert court.occasions[case.rule] > 0


def test_every_rule_has_a_case():
    assert sorted({case.rule for case in FIRST}) == sorted(rule.id for rule in JUDGED if 1 in rule.versions)
    assert sorted({case.rule for case in version_2.OWN}) == sorted(rule.id for rule in JUDGED if rule.versions == (2,))


@each_row("case", version_2.CASES)
def test_version_2_conversation_is_judged_by_version_2_rules(case: Case):
    court = judge(case.broken)
    assert court.version == 2
    assert all(2 in RULES[each.rule].versions for each in court.findings)


@each_row("case", CASES)
def test_side_that_is_not_judged_is_not_blamed(case: Case):
    other = "client" if RULES[case.rule].side == "agent" else "agent"
    assert all(RULES[each.rule].side == other for each in judge(case.broken, other).findings)
