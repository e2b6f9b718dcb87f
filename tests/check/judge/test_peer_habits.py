"""What agents of others do that looked like a breach until somebody read it: each was a false alarm of the matrix."""

import pytest

from tests.check.judge.talking import (
    Row,
    ask,
    cancel,
    chunk,
    end,
    event,
    give,
    initialize,
    judge,
    line,
    prompt,
    refuse,
    session,
)

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
HEARD = [ask("heard", "_heard"), refuse("heard", -32601)]


def found(rows: list[Row]) -> list[str]:
    return [each.rule for each in judge(rows, "agent").findings]


def test_a_queued_prompt_may_run_after_the_turn_before_it_was_cancelled():
    queued = [*session(), prompt(2), prompt(3), cancel(), *HEARD, end(2, "cancelled"), chunk(), end(3)]
    assert found(queued) == []


def test_a_prompt_that_is_alone_ends_as_cancelled():
    assert found([*session(), prompt(2), cancel(), *HEARD, end(2)]) == ["ACP-CANCEL-001"]


@pytest.mark.parametrize(("reason", "rules"), [("refusal", []), ("end_turn", ["ACP-PROMPT-002"])])
def test_a_prompt_for_an_unknown_session_may_be_refused_by_its_stop_reason(reason: str, rules: list[str]):
    assert found([*initialize(), prompt(2, "nobody"), end(2, reason)]) == rules


def test_an_agent_that_answers_with_version_2_says_its_name_as_that_has_it():
    hello = [ask(1, "initialize", {"protocolVersion": 65_535, "clientCapabilities": {}})]
    assert found([*hello, give(1, {"protocolVersion": 2, "info": {"name": "a", "version": "1"}})]) == []


def test_an_agent_that_has_refused_hello_may_leave():
    hello = [ask(1, "initialize", {"protocolVersion": "1"})]
    assert found([event("agent", "started"), *hello, refuse(1, -32602), event("agent", "exited 0")]) == []


def test_an_agent_that_has_agreed_on_a_version_stays():
    assert found([event("agent", "started"), *initialize(), event("agent", "exited 0")]) == ["ACP-WIRE-019"]


@pytest.mark.parametrize(("words", "rules"), [("Permission denied", []), ("no such file", ["ACP-FS-101"])])
def test_a_file_that_was_written_may_be_kept_from_the_agent_later(words: str, rules: list[str]):
    place = {"sessionId": "s1", "path": "/work/p/a"}
    written = [ask(71, "fs/write_text_file", {**place, "content": "x"}, "agent"), give(71, {}, "client")]
    refused = line("client", {"id": 72, "error": {"code": -32603, "message": words}})
    talk = [*session(client=FILES), prompt(2), *written, ask(72, "fs/read_text_file", place, "agent"), refused]
    assert [each.rule for each in judge([*talk, end(2)], "client").findings] == rules


def test_of_several_kinds_that_were_refused_together_the_one_is_blamed_that_was_refused_by_itself():
    link = {"type": "resource_link", "name": "a", "uri": "file:///a"}
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    seeing = session({"promptCapabilities": {"image": True}})
    together = [prompt(2, prompt=[link, image]), refuse(2, -32602)]
    assert found([*seeing, *together]) == ["ACP-PROMPT-008"]
    assert set(found([*seeing, *together, prompt(3, prompt=[link]), refuse(3, -32602)])) == {"ACP-PROMPT-003"}
