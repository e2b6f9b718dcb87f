"""Answers that are late or missing, and the side at fault."""

import pytest

from dragoman.check import AgentMemory
from tests.check.judge import talking_v2
from tests.check.judge.cases import version_2
from tests.check.judge.talking import (
    Row,
    Talk,
    ask,
    cancel,
    chunk,
    event,
    initialize,
    judge,
    new,
    prompt,
    refuse,
    respond,
    session,
    turn,
)

HELLO = initialize()[0]
STARTED = event("agent", "started")
DIED = event("agent", "exited 1")
KEEPS = {"sessionCapabilities": {"list": {}, "delete": {}}}


def found(rows: Talk, memory: AgentMemory | None = None) -> list[str]:
    return [rule for rule, _ in weighed(rows, memory)]


def weighed(rows: Talk, memory: AgentMemory | None = None) -> list[tuple[str, str]]:
    court = judge(rows, "agent", memory=memory)
    assert court.failures == []
    return [(each.rule, each.verdict) for each in court.findings]


def test_answer_after_the_timeout_is_only_late():
    opened = [new()[0], event("agent", "waited 5", 5.0), new()[1]]
    assert found([*initialize(), *opened, *turn(chunk())]) == ["ACP-WIRE-011"]


def waiting(request: Row, timeout: str = "waited 5") -> Talk:
    return [request, event("agent", timeout, 5.0)]


LISTING = ask(30, "session/list")
ANOTHER = [ask(31, "session/list"), respond(31, {"sessions": []})]


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ([], "warn"),
        (ANOTHER, "fail"),
        ([respond(30, {"sessions": []})], "warn"),
        ([*ANOTHER, respond(30, {"sessions": []})], "warn"),
    ],
    ids=["nothing answered", "a later one answered", "answered late", "answered late, after a later one"],
)
def test_slow_agent_differs_from_a_forgetful_one(after: Talk, verdict: str):
    assert weighed([STARTED, *initialize(KEEPS), *waiting(LISTING), *after]) == [("ACP-WIRE-011", verdict)]


def test_slow_answer_warning_names_the_timeout_option():
    slow = judge([STARTED, *initialize(KEEPS), *waiting(LISTING)], "agent").findings
    assert [each.detail for each in slow] == [
        (
            "session/list got no answer from the agent in 5 s; if it only needs longer, use --answer-timeout or "
            "--turn-timeout"
        )
    ]


def test_agent_without_initialize_fails_unless_it_answered_before():
    memory = AgentMemory()
    assert weighed([STARTED, *waiting(HELLO)], memory) == [("ACP-WIRE-011", "fail")]
    weighed([STARTED, *initialize()], memory)
    assert weighed([STARTED, *waiting(HELLO)], memory) == [("ACP-WIRE-011", "warn")]


def test_closed_stdout_leaves_requests_unanswered():
    assert weighed([STARTED, *session(), prompt(), event("agent", "stdout closed")]) == [("ACP-WIRE-011", "fail")]


def test_second_answer_is_a_breach_even_if_late():
    opened = [new()[0], event("agent", "waited 5", 5.0), new()[1], new()[1]]
    assert found([*initialize(), *opened]) == ["ACP-WIRE-011", "ACP-WIRE-006"]


def test_exit_leaves_requests_unanswered():
    assert found([STARTED, *session(), prompt(), chunk(), DIED]) == ["ACP-WIRE-019", "ACP-WIRE-011"]


def test_exit_before_initialize_leaves_it_unanswered():
    assert found([STARTED, HELLO, DIED]) == ["ACP-WIRE-019", "ACP-INIT-001"]


@pytest.mark.parametrize("signal", [1, 2, 9, 15])
def test_agent_stopped_by_a_signal_is_not_blamed_for_open_requests(signal: int):
    assert found([STARTED, *session(), prompt(), event("agent", f"exited -{signal}")]) == ["ACP-WIRE-019"]


@pytest.mark.parametrize("first", [[], [*initialize()]], ids=["at once", "later"])
def test_exit_at_an_invalid_initialize_is_no_init_breach(first: list[Row]):
    wrong = ask(7, "initialize", {"protocolVersion": "1"})
    assert "ACP-INIT-001" not in found([STARTED, *first, wrong, DIED])
    assert found([STARTED, wrong, refuse(7, -32602), ask(8, "initialize", {}), DIED]) == []


def deleted(session_id: str) -> Talk:
    listed = {"sessions": [{"sessionId": session_id, "cwd": "/work/p"}]}
    delete = [ask(20, "session/delete", {"sessionId": session_id}), respond(20)]
    return [*delete, ask(21, "session/list"), respond(21, listed)]


def test_deleted_session_with_a_shared_id_may_be_listed():
    assert found([*initialize(KEEPS), *new(), *deleted("s1")]) == ["ACP-DELETE-001"]
    memory = AgentMemory()
    found([*initialize(KEEPS), *new()], memory)
    assert found([*initialize(KEEPS), *new(), *deleted("s1")], memory) == ["ACP-NEW-001"]


OVERDUE = [*version_2.BEGUN, event("agent", "waited 60"), cancel(), ask("heard", "_heard", {"sessionId": "s1"})]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([refuse("heard"), event("agent", "waited 5")], {("ACP-PROMPT-016", "warn"), ("ACP-PROMPT-016", "fail")}),
        ([refuse("heard"), talking_v2.idle("cancelled")], {("ACP-PROMPT-016", "warn")}),
        ([event("agent", "waited 5")], {("ACP-PROMPT-016", "warn"), ("ACP-CANCEL-004", "fail")}),
        (
            [refuse("heard"), talking_v2.message("still", "m9"), event("agent", "waited 5")],
            {("ACP-PROMPT-016", "warn"), ("ACP-CANCEL-004", "fail")},
        ),
    ],
    ids=["never idle", "slow", "hangs", "ignores the cancel"],
)
def test_overdue_work_is_judged_by_its_cancel(rows: Talk, found: set[tuple[str, str]]):
    findings = judge([*OVERDUE, *rows], "agent").findings
    assert {(each.rule, each.verdict) for each in findings if each.rule != "ACP-WIRE-011"} == found
