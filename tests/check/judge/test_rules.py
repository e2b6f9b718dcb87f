"""Each rule with a conversation that breaks it, and no other, and one that keeps it."""

from importlib import import_module

import pytest

from dragoman.check import AREAS, RULES
from tests.check.judge.cases.case import Case
from tests.check.judge.talking import judge

CASES: list[Case] = [case for area in AREAS for case in import_module(f"tests.check.judge.cases.{area.lower()}").CASES]


def _name(case: Case) -> str:
    return case.rule


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
    assert sorted({case.rule for case in CASES}) == sorted(RULES)


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_side_that_is_not_judged_is_not_blamed(case: Case):
    other = "client" if RULES[case.rule].role == "agent" else "agent"
    assert all(RULES[each.rule].role == other for each in judge(case.broken, other).findings)
