"""Several concurrent connections to one agent. Messages on one may be ahead of another."""

import pytest

from dragoman.check import AgentMemory, Judge, RecordedConversation
from tests.check.judge.talking import Talk, ask, initialize, new, respond

KEEPS = {"sessionCapabilities": {"list": {}}}
LISTED = {"sessions": [{"sessionId": "s1", "cwd": "/work/p"}]}


def judge_all(*talks: Talk) -> list[str]:
    memory = AgentMemory()
    found: list[str] = []
    for talk in talks:
        judge = Judge(RecordedConversation(), memory=memory)
        for number, row in enumerate(talk):
            judge.see(judge.conversation.add(row.side, row.line, number / 100, row.event))
        judge.end()
        found += [each.rule for each in judge.findings]
    return found


def test_session_listed_before_its_response_is_still_new():
    assert (
        judge_all([*initialize(KEEPS), ask(1, "session/list"), respond(1, LISTED)], [*initialize(KEEPS), *new()]) == []
    )


@pytest.mark.parametrize("keeps", [KEEPS, {"loadSession": True}])
def test_session_id_of_another_connection_must_not_be_reused(keeps):
    assert judge_all([*initialize(keeps), *new()], [*initialize(keeps), *new()]) == ["ACP-NEW-001"]
