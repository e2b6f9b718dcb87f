"""What agents of others do that looked like a breach until somebody read it: each was a false alarm of the matrix."""

from typing import get_args

import pytest

from dragoman.check.judge.foreign_names import V2_UPDATES
from dragoman.protocol.generated import v1, v2
from tests.check.judge.cases.config import choose, chosen, select
from tests.check.judge.talking import (
    Row,
    ask,
    ask_permission,
    cancel,
    chunk,
    end,
    event,
    give,
    initialize,
    judge,
    line,
    permit,
    progress,
    prompt,
    raw,
    refuse,
    session,
    tell,
    update,
)

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
HEARD = [ask("heard", "_heard", {"sessionId": "s1"}), refuse("heard", -32601)]


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


def test_an_agent_that_answers_with_version_2_names_its_logins_as_that_does():
    hello = [ask(1, "initialize", {"protocolVersion": 65_535, "clientCapabilities": {}})]
    logins = [{"methodId": name, "name": name, "type": "agent"} for name in ("key", "page")]
    told = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "authMethods": logins}
    assert found([*hello, give(1, told)]) == []


def test_an_agent_may_want_a_login_before_it_reads_params():
    offer = initialize(authMethods=[{"id": "login", "name": "Log in"}])
    assert found([*offer, ask(1, "session/new", {"cwd": 7}), refuse(1, -32000)]) == []


def test_an_agent_may_want_a_login_before_it_deletes():
    agent = {"sessionCapabilities": {"delete": {}}}
    offer = initialize(agent, authMethods=[{"id": "login", "name": "Log in"}])
    delete = ask(1, "session/delete", {"sessionId": "dragoman-invented-session"})
    assert found([*offer, delete, refuse(1, -32000)]) == []
    assert found([*offer, delete, refuse(1, -32603)]) == ["ACP-DELETE-002"]


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


HOME = event("agent", "started in /opt/agent")


def read_after(words: str, path: str = "/opt/agent/src/a.txt") -> list[str]:
    place = {"sessionId": "s1", "path": path}
    return found([HOME, *session(client=FILES), prompt(text=words), ask(70, "fs/read_text_file", place, "agent")])


@pytest.mark.parametrize(
    "words",
    [
        "Read /opt/agent/src/a.txt.",
        "What is in `/opt/agent/src`?",
        "See file:///opt/agent/src/a.txt",
        "All of /opt/agent, please",
    ],
)
def test_a_path_that_the_prompt_names_may_lie_where_the_agent_was_started(words: str):
    assert read_after(words) == ["ACP-NEW-006"]  # it is outside of the session's directory all the same


@pytest.mark.parametrize("words", ["Read a.txt.", "Read /opt/agent2/src/a.txt", "Read /opt/agent/docs", "Read /opt"])
def test_a_path_that_the_prompt_does_not_name_may_not(words: str):
    assert read_after(words) == ["ACP-NEW-005"]


def test_a_link_names_a_path_too():
    link = {"type": "resource_link", "name": "a", "uri": "file:///opt/agent/my%20files/a.txt"}
    place = {"sessionId": "s1", "path": "/opt/agent/my files/a.txt"}
    rows = [prompt(prompt=[link]), ask(70, "fs/read_text_file", place, "agent")]
    assert found([HOME, *session(client=FILES), *rows]) == ["ACP-NEW-006"]


def level(*values: str) -> dict[str, object]:
    return select(values[0], "level", options=[{"value": each, "name": each} for each in values])


def test_a_value_that_was_offered_before_may_still_be_taken():
    opened = session(configOptions=[select(), level("low", "high")])
    gone = [choose("slow"), chosen(select("slow"), level("none"))]
    kept = [choose("high", "level"), chosen(select("slow"), level("none"))]
    assert found([*opened, *gone, *kept]) == []
    assert found([*opened, *gone, choose("warp", "level"), chosen(select("slow"), level("none"))]) == ["ACP-CONFIG-009"]


def test_a_tool_call_that_is_first_heard_of_in_a_permission_request_is_one_mistake():
    asked = [*session(), prompt(), ask_permission(), permit()]
    assert found([*asked, progress(status="in_progress"), progress(status="completed"), end()]) == ["ACP-PERM-001"]
    assert found([*asked, progress("c2", "in_progress")]) == ["ACP-PERM-001", "ACP-TOOL-002"]


def test_a_line_that_is_not_text_may_end_a_peer_because_nobody_may_send_it():
    broken = [*session(), raw("client", b'{"jsonrpc":"2.0","method":"_\xff"}'), event("agent", "exited 1")]
    assert [(each.rule, each.verdict) for each in judge(broken, "agent").findings] == [("ACP-WIRE-012", "warn")]


def pairs(*rows: Row) -> list[tuple[int, ...]]:
    """Return the entries that prove answers to notifications, counted from the first row."""
    before = session()
    findings = judge([*before, *rows], "agent").findings
    assert {each.rule for each in findings} == {"ACP-WIRE-008"}
    return [tuple(n - len(before) - 1 for n in each.entries) for each in findings]


def complain(words: str) -> Row:
    return line("agent", {"id": None, "error": {"code": -32601, "message": words}})


def test_answers_to_notifications_are_shown_with_the_notification_that_they_answer():
    told = [tell("_one"), cancel(), tell("_two"), tell("_three")]
    assert pairs(*told, *[complain("no")] * 3) == [(0, 4), (2, 5), (3, 6)]
    assert pairs(*told, complain("no method _two"), complain("no")) == [(2, 4), (0, 5)]
    assert pairs(cancel(), complain("no")) == [(0, 1)]
    assert pairs(tell("a"), tell("$/a"), complain("no method $/a"), complain("no method a")) == [(1, 2), (0, 3)]


def verdicts(rows: list[Row]) -> set[tuple[str, str]]:
    return {(each.rule, each.verdict) for each in judge(rows, "agent", "client").findings}


def login(**fields: object) -> list[Row]:
    return initialize(authMethods=[{"id": "key", "name": "A key"} | fields])


MODELS = {"currentModelId": "small", "availableModels": []}
SET_MODEL = [ask(40, "session/set_model", {"sessionId": "s1", "modelId": "small"}), give(40)]


@pytest.mark.parametrize(
    ("rows", "rule", "advice"),
    [
        (session(models=MODELS), "ACP-EXT-001", "config option of the category model"),
        (login(type="env_var", vars=[{"name": "KEY"}]), "ACP-EXT-001", "the type terminal"),
        ([*session(), *SET_MODEL], "ACP-EXT-102", "use session/set_config_option"),
    ],
    ids=["models", "env_var", "session/set_model"],
)
def test_a_name_that_was_withdrawn_from_the_drafts_gets_a_warning_with_the_present_way(
    rows: list[Row], rule: str, advice: str
):
    assert verdicts(rows) == {(rule, "warn")}
    assert all(advice in each.detail for each in judge(rows, "agent", "client").findings)


def test_a_name_of_ones_own_is_no_withdrawn_one_because_it_is_called_alike():
    assert verdicts(login(type="magic", vars=[])) == {("ACP-EXT-001", "fail")}
    assert verdicts([*session(), update("session_info_update", title="a", models=MODELS)]) == {("ACP-EXT-001", "fail")}


def test_newer_kinds_of_updates_are_no_invention():
    client = {"session": {"notices": {}, "compaction": {}}}
    newer = [
        update("notice", severity="info", title="Trying again"),
        update("compaction_update", compactionId="k1", status="in_progress"),
        update("subagent_update", sessionId="s2"),
    ]
    assert verdicts([*session(client=client), prompt(), *newer, end()]) == set()


def test_names_of_version_2_are_told_as_such():
    of_v2 = [update("state_update", state="idle"), tell("tool_call/cancel", {"sessionId": "s1"})]
    assert verdicts([*session(), prompt(), *of_v2, end()]) == {("ACP-WIRE-021", "warn"), ("ACP-EXT-102", "warn")}
    assert verdicts([*session(), prompt(), update("mood_update"), end()]) == {("ACP-WIRE-021", "fail")}


def test_the_names_of_version_2_alone_are_those_of_its_types():
    of_v1 = {each.__struct_config__.tag for each in get_args(v1.SessionUpdate)}
    assert v2.SessionUpdate.tagged.keys() - of_v1 == V2_UPDATES
