"""Habits of real agents that looked like breaches. Each was a false alarm in the matrix."""

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
    initialize,
    judge,
    line,
    notify,
    permit,
    progress,
    prompt,
    raw,
    refuse,
    respond,
    session,
    update,
)

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
HEARD = [ask("heard", "_heard", {"sessionId": "s1"}), refuse("heard", -32601)]


def found(rows: list[Row]) -> list[str]:
    return [each.rule for each in judge(rows, "agent").findings]


def test_queued_prompt_may_run_after_a_cancelled_turn():
    queued = [*session(), prompt(2), prompt(3), cancel(), *HEARD, end(2, "cancelled"), chunk(), end(3)]
    assert found(queued) == []


def test_single_cancelled_prompt_ends_as_cancelled():
    assert found([*session(), prompt(2), cancel(), *HEARD, end(2)]) == ["ACP-CANCEL-001"]


@pytest.mark.parametrize(("reason", "rules"), [("refusal", []), ("end_turn", ["ACP-PROMPT-002"])])
def test_unknown_session_may_be_refused_by_stop_reason(reason: str, rules: list[str]):
    assert found([*initialize(), prompt(2, "nobody"), end(2, reason)]) == rules


def test_version_2_answer_names_the_agent_as_in_version_2():
    hello = [ask(1, "initialize", {"protocolVersion": 65_535, "clientCapabilities": {}})]
    assert found([*hello, respond(1, {"protocolVersion": 2, "info": {"name": "a", "version": "1"}})]) == []


def test_version_2_answer_names_logins_as_in_version_2():
    hello = [ask(1, "initialize", {"protocolVersion": 65_535, "clientCapabilities": {}})]
    logins = [{"methodId": name, "name": name, "type": "agent"} for name in ("key", "page")]
    version_2 = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "authMethods": logins}
    assert found([*hello, respond(1, version_2)]) == []


def test_login_may_be_required_before_params_are_read():
    offer = initialize(authMethods=[{"id": "login", "name": "Log in"}])
    assert found([*offer, ask(1, "session/new", {"cwd": 7}), refuse(1, -32000)]) == []


def test_login_may_be_required_before_a_delete():
    agent = {"sessionCapabilities": {"delete": {}}}
    offer = initialize(agent, authMethods=[{"id": "login", "name": "Log in"}])
    delete = ask(1, "session/delete", {"sessionId": "dragoman-invented-session"})
    assert found([*offer, delete, refuse(1, -32000)]) == []
    assert found([*offer, delete, refuse(1, -32603)]) == ["ACP-DELETE-002"]


def test_agent_that_refused_initialize_may_exit():
    hello = [ask(1, "initialize", {"protocolVersion": "1"})]
    assert found([event("agent", "started"), *hello, refuse(1, -32602), event("agent", "exited 0")]) == []


def test_agent_that_agreed_on_a_version_must_stay():
    assert found([event("agent", "started"), *initialize(), event("agent", "exited 0")]) == ["ACP-WIRE-019"]


@pytest.mark.parametrize(("words", "rules"), [("Permission denied", []), ("no such file", ["ACP-FS-101"])])
def test_written_file_may_be_denied_later(words: str, rules: list[str]):
    place = {"sessionId": "s1", "path": "/work/p/a"}
    written = [ask(71, "fs/write_text_file", {**place, "content": "x"}, "agent"), respond(71, {}, "client")]
    refused = line("client", {"id": 72, "error": {"code": -32603, "message": words}})
    talk = [*session(client=FILES), prompt(2), *written, ask(72, "fs/read_text_file", place, "agent"), refused]
    assert [each.rule for each in judge([*talk, end(2)], "client").findings] == rules


def test_separately_refused_content_type_is_blamed():
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
def test_path_in_the_prompt_may_be_in_the_start_directory(words: str):
    assert read_after(words) == ["ACP-NEW-006"]  # the path is still outside the session's directory


@pytest.mark.parametrize("words", ["Read a.txt.", "Read /opt/agent2/src/a.txt", "Read /opt/agent/docs", "Read /opt"])
def test_other_path_must_not_be_in_the_start_directory(words: str):
    assert read_after(words) == ["ACP-NEW-005"]


def test_link_names_a_path():
    link = {"type": "resource_link", "name": "a", "uri": "file:///opt/agent/my%20files/a.txt"}
    place = {"sessionId": "s1", "path": "/opt/agent/my files/a.txt"}
    rows = [prompt(prompt=[link]), ask(70, "fs/read_text_file", place, "agent")]
    assert found([HOME, *session(client=FILES), *rows]) == ["ACP-NEW-006"]


def level(*values: str) -> dict[str, object]:
    return select(values[0], "level", options=[{"value": each, "name": each} for each in values])


def test_previously_offered_value_may_still_be_accepted():
    opened = session(configOptions=[select(), level("low", "high")])
    gone = [choose("slow"), chosen(select("slow"), level("none"))]
    kept = [choose("high", "level"), chosen(select("slow"), level("none"))]
    assert found([*opened, *gone, *kept]) == []
    assert found([*opened, *gone, choose("warp", "level"), chosen(select("slow"), level("none"))]) == ["ACP-CONFIG-009"]


def test_unannounced_tool_call_in_a_permission_request_is_one_breach():
    asked = [*session(), prompt(), ask_permission(), permit()]
    assert found([*asked, progress(status="in_progress"), progress(status="completed"), end()]) == ["ACP-PERM-001"]
    assert found([*asked, progress("c2", "in_progress")]) == ["ACP-PERM-001", "ACP-TOOL-002"]


def test_exit_after_invalid_utf_8_is_only_a_warning():
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


def test_answered_notification_is_shown_with_its_answer():
    version_2 = [notify("_one"), cancel(), notify("_two"), notify("_three")]
    assert pairs(*version_2, *[complain("no")] * 3) == [(0, 4), (2, 5), (3, 6)]
    assert pairs(*version_2, complain("no method _two"), complain("no")) == [(2, 4), (0, 5)]
    assert pairs(cancel(), complain("no")) == [(0, 1)]
    assert pairs(notify("a"), notify("$/a"), complain("no method $/a"), complain("no method a")) == [(1, 2), (0, 3)]


def verdicts(rows: list[Row]) -> set[tuple[str, str]]:
    return {(each.rule, each.verdict) for each in judge(rows, "agent", "client").findings}


def login(**fields: object) -> list[Row]:
    return initialize(authMethods=[{"id": "key", "name": "A key"} | fields])


MODELS = {"currentModelId": "small", "availableModels": []}
SET_MODEL = [ask(40, "session/set_model", {"sessionId": "s1", "modelId": "small"}), respond(40)]


@pytest.mark.parametrize(
    ("rows", "rule", "advice"),
    [
        (session(models=MODELS), "ACP-EXT-001", "config option of the category model"),
        (login(type="env_var", vars=[{"name": "KEY"}]), "ACP-EXT-001", "the type terminal"),
        ([*session(), *SET_MODEL], "ACP-EXT-102", "use session/set_config_option"),
    ],
    ids=["models", "env_var", "session/set_model"],
)
def test_withdrawn_draft_name_gets_a_warning_with_its_replacement(rows: list[Row], rule: str, advice: str):
    assert verdicts(rows) == {(rule, "warn")}
    assert all(advice in each.detail for each in judge(rows, "agent", "client").findings)


def test_custom_name_similar_to_a_withdrawn_one_fails():
    assert verdicts(login(type="magic", vars=[])) == {("ACP-EXT-001", "fail")}
    assert verdicts([*session(), update("session_info_update", title="a", models=MODELS)]) == {("ACP-EXT-001", "fail")}


def test_newer_update_kinds_are_not_custom():
    client = {"session": {"notices": {}, "compaction": {}}}
    newer = [
        update("notice", severity="info", title="Trying again"),
        update("compaction_update", compactionId="k1", status="in_progress"),
        update("subagent_update", sessionId="s2"),
    ]
    assert verdicts([*session(client=client), prompt(), *newer, end()]) == set()


def test_version_2_names_are_reported_as_such():
    of_v2 = [update("state_update", state="idle"), notify("tool_call/cancel", {"sessionId": "s1"})]
    assert verdicts([*session(), prompt(), *of_v2, end()]) == {("ACP-WIRE-021", "warn"), ("ACP-EXT-102", "warn")}
    assert verdicts([*session(), prompt(), update("mood_update"), end()]) == {("ACP-WIRE-021", "fail")}


def test_version_2_only_names_match_its_types():
    of_v1 = {each.__struct_config__.tag for each in get_args(v1.SessionUpdate)}
    assert v2.SessionUpdate.tagged.keys() - of_v1 == V2_UPDATES
