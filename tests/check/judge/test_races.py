"""Cases that look like breaches but are not: crossing messages, permitted answers, and incomplete traces."""

import pytest

from dragoman.check import AgentMemory
from tests.check.judge import talking_v2
from tests.check.judge.cases.load import load
from tests.check.judge.talking import (
    Row,
    ask,
    ask_permission,
    call,
    cancel,
    chunk,
    dismiss,
    end,
    event,
    initialize,
    judge,
    line,
    new,
    notify,
    permit,
    progress,
    prompt,
    raw,
    refuse,
    respond,
    session,
    turn,
    update,
)

RUNNING = [*session(), prompt(), chunk()]
LISTING = {"sessionCapabilities": {"list": {}}}


def found(rows: list[Row], *roles: str) -> list[str]:
    court = judge(rows, *roles)
    assert court.failures == []
    return [each.rule for each in court.findings]


@pytest.mark.parametrize("ending", [end(2, "end_turn"), end(2, "refusal"), refuse(2, -32603)])
def test_end_of_a_turn_may_cross_a_cancel(ending):
    assert found([*RUNNING, cancel(), ending]) == []


def test_updates_crossing_a_cancel_prove_nothing():
    assert found([*RUNNING, cancel(), chunk(), chunk(), end(2, "end_turn")]) == []


def test_answer_to_a_request_after_the_cancel_proves_reading():
    behind = [ask(7, "_heard", {"sessionId": "s1"}), refuse(7, -32601)]
    assert found([*RUNNING, cancel(), *behind, end()]) == ["ACP-CANCEL-001"]


def test_answer_outside_the_session_does_not_prove_reading():
    rows = [*session(LISTING), prompt(), chunk(), cancel(), ask(7, "session/list"), respond(7, {"sessions": []}), end()]
    assert found(rows) == []


def test_turn_with_a_dismissed_permission_may_end_as_cancelled():
    assert found([*session(), prompt(), call(), ask_permission(), dismiss(), end(2, "cancelled")], "agent") == []


def test_prompt_cancelled_by_id_may_end_as_cancelled():
    rows = [*RUNNING, notify("$/cancel_request", {"requestId": 2}), end(2, "cancelled")]
    assert found(rows) == []


CUTS = {
    "its client left": event("agent", "stdin closed"),
    "it got a signal": event("agent", "killed"),
    "its session was deleted": ask(9, "session/delete", {"sessionId": "s1"}),
}


@pytest.mark.parametrize("cut", CUTS)
def test_turn_may_end_as_cancelled_when(cut: str):
    working = [*talking_v2.session(), talking_v2.prompt(), talking_v2.accept(), talking_v2.user(), talking_v2.RUNNING]
    assert found([*RUNNING, CUTS[cut], end(2, "cancelled")], "agent") == []
    assert found([*working, CUTS[cut], talking_v2.idle("cancelled")], "agent") == []


@pytest.mark.parametrize("last", [refuse(2, -32800), talking_v2.accept()])
def test_work_of_an_early_cancelled_prompt_may_end_as_cancelled(last: Row):
    rows = [talking_v2.prompt(), talking_v2.user(), talking_v2.RUNNING, notify("$/cancel_request", {"requestId": 2})]
    assert "ACP-PROMPT-006" not in found([*talking_v2.session(), *rows, last, talking_v2.idle("cancelled")], "agent")


OFFER, WITHDRAWAL = {"capabilities": {"cancel": {}}}, {"capabilities": None}
ITEMS = {
    "ACP-TOOL": ("tool_call/cancel", {"toolCallId": "c1"}, talking_v2.call, {"title": "Run"}, {"status": "cancelled"}),
    "ACP-TERM": ("terminal/cancel", {"terminalId": "t1"}, talking_v2.terminal, {}, {"exitStatus": {"exitCode": 1}}),
}


def cancel_withdrawn(area: str, *, after_s: float = 0.01) -> list[Row]:
    """Offer to cancel a tool call or a terminal, withdraw the offer, and cancel it."""
    method, item, report, first, last = ITEMS[area]
    working = [*talking_v2.session(), talking_v2.prompt(), talking_v2.accept(), talking_v2.user(), talking_v2.RUNNING]
    asked = ask(7, method, {"sessionId": "s1", **item})
    return [*working, report(**first, **OFFER), report(**last, **WITHDRAWAL), asked._replace(after_s=after_s)]


@pytest.mark.parametrize("area", ITEMS)
def test_cancel_may_cross_the_withdrawal_of_its_offer(area: str):
    rule = {"ACP-TOOL": "ACP-TOOL-101", "ACP-TERM": "ACP-TERM-108"}[area]
    assert found(cancel_withdrawn(area), "client") == []
    assert found(cancel_withdrawn(area, after_s=2.5), "client") == [rule]


@pytest.mark.parametrize("area", ITEMS)
@pytest.mark.parametrize("answer", [respond(7), refuse(7, -32602)])
def test_offer_may_be_withdrawn_before_the_cancel_is_answered(area: str, answer: Row):
    *rows, withdrawal, asked = cancel_withdrawn(area)
    assert found([*rows, asked, withdrawal, answer, talking_v2.idle()], "agent") == []


EARLY_CANCELS = {
    "the answer": [talking_v2.prompt(), cancel(), talking_v2.accept(), talking_v2.user(), talking_v2.RUNNING],
    "the work": [talking_v2.prompt(), talking_v2.accept(), cancel(), talking_v2.user(), talking_v2.RUNNING],
}


@pytest.mark.parametrize("crossed", EARLY_CANCELS)
def test_cancel_may_cross_the_running_state(crossed: str):
    rows = [*talking_v2.session(), *EARLY_CANCELS[crossed]]
    court = judge([*rows, talking_v2.idle("cancelled")], "agent")
    assert court.findings == []
    assert court.occasions["ACP-CANCEL-001"] == 1
    assert found([*rows, talking_v2.idle()], "agent") == []
    assert found([*rows, talking_v2.idle(after_s=3.0)], "agent") == ["ACP-CANCEL-001"]


def test_work_started_long_after_its_cancel_does_not_prove_reading():
    late = talking_v2.state("running", after_s=3.0)
    rows = [talking_v2.prompt(), cancel(), talking_v2.accept(), talking_v2.user(), late, talking_v2.idle()]
    assert found([*talking_v2.session(), *rows], "agent") == []


@pytest.mark.parametrize("prompted", [[], [talking_v2.prompt(), cancel(), refuse(2, -32800)]])
def test_finished_cancel_does_not_excuse_the_next_work(prompted: list[Row]):
    rows = [*talking_v2.session(), *prompted, cancel(), talking_v2.prompt(3), talking_v2.accept(3), talking_v2.user()]
    ended = [talking_v2.RUNNING, talking_v2.chunk(), talking_v2.idle("cancelled")]
    assert found([*rows, *ended], "agent") == ["ACP-PROMPT-006"]


def test_deleted_session_excuses_no_other_session():
    rows = [*session(), *new("s2", 3), prompt(), chunk(), ask(9, "session/delete", {"sessionId": "s2"})]
    assert found([*rows, end(2, "cancelled")], "agent") == ["ACP-PROMPT-006"]


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_refused_close_or_delete_excuses_no_later_turn(method: str):
    rows = [*session(), ask(9, method, {"sessionId": "s1"}), refuse(9), prompt(), chunk(), end(2, "cancelled")]
    assert "ACP-PROMPT-006" in found(rows, "agent")


def test_permission_request_crossing_a_cancel_must_be_cancelled():
    rows = [*session(), prompt(), call(), cancel(), ask_permission()]
    assert found([*rows, dismiss(), end(2, "cancelled")]) == []
    assert found([*rows, permit(), end(2, "cancelled")], "client") == ["ACP-CANCEL-101"]


def test_withdrawn_permission_may_be_answered_as_cancelled():
    asked = [*session(), prompt(), call(), ask_permission(), cancel()]
    rows = [*asked, notify("$/cancel_request", {"requestId": 90}, "agent"), refuse(90, -32800, "client")]
    assert found([*rows, end(2, "cancelled")]) == []


def test_client_without_a_reject_option_may_cancel():
    only_yes = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    asked = [*session(), prompt(), call(), ask_permission(options=only_yes)]
    assert found([*asked, dismiss(), progress(status="failed"), end()]) == []


def test_tool_calls_of_a_cancelled_turn_may_stay_open():
    assert found([*RUNNING, call(), cancel(), end(2, "cancelled")]) == []


def test_session_updates_may_come_between_turns():
    commands = update("available_commands_update", availableCommands=[])
    title = update("session_info_update", title="A talk")
    assert found([*session(), *turn(chunk()), title, commands, *turn(chunk(), id_=3), title]) == []


def test_replayed_tool_calls_are_not_new():
    history = [chunk("hello", "user_message_chunk"), call(status="completed"), chunk()]
    rows = [*session({"loadSession": True}), *turn(call(), progress(status="completed"), chunk()), load(), *history]
    assert found([*rows, respond(9), *turn(chunk(), id_=10)]) == []


def test_trace_without_its_start_assumes_earlier_messages():
    assert found([chunk(), progress(status="completed"), end(2), prompt(3), chunk(), end(3)]) == []


def test_client_without_initialize_is_not_a_partial_trace():
    assert found([prompt(3), chunk(), end(3)], "client") == ["ACP-INIT-101"]
    assert found([event("agent", "started"), chunk(), prompt(3)], "client") == ["ACP-INIT-101"]


def test_trace_without_its_end_assumes_later_messages():
    asked = [*session({"loadSession": True}), prompt(), call(), ask_permission()]
    assert found(asked) == []
    assert found([*asked, cancel()]) == []
    assert found([*session(LISTING), ask(7, "session/list")]) == []


def test_killed_agent_is_not_blamed_for_open_requests():
    half = raw("agent", '{"jsonrpc":"2.0","meth')
    rows = [*RUNNING, ask(7, "_x"), event("agent", "killed"), half, event("agent", "exited -9")]
    assert found(rows, "agent") == []


def test_half_a_line_before_an_exit_is_reported_with_the_exit():
    half = raw("agent", '{"jsonrpc":"2.0","meth')
    assert found([*initialize(), half, event("agent", "exited 1")], "agent") == ["ACP-WIRE-003", "ACP-WIRE-019"]


def test_errors_are_legal_answers():
    rows = [
        *session({"loadSession": True, "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}}}),
        ask(3, "session/list"),
        refuse(3, -32603),
        load("s7"),
        refuse(9, -32002),
        ask(4, "session/close", {"sessionId": "s1"}),
        refuse(4, -32603),
        prompt(5),
        refuse(5, -32000),
    ]
    assert found(rows) == []


def test_agent_without_capabilities_is_no_breach():
    assert found([*initialize(), *new(), *turn(chunk())]) == []


def test_a_slow_answer_is_not_a_missing_one():
    assert found([*session(LISTING), ask(7, "session/list"), respond(7, {"sessions": []}, after_s=300.0)]) == []


def test_open_request_is_unanswered_if_its_receiver_continues():
    late = Row("agent", chunk().line, after_s=31.0)
    assert found([*session(LISTING), prompt(), ask(7, "session/list"), late]) == ["ACP-WIRE-011"]


def test_session_ids_may_restart_in_each_process():
    memory = AgentMemory()
    for _ in range(2):
        assert judge(session(), memory=memory).findings == []
    remembering = [*initialize({"loadSession": True}), *new()]
    assert [each.rule for each in judge(remembering, memory=memory).findings] == ["ACP-NEW-001"]


def test_replay_is_compared_across_connections():
    memory = AgentMemory()
    able = {"loadSession": True}
    judge([*session(able), *turn(chunk())], memory=memory)
    silent = judge([*initialize(able), load(), respond(9)], memory=memory)
    assert [each.rule for each in silent.findings] == ["ACP-LOAD-001"]


def test_two_messages_on_a_line_are_one_breach():
    line = chunk().line
    assert found([*RUNNING, raw("agent", line + line)]) == ["ACP-WIRE-003"]


def test_empty_lines_are_only_a_warning():
    court = judge([*RUNNING, raw("agent", ""), raw("client", "  "), chunk()])
    assert {(each.rule, each.verdict) for each in court.findings} == {
        ("ACP-WIRE-001", "warn"),
        ("ACP-WIRE-101", "warn"),
    }


def test_allowed_call_need_not_run_after_a_cancel():
    asked = [*session(), prompt(), call(), ask_permission()]
    over = [progress(status="failed"), end(2, "cancelled")]
    assert found([*asked, permit(), cancel(), *over], "agent") == []
    assert found([*asked, cancel(), permit(), *over], "agent") == []


def test_invalid_permission_request_is_no_occasion_for_the_method():
    odd = ask_permission(toolCall=None)
    assert judge([*session(), prompt(), odd, refuse(90, -32602, "client")], "client").occasions["ACP-INIT-107"] == 0


@pytest.mark.parametrize("cwd", [".", "/work/p"])
def test_session_may_be_listed_with_its_absolute_directory(cwd: str):
    listed = [ask(9, "session/list"), respond(9, {"sessions": [{"sessionId": "s1", "cwd": "/work/p"}]})]
    assert "ACP-LIST-003" not in found([*initialize(LISTING), *new(cwd=cwd), *listed])


@pytest.mark.parametrize("code", [-32000, -32601, -32603])
def test_list_may_fail_for_other_reasons(code: int):
    rows = [*session(LISTING), ask(9, "session/list", {"cwd": "/nothing"}), refuse(9, code)]
    assert "ACP-LIST-009" not in found(rows)


def test_a_client_may_refuse_to_write_a_file():
    refusal = {"id": 71, "error": {"code": -32603, "message": "The user does not want that."}}
    write = ask(71, "fs/write_text_file", {"sessionId": "s1", "path": "/work/p/a", "content": "x"}, "agent")
    assert found([*session(client={"fs": {"writeTextFile": True}}), prompt(), write, line("client", refusal)]) == []


EARLY = {
    "ACP-FS-001": ask(70, "fs/read_text_file", {"sessionId": "s1", "path": "/work/p/a"}, "agent"),
    "ACP-TERM-001": ask(70, "terminal/create", {"sessionId": "s1", "command": "ls"}, "agent"),
}
OFFERS = {"fs": {"readTextFile": True}, "terminal": True}


@pytest.mark.parametrize("rule", EARLY)
def test_client_capabilities_are_unknown_before_initialize(rule: str):
    asked, answered = initialize(client=OFFERS)
    refused = refuse(70, -32603, "client")
    started = event("agent", "started")
    expected = [rule, "ACP-NEW-003"]
    assert found([started, EARLY[rule], refused, asked, answered, *new()], "agent") == expected
    assert found([asked, EARLY[rule], refused, answered, *new()], "agent") == expected
    assert found([EARLY[rule], refused, *new()], "agent") == []


def test_update_before_initialize_is_for_an_unopened_session():
    rows = [event("agent", "started"), update("usage_update", used=1, size=2), *session()]
    assert found(rows, "agent") == ["ACP-NEW-003"]


def test_id_may_be_any_string_or_whole_number():
    ids = ["", "ü", "0", -1, 0, 2**60]
    rows = [row for id_ in ids for row in (ask(id_, "session/list"), respond(id_, {"sessions": []}))]
    assert found([*session(LISTING), *rows]) == []


def test_exited_agent_is_not_blamed_for_silence():
    rows = [*RUNNING, ask(7, "_x"), event("agent", "killed"), event("agent", "waited 5", 5.0)]
    assert found(rows, "agent") == []


def test_session_loaded_during_its_turn_continues_the_turn():
    able = session({"loadSession": True})
    rows = [*able, *turn(chunk()), prompt(3), load(), chunk("hello", "user_message_chunk"), chunk(), respond(9)]
    assert found([*rows, chunk(), end(3)]) == []


def test_live_update_may_cross_a_replay_request():
    history = [chunk("hello", "user_message_chunk"), chunk()]
    live = [*session({"loadSession": True}), *turn(chunk()), prompt(3), chunk("live"), load(), chunk("live")]
    assert found([*live, *history, respond(9), end(3)], "agent") == []
    said, shown = talking_v2.chunk("live", "m2"), [talking_v2.user(), talking_v2.message("four", "m1")]
    working = [talking_v2.prompt(3), talking_v2.accept(3, "u2"), talking_v2.RUNNING, said]
    resumed = [talking_v2.resume(**talking_v2.FROM_START), said, *shown, talking_v2.RUNNING, respond(9)]
    before = [*talking_v2.session(), *talking_v2.turn(talking_v2.message("four", "m1"))]
    assert found([*before, *working, *resumed], "agent") == []


def test_agent_may_refuse_some_text():
    assert found([*session(), *turn(chunk()), prompt(3, text="/nonsense"), refuse(3, -32602)]) == []
