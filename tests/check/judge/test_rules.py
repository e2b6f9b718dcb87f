"""Each rule with a conversation that breaks it, and no other, and one that keeps it."""

from importlib import import_module

import pytest

from dragoman.check import AREAS, RULES
from dragoman.check.rules import REMOTE_AREAS
from tests.check.judge.cases import version_2
from tests.check.judge.cases.case import Case
from tests.check.judge.talking import judge

JUDGED = [rule for rule in RULES.values() if rule.area not in REMOTE_AREAS]
"""Servers at a URL are judged by requests and frames: tests/check/mutants_http has a server for each of their rules."""

FIRST: list[Case] = [
    case
    for area in AREAS
    if any(1 in rule.versions for rule in JUDGED if rule.area == area)
    for case in import_module(f"tests.check.judge.cases.{area.lower()}").CASES
]
CASES = [*FIRST, *version_2.CASES]


def _name(case: Case) -> str:
    return f"{case.rule}-v2" if case in version_2.CASES else case.rule


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_conversation_that_breaks_a_rule_breaks_that_rule_alone(case: Case):
    court = judge(case.broken, RULES[case.rule].role)
    assert court.faults == []
    assert {(each.rule, each.verdict) for each in court.findings} == {(case.rule, case.verdict)}, court.findings
    assert all(each.entries and each.detail for each in court.findings)


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_conversation_that_keeps_a_rule_is_an_occasion_for_it_and_raises_no_alarm(case: Case):
    court = judge(case.kept, RULES[case.rule].role)
    assert court.faults == []
    assert court.findings == []
    assert court.occasions[case.rule] > 0


def test_every_rule_has_a_case():
    assert sorted({case.rule for case in FIRST}) == sorted(rule.id for rule in JUDGED if 1 in rule.versions)
    assert sorted({case.rule for case in version_2.OWN}) == sorted(rule.id for rule in JUDGED if rule.versions == (2,))


@pytest.mark.parametrize("case", version_2.CASES, ids=_name)
def test_a_conversation_of_version_2_is_judged_by_rules_of_version_2(case: Case):
    court = judge(case.broken)
    assert court.version == 2
    assert all(2 in RULES[each.rule].versions for each in court.findings)


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_side_that_is_not_judged_is_not_blamed(case: Case):
    other = "client" if RULES[case.rule].role == "agent" else "agent"
    assert all(RULES[each.rule].role == other for each in judge(case.broken, other).findings)
