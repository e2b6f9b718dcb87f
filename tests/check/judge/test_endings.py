"""Answers that come too late or never, and whose fault that is."""

import pytest

from dragoman.check import Memory
from tests.check.judge.talking import (
    Row,
    Talk,
    ask,
    chunk,
    event,
    give,
    initialize,
    judge,
    new,
    prompt,
    refuse,
    session,
    turn,
)

HELLO = initialize()[0]
STARTED = event("agent", "started")
DIED = event("agent", "exited 1")
KEEPS = {"sessionCapabilities": {"list": {}, "delete": {}}}


def found(rows: Talk, memory: Memory | None = None) -> list[str]:
    return [rule for rule, _ in weighed(rows, memory)]


def weighed(rows: Talk, memory: Memory | None = None) -> list[tuple[str, str]]:
    court = judge(rows, "agent", memory=memory)
    assert court.faults == []
    return [(each.rule, each.verdict) for each in court.findings]


def test_an_answer_that_we_no_longer_waited_for_is_late_and_no_more():
    opened = [new()[0], event("agent", "waited 5", 5.0), new()[1]]
    assert found([*initialize(), *opened, *turn(chunk())]) == ["ACP-WIRE-011"]


def waiting(request: Row, timeout: str = "waited 5") -> Talk:
    return [request, event("agent", timeout, 5.0)]


LISTING = ask(30, "session/list")
ANOTHER = [ask(31, "session/list"), give(31, {"sessions": []})]


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ([], "warn"),
        (ANOTHER, "fail"),
        ([give(30, {"sessions": []})], "warn"),
        ([*ANOTHER, give(30, {"sessions": []})], "warn"),
    ],
    ids=["nothing answered", "a later one answered", "answered late", "answered late, after a later one"],
)
def test_an_agent_that_is_slow_is_told_from_one_that_forgets(after: Talk, verdict: str):
    assert weighed([STARTED, *initialize(KEEPS), *waiting(LISTING), *after]) == [("ACP-WIRE-011", verdict)]


def test_a_warning_about_a_slow_answer_names_the_option_that_gives_it_longer():
    slow = judge([STARTED, *initialize(KEEPS), *waiting(LISTING)], "agent").findings
    assert [each.detail for each in slow] == [
        "session/list got no answer from the agent in 5 s; if it only needs longer, give it --timeout or --turn-timeout"
    ]


def test_an_agent_that_says_no_hello_fails_unless_it_said_it_before():
    memory = Memory()
    assert weighed([STARTED, *waiting(HELLO)], memory) == [("ACP-WIRE-011", "fail")]
    weighed([STARTED, *initialize()], memory)
    assert weighed([STARTED, *waiting(HELLO)], memory) == [("ACP-WIRE-011", "warn")]


def test_an_agent_that_closes_its_stdout_has_not_answered():
    assert weighed([STARTED, *session(), prompt(), event("agent", "stdout closed")]) == [("ACP-WIRE-011", "fail")]


def test_an_answer_that_comes_twice_is_one_too_many_however_late():
    opened = [new()[0], event("agent", "waited 5", 5.0), new()[1], new()[1]]
    assert found([*initialize(), *opened]) == ["ACP-WIRE-011", "ACP-WIRE-006"]


def test_an_agent_that_dies_leaves_its_requests_unanswered():
    assert found([STARTED, *session(), prompt(), chunk(), DIED]) == ["ACP-WIRE-019", "ACP-WIRE-011"]


def test_an_agent_that_dies_before_it_has_said_hello_has_not_answered_that():
    assert found([STARTED, HELLO, DIED]) == ["ACP-WIRE-019", "ACP-INIT-001"]


@pytest.mark.parametrize("signal", [1, 2, 9, 15])
def test_an_agent_that_was_sent_away_is_not_blamed_for_what_it_left_open(signal: int):
    assert found([STARTED, *session(), prompt(), event("agent", f"exited -{signal}")]) == ["ACP-WIRE-019"]


@pytest.mark.parametrize("first", [[], [*initialize()]], ids=["at once", "later"])
def test_an_agent_that_leaves_at_a_hello_of_a_wrong_shape_owes_it_no_version(first: list[Row]):
    wrong = ask(7, "initialize", {"protocolVersion": "1"})
    assert "ACP-INIT-001" not in found([STARTED, *first, wrong, DIED])
    assert found([STARTED, wrong, refuse(7, -32602), ask(8, "initialize", {}), DIED]) == []


def deleted(session_id: str) -> Talk:
    listed = {"sessions": [{"sessionId": session_id, "cwd": "/work/p"}]}
    delete = [ask(20, "session/delete", {"sessionId": session_id}), give(20)]
    return [*delete, ask(21, "session/list"), give(21, listed)]


def test_a_deleted_session_whose_id_was_given_twice_may_be_listed_for_the_other_one():
    assert found([*initialize(KEEPS), *new(), *deleted("s1")]) == ["ACP-DELETE-001"]
    memory = Memory()
    found([*initialize(KEEPS), *new()], memory)
    assert found([*initialize(KEEPS), *new(), *deleted("s1")], memory) == ["ACP-NEW-001"]
