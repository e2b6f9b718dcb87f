"""Replays of observed conversations: allowed differences and required content."""

import pytest

from dragoman.check import AgentMemory
from tests.check.judge.cases.load import ABLE, load
from tests.check.judge.talking import (
    Row,
    Talk,
    ask,
    call,
    chunk,
    end,
    initialize,
    judge,
    new,
    progress,
    prompt,
    refuse,
    respond,
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
    court = judge([*before, load(), *replayed, respond(9)], "agent")
    assert court.failures == []
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
def test_replay_may_have_another_form(replayed: list[Row]):
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
def test_missing_parts_of_a_replay_are_found(replayed: list[Row]):
    assert set(found(*replayed)) == {"ACP-LOAD-006"}


def test_repeated_texts_are_replayed_twice():
    again = [*CONVERSATION, *turn(chunk("Done."), id_=4, text="Thank you.")]
    assert found(*WHOLE, before=again) == ["ACP-LOAD-006", "ACP-LOAD-006"]
    assert found(*WHOLE, USER[1], chunk("Done."), before=again) == []


@pytest.mark.parametrize("reason", ["cancelled", "refusal"])
def test_interrupted_turn_need_not_be_replayed(reason: str):
    cut = [prompt(4, text="Go on."), chunk("Well"), call("c2"), progress("c2", "completed"), end(4, reason)]
    assert "ACP-LOAD-006" not in found(*WHOLE, before=[*CONVERSATION, *cut])


def test_agent_that_spoke_first_does_so_in_the_replay():
    greeted = [*session(ABLE), chunk("Welcome."), *turn(chunk("Yes."), text="Are you there?")]
    assert found(chunk("Welcome."), chunk("Are you there?", "user_message_chunk"), chunk("Yes."), before=greeted) == []


def test_late_replay_is_one_breach():
    shows = call("c2", content=[{"type": "terminal", "terminalId": "of another connection"}])
    rows = [*CONVERSATION, load(), *WHOLE, respond(9), shows]
    assert [each.rule for each in judge(rows, "agent").findings] == ["ACP-LOAD-002"]


def test_replay_of_a_shared_session_id_is_not_judged():
    twice = [*CONVERSATION, *new(id_=5)]
    assert found(before=twice) == found(*WHOLE[:2], before=twice) == ["ACP-NEW-001"]


PROMPTED = [*session(ABLE), *turn(chunk("four"))]
AGAIN = initialize(ABLE | {"sessionCapabilities": {"resume": {}}})


def refused(*before: Talk, code: int = -32603, method: str = "session/load", **params: str) -> list[tuple[str, str]]:
    """Refuse a load or a resume on a new connection, after a conversation on another one."""
    memory = AgentMemory()
    for talk in before:
        judge(talk, "agent", memory=memory)
    given = {"sessionId": "s1", "cwd": "/work/p", "mcpServers": []} | params
    court = judge([*AGAIN, ask(9, method, given), refuse(9, code)], "agent", memory=memory)
    assert court.failures == []
    return [(each.rule, each.verdict) for each in court.findings]


@pytest.mark.parametrize(("method", "rule"), [("session/load", "ACP-LOAD-007"), ("session/resume", "ACP-RESUME-003")])
def test_agent_that_cannot_reopen_its_session_fails(method: str, rule: str):
    assert refused(PROMPTED, method=method) == [(rule, "fail")]


@pytest.mark.parametrize(
    ("before", "code", "params"),
    [
        (session(ABLE), -32603, {}),
        ([*session(ABLE), prompt(), refuse(2)], -32603, {}),
        (PROMPTED, -32000, {}),
        (PROMPTED, -32603, {"cwd": "/elsewhere"}),
        (PROMPTED, -32603, {"sessionId": "s7"}),
        ([*PROMPTED, ask(8, "session/delete", {"sessionId": "s1"}), respond(8)], -32603, {}),
    ],
    ids=["never prompted", "prompt failed", "login needed", "another directory", "of somebody else", "deleted"],
)
def test_load_or_resume_may_be_refused_for_a_reason(before: Talk, code: int, params: dict[str, str]):
    assert refused(before, code=code, **params) == []
    assert refused(before, code=code, method="session/resume", **params) == []
