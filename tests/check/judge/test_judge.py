"""The judge itself: findings, limits, and its own errors."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.check import RULES, Judge, RecordedConversation, make_report
from dragoman.check.judge.judge import MAX_PER_RULE
from dragoman.check.judge.message import SeenMessage
from dragoman.check.judge.observer import watch
from dragoman.check.judge.prompt_turn import PromptObserver
from dragoman.check.results import conclude
from dragoman.check.rules import REMOTE_AREAS
from tests.check.judge import talking_v2
from tests.check.judge.cases.case import Case
from tests.check.judge.talking import (
    cancel,
    chunk,
    end,
    initialize,
    judge,
    new,
    progress,
    prompt,
    raw,
    respond,
    session,
    turn,
    update,
)
from tests.check.judge.test_rules import CASES


def test_finding_is_returned_with_its_entry():
    conversation = RecordedConversation()
    court = Judge(conversation)
    assert court.see(conversation.add("agent", chunk().line)) == []
    (finding,) = court.see(conversation.add("agent", b"oops"))
    assert (finding.rule, finding.entries) == ("ACP-WIRE-001", (2,))
    assert court.findings == [finding]


def test_streamed_text_counts_as_an_occasion():
    few = judge([*session(), *turn(chunk())])
    many = judge([*session(), *turn(*[chunk()] * 50)])
    for rule in ("ACP-WIRE-001", "ACP-WIRE-004", "ACP-WIRE-020", "ACP-WIRE-021", "ACP-EXT-001", "ACP-CONTENT-001"):
        assert many.occasions[rule] - few.occasions[rule] == 49, rule


@pytest.mark.parametrize("text", ["plain", "with ü", "\u2028"])
def test_flaw_within_streamed_text_is_found(text):
    odd = update("agent_message_chunk", content={"type": "text", "text": text, "mood": "good"})
    found = judge([*session(), *turn(chunk(text), chunk(text), odd, chunk(text))]).findings
    assert [each.rule for each in found] == ["ACP-EXT-001"]


def test_late_text_is_found_after_much_streamed_text():
    found = judge([*session(), *turn(*[chunk()] * 5), chunk()]).findings
    assert [each.rule for each in found] == ["ACP-PROMPT-004"]
    found = judge([*session(), prompt(), *[chunk()] * 5, cancel(), chunk(), end(2, "cancelled"), chunk()]).findings
    assert [each.rule for each in found] == ["ACP-CANCEL-003"]


def test_findings_per_rule_are_limited():
    court = judge([*session(), *[raw("agent", "oops")] * (MAX_PER_RULE + 50)])
    assert len(court.findings) == MAX_PER_RULE


def test_conversation_can_keep_only_the_latest_entries():
    conversation = RecordedConversation(max_entries=10)
    for _ in range(100):
        conversation.add("agent", b"{}")
    assert len(conversation.entries) <= 20
    assert conversation.find(1) is None
    last = conversation.find(100)
    assert last is not None
    assert last.n == 100
    assert conversation.find(101) is None


def test_checker_error_is_not_a_verdict(monkeypatch):
    @watch("request session/prompt")
    def stumble(self: PromptObserver, message: SeenMessage) -> None:
        raise KeyError(message.method)

    monkeypatch.setattr(PromptObserver, "on_prompt", stumble)
    court = judge([*session(), *turn(chunk())])
    assert [fault.area for fault in court.failures] == ["PROMPT"]
    results = {each.id: each for each in conclude([court], "agent")}
    assert results["ACP-PROMPT-001"].verdict == "error"
    assert results["ACP-INIT-001"].verdict == "pass"
    assert make_report([court], "agent").exit_code() == 2


def test_results_cover_all_conversations():
    clean, broken = judge([*session(), *turn(chunk())]), judge([*session(), raw("agent", "oops"), raw("agent", "ow")])
    results = {each.id: each for each in conclude([clean, broken], "agent")}
    judged = [rule for rule in RULES.values() if rule.side == "agent" and rule.area not in REMOTE_AREAS]
    assert set(results) == {rule.id for rule in judged if 1 in rule.versions}
    wrong = results["ACP-WIRE-001"]
    assert (wrong.verdict, wrong.level, wrong.clause) == ("fail", "must", "transports#stdio")
    assert [each.line for each in wrong.evidence] == ["oops", "ow"]
    assert wrong.detail.endswith("(and 1 more)")
    assert wrong.fix
    assert results["ACP-PROMPT-001"].verdict == "pass"
    idle = results["ACP-LOAD-001"]
    assert idle.verdict == "not_exercised"
    assert idle.detail.startswith("needed: session/load")


def test_each_protocol_version_has_its_own_results():
    first, second = judge([*session(), raw("agent", "oops")]), judge([*talking_v2.session(), *talking_v2.turn()])
    found = make_report([first, second], "agent")
    verdicts = {each.key: each.verdict for each in found.results}
    assert found.protocols == [1, 2]
    assert (verdicts["ACP-WIRE-001"], verdicts["ACP-WIRE-001@2"]) == ("fail", "pass")
    assert "ACP-MODE-001@2" not in verdicts
    assert "ACP-PROMPT-011" not in verdicts
    assert verdicts["ACP-PROMPT-011@2"] == "pass"


@pytest.mark.parametrize("answered", [1, 2])
def test_client_is_judged_by_the_agreed_version(answered):
    hello, _ = talking_v2.initialize()
    court = judge(
        [hello, respond("i", {"protocolVersion": answered, "agentInfo": talking_v2.INFO, "info": talking_v2.INFO})]
    )
    assert court.version == answered
    assert court.findings == []


def test_agent_answering_a_higher_version_is_judged_by_the_requested_one():
    hello, _ = initialize()
    court = judge([hello, respond("i", {"protocolVersion": 2, "capabilities": {}, "info": talking_v2.INFO})], "agent")
    assert court.version == 1
    assert [each.rule for each in court.findings] == ["ACP-INIT-010"]


def test_version_2_text_takes_the_fast_path_per_message():
    pieces = [talking_v2.chunk(each) for each in ["several", "words", "in", "pieces"]]
    court = judge([*talking_v2.session(), *talking_v2.turn(*pieces, talking_v2.chunk("x", "u1"))])
    assert [each.rule for each in court.findings] == ["ACP-MSG-002"]
    assert court.state.sessions["s1"].last.said == ["wordsinpieces"]


def test_exit_code_depends_on_the_level():
    should = judge([*session(), *turn(progress(status="in_progress"))])
    must = judge([*session(), raw("agent", "oops")])
    disputed = judge([*session(), *turn(chunk()), chunk()])
    assert [make_report([each], "agent").exit_code() for each in (should, must, disputed)] == [1, 1, 0]
    assert [make_report([each], "agent").exit_code("must") for each in (should, must, disputed)] == [0, 1, 0]
    assert make_report([disputed], "agent").summary.warn == 1


def _values(rows):
    return [json.loads(row.line) for row in rows if row.line.startswith(b"{")]


def _paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _paths(each, (*path, index))


def _put(value, path, other):
    if not path:
        return other
    head, *rest = path
    if isinstance(value, dict):
        return {**value, head: _put(value[head], rest, other)}
    return [_put(each, rest, other) if index == head else each for index, each in enumerate(value)]


odd_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=st.sampled_from(CASES), data=st.data())
def test_mutated_messages_do_not_break_the_checker(case: Case, data: st.DataObject):
    rows = [*case.broken, *case.kept]
    which = data.draw(st.integers(0, len(rows) - 1))
    row = rows[which]
    if row.line.startswith(b"{"):
        try:
            value = json.loads(row.line)
        except ValueError:
            value = {}
        path = data.draw(st.sampled_from(list(_paths(value))))
        line = json.dumps(_put(value, path, data.draw(odd_values))).encode()
        rows[which] = row._replace(line=line)
    court = judge(rows)
    assert court.failures == []
    assert court.occasions is not None


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_at_worst_noise(lines: list[bytes]):
    court = judge([*initialize(), *new(), *(raw("agent", line) for line in lines), *turn(chunk())], "agent")
    assert court.failures == []
    # Any bytes may be a response without a request.
    known = {"ACP-WIRE-001", "ACP-WIRE-002", "ACP-WIRE-003", "ACP-WIRE-004", "ACP-WIRE-006"}
    assert {each.rule for each in court.findings} <= known
