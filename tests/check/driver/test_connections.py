"""Several connections to one agent at a time: what is seen on one of them may be ahead of another."""

import pytest

from dragoman.check import Conversation, Judge, Memory
from tests.check.judge.talking import Talk, ask, give, initialize, new

KEEPS = {"sessionCapabilities": {"list": {}}}
LISTED = {"sessions": [{"sessionId": "s1", "cwd": "/work/p"}]}


def judge_all(*talks: Talk) -> list[str]:
    memory = Memory()
    found: list[str] = []
    for talk in talks:
        judge = Judge(Conversation(), memory=memory)
        for number, row in enumerate(talk):
            judge.see(judge.conversation.add(row.side, row.line, number / 100, row.event))
        judge.end()
        found += [each.rule for each in judge.findings]
    return found


def test_a_session_that_a_list_shows_before_the_answer_to_session_new_is_seen_is_still_new():
    assert judge_all([*initialize(KEEPS), ask(1, "session/list"), give(1, LISTED)], [*initialize(KEEPS), *new()]) == []


@pytest.mark.parametrize("keeps", [KEEPS, {"loadSession": True}])
def test_an_id_that_was_given_on_another_connection_is_not_to_be_given_again(keeps):
    assert judge_all([*initialize(keeps), *new()], [*initialize(keeps), *new()]) == ["ACP-NEW-001"]
