"""Replays of conversations that were seen: what may be otherwise in them, and what has to be there."""

import pytest

from dragoman.check import Memory
from tests.check.judge.cases.load import ABLE, load
from tests.check.judge.talking import (
    Row,
    Talk,
    ask,
    call,
    chunk,
    end,
    give,
    initialize,
    judge,
    new,
    progress,
    prompt,
    refuse,
    session,
    turn,
    update,
)

SAID = "One two three. "
TOLD = "Four five six."
CONVERSATION: Talk = [
    *session(ABLE),
    *turn(chunk(SAID), call("c1"), progress("c1", "completed"), chunk(TOLD), text="Count to six."),
    *turn(chunk("Done."), id_=3, text="Thank you."),
]
USER = [chunk("Count to six.", "user_message_chunk"), chunk("Thank you.", "user_message_chunk")]
CALL = call("c1", status="completed")
WHOLE = [USER[0], chunk(SAID), CALL, chunk(TOLD), USER[1], chunk("Done.")]


def found(*replayed: Row, before: Talk = CONVERSATION) -> list[str]:
    court = judge([*before, load(), *replayed, give(9)], "agent")
    assert court.faults == []
    return [each.rule for each in court.findings]


def letters(text: str, kind: str = "agent_message_chunk") -> list[Row]:
    return [chunk(each, kind) for each in text]


@pytest.mark.parametrize(
    "replayed",
    [
        WHOLE,
        [USER[0], *letters(SAID), CALL, *letters(TOLD), *letters("Thank you.", "user_message_chunk"), chunk("Done.")],
        [USER[0], CALL, chunk(SAID + TOLD), USER[1], chunk("Done.")],
        [USER[0], chunk(" One two three.\n\n"), CALL, chunk("\tFour five  six."), USER[1], chunk("Done.")],
        [USER[0], chunk(SAID), call("other", status="completed"), chunk(TOLD), USER[1], chunk("Done.")],
        [chunk("<asked>", "user_message_chunk"), CALL, chunk("<counted>"), chunk("<done>")],
        [update("plan", entries=[]), *WHOLE],
    ],
    ids=["whole", "in other pieces", "merged", "other spaces", "other ids", "other words", "with more"],
)
def test_a_replay_may_have_another_form(replayed: list[Row]):
    assert found(*replayed) == []


@pytest.mark.parametrize(
    "replayed",
    [
        WHOLE[:4],
        [each for each in WHOLE if each != CALL],
        [each for each in WHOLE if each != chunk(TOLD)],
        [each for each in WHOLE if each != USER[1]],
        [USER[0], chunk("One two"), CALL, USER[1]],
    ],
    ids=["its end", "a tool call", "some of a turn", "a prompt", "the rest of a message"],
)
def test_what_a_replay_lacks_is_found(replayed: list[Row]):
    assert set(found(*replayed)) == {"ACP-LOAD-006"}


def test_what_was_said_twice_is_replayed_twice():
    again = [*CONVERSATION, *turn(chunk("Done."), id_=4, text="Thank you.")]
    assert found(*WHOLE, before=again) == ["ACP-LOAD-006", "ACP-LOAD-006"]
    assert found(*WHOLE, USER[1], chunk("Done."), before=again) == []


@pytest.mark.parametrize("reason", ["cancelled", "refusal"])
def test_a_turn_that_was_cut_short_need_not_come_back(reason: str):
    cut = [prompt(4, text="Go on."), chunk("Well"), call("c2"), progress("c2", "completed"), end(4, reason)]
    assert "ACP-LOAD-006" not in found(*WHOLE, before=[*CONVERSATION, *cut])


def test_an_agent_that_spoke_first_does_so_in_the_replay():
    greeted = [*session(ABLE), chunk("Welcome."), *turn(chunk("Yes."), text="Are you there?")]
    assert found(chunk("Welcome."), chunk("Are you there?", "user_message_chunk"), chunk("Yes."), before=greeted) == []


def test_a_replay_that_comes_late_is_that_and_nothing_else():
    shows = call("c2", content=[{"type": "terminal", "terminalId": "of another connection"}])
    rows = [*CONVERSATION, load(), *WHOLE, give(9), shows]
    assert [each.rule for each in judge(rows, "agent").findings] == ["ACP-LOAD-002"]


def test_what_an_id_that_was_given_twice_brings_back_is_not_told_from_the_other_session():
    twice = [*CONVERSATION, *new(id_=5)]
    assert found(before=twice) == found(*WHOLE[:2], before=twice) == ["ACP-NEW-001"]


PROMPTED = [*session(ABLE), *turn(chunk("four"))]
AGAIN = initialize(ABLE | {"sessionCapabilities": {"resume": {}}})


def refused(*before: Talk, code: int = -32603, method: str = "session/load", **params: str) -> list[tuple[str, str]]:
    """Refuse a load or a resume on a new connection, after a conversation on another one."""
    memory = Memory()
    for talk in before:
        judge(talk, "agent", memory=memory)
    given = {"sessionId": "s1", "cwd": "/work/p", "mcpServers": []} | params
    court = judge([*AGAIN, ask(9, method, given), refuse(9, code)], "agent", memory=memory)
    assert court.faults == []
    return [(each.rule, each.verdict) for each in court.findings]


@pytest.mark.parametrize(("method", "rule"), [("session/load", "ACP-LOAD-007"), ("session/resume", "ACP-RESUME-003")])
def test_an_agent_that_cannot_open_its_own_session_again_fails(method: str, rule: str):
    assert refused(PROMPTED, method=method) == [(rule, "fail")]


@pytest.mark.parametrize(
    ("before", "code", "params"),
    [
        (session(ABLE), -32603, {}),
        ([*session(ABLE), prompt(), refuse(2)], -32603, {}),
        (PROMPTED, -32000, {}),
        (PROMPTED, -32603, {"cwd": "/elsewhere"}),
        (PROMPTED, -32603, {"sessionId": "s7"}),
        ([*PROMPTED, ask(8, "session/delete", {"sessionId": "s1"}), give(8)], -32603, {}),
    ],
    ids=["never prompted", "prompt failed", "login needed", "another directory", "of somebody else", "deleted"],
)
def test_a_load_or_a_resume_may_be_refused_for_a_reason(before: Talk, code: int, params: dict[str, str]):
    assert refused(before, code=code, **params) == []
    assert refused(before, code=code, method="session/resume", **params) == []
