"""One agent per known mistake of real agents. The client handles each of them."""

import json

import pytest

from dragoman.client.events import ModeChanged, NonTextChunk, OtherUpdate, PermissionRequested, ToolCallChanged
from dragoman.errors import InvalidResultError
from tests.client.driving import END, agent_of, chunk, done, read, session_with, text
from tests.commands import raw
from tests.waiting import until

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def update(**members):
    return {"update": members}


def permission(tool_call, options=OPTIONS, session_id="s"):
    params = {"sessionId": session_id, "toolCall": tool_call, "options": options}
    return {"id": "p", "method": "session/request_permission", "params": params}


async def events_of(*steps):
    async with session_with(raw({}, [*steps, END])) as session:
        return await read(session.prompt("go")), session


@pytest.mark.parametrize("line", ["Thinking...", "[1, 2]", "42", '"text"', "{}", '{"jsonrpc": "1.0"}', "null", "\x00"])
async def test_garbage_on_stdout_is_skipped(line):
    events, _ = await events_of(chunk("a"), line, chunk("b"))
    assert text(events) == "ab"


async def test_a_line_far_over_64_kib_is_read():
    events, _ = await events_of({"long": 3_000_000})
    assert len(text(events)) == 3_000_000


async def test_answer_without_a_request_is_ignored():
    events, _ = await events_of({"id": 99, "result": {}}, {"id": "x", "error": {"code": 1, "message": ""}}, chunk("a"))
    assert text(events) == "a"


async def test_update_before_the_new_session_answer_is_kept():
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a", "description": "b"}]}
    early = {"session/new": [[{"update": commands}, {"result": {"sessionId": "s"}}]]}
    async with session_with(raw(early)) as session:
        assert [command.name for command in session.commands] == ["a"]
        assert len(session.events_between_turns) == 1


async def test_update_directly_after_the_answer_is_kept():
    title = {"sessionUpdate": "session_info_update", "title": "Digging"}
    async with session_with(raw({"session/new": [[{"result": {"sessionId": "s"}}, {"update": title}]]})) as session:
        await session.ask("go")
        assert session.title == "Digging"


async def test_updates_for_an_unopened_session_are_dropped():
    stranger = {**chunk("not yours"), "sessionId": "stranger"}
    events, session = await events_of(chunk("a"), stranger, chunk("b"))
    assert text(events) == "ab"
    assert not session.events_between_turns


async def test_an_update_after_the_answer_is_merged_and_shown_once():
    late = [END, update(sessionUpdate="tool_call", toolCallId="c", title="Dig")]
    async with session_with(raw({}, late, [chunk("next"), END])) as session:
        events = await read(session.prompt("go"))
        await until(lambda: "c" in session.tool_calls)
        shown = [event for event in [*events, *session.events_between_turns] if isinstance(event, ToolCallChanged)]
        assert len(shown) == 1
        assert await session.ask("again") == "next"


async def test_wrong_discriminator_is_corrected():
    events, _ = await events_of(
        update(type="agent_message_chunk", content={"type": "text", "text": "a"}),
        update(sessionUpdate="current_mode_update", modeId="code"),
    )
    assert text(events) == "a"
    assert isinstance(events[1], ModeChanged)
    assert events[1].mode_id == "code"


@pytest.mark.parametrize(
    "misshapen",
    [
        {"sessionUpdate": "agentMessageChunk", "content": {"type": "text", "text": "a"}},
        {"sessionUpdate": "agent_message_chunk", "content": "a"},
        {"sessionUpdate": "usage_update", "used": "much"},
        {"sessionUpdate": 7},
        {},
    ],
)
async def test_uncorrectable_update_is_passed_on_unchanged(misshapen):
    events, _ = await events_of({"update": misshapen}, chunk("b"))
    assert isinstance(events[0], OtherUpdate)
    assert events[0].update.data == misshapen
    assert text(events) == "b"


@pytest.mark.parametrize(
    "params", [None, 3, [], {"sessionId": "s"}, {"sessionId": "s", "update": None}, {"update": {}}]
)
async def test_invalid_update_is_skipped(params):
    events, _ = await events_of({"method": "session/update", "params": params}, chunk("b"))
    assert text(events) == "b"


async def test_an_unknown_kind_of_content_is_shown():
    events, _ = await events_of(update(sessionUpdate="agent_message_chunk", content={"type": "smell", "of": "rain"}))
    assert isinstance(events[0], NonTextChunk)
    assert events[0].block.data == {"type": "smell", "of": "rain"}


async def test_update_of_an_unannounced_call_creates_it():
    events, session = await events_of(update(sessionUpdate="tool_call_update", toolCallId="c", status="completed"))
    assert isinstance(events[0], ToolCallChanged)
    assert events[0].is_new
    assert session.tool_calls["c"].status == "completed"


async def test_call_announced_twice_is_one_call():
    content = [{"type": "content", "content": {"type": "text", "text": "deep"}}]
    events, session = await events_of(
        update(sessionUpdate="tool_call", toolCallId="c", title="Dig", kind="edit", content=content, rawInput={"a": 1}),
        update(sessionUpdate="tool_call", toolCallId="c", title="Dig deeper"),
    )
    assert [event.is_new for event in events[:2]] == [True, False]
    call = session.tool_calls["c"]
    assert (call.title, call.kind, call.raw_input) == ("Dig deeper", "edit", {"a": 1})
    assert call.content[0].content.text == "deep"
    assert events[0].call.title == "Dig"


async def test_null_fields_change_nothing():
    nulls = {"title": None, "kind": None, "status": None, "content": None, "locations": None, "rawInput": None}
    _, session = await events_of(
        update(sessionUpdate="tool_call", toolCallId="c", title="Dig", kind="edit", status="in_progress", rawInput=1),
        update(sessionUpdate="tool_call_update", toolCallId="c", **nulls),
        update(sessionUpdate="tool_call", toolCallId="d", **nulls),
    )
    call = session.tool_calls["c"]
    assert (call.title, call.kind, call.status, call.raw_input) == ("Dig", "edit", "in_progress", 1)
    assert session.tool_calls["d"].title == ""


async def test_empty_content_replaces_the_content():
    content = [{"type": "content", "content": {"type": "text", "text": "deep"}}]
    _, session = await events_of(
        update(sessionUpdate="tool_call", toolCallId="c", title="Dig", content=content),
        update(sessionUpdate="tool_call_update", toolCallId="c", content=[]),
    )
    assert session.tool_calls["c"].content == ()


async def test_unfinished_call_keeps_its_last_state():
    _, session = await events_of(update(sessionUpdate="tool_call", toolCallId="c", title="Dig", status="in_progress"))
    assert not session.tool_calls["c"].is_over


async def test_permission_for_an_unannounced_call_is_decided():
    events, session = await events_of(permission({"toolCallId": "c", "title": "Dig"}), {"hear": "answer"})
    [asked] = [event for event in events if isinstance(event, PermissionRequested)]
    assert asked.question.tool_call.title == "Dig"
    assert '"optionId": "no"' in text(events)
    assert session.tool_calls["c"].title == "Dig"


async def test_permission_request_without_a_reject_option_is_an_error():
    events, _ = await events_of(permission({"toolCallId": "c"}, OPTIONS[:1]), {"hear": "answer"})
    assert json.loads(text(events))["error"]["code"] == -32602


async def test_a_permission_for_an_unknown_session_is_an_error():
    events, _ = await events_of(permission({"toolCallId": "c"}, session_id="stranger"), {"hear": "answer"})
    assert json.loads(text(events))["error"]["code"] == -32002


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "elicitation/create", "sing", "_vendor/x"])
async def test_requests_for_missing_services_are_answered(method):
    params = {"sessionId": "s", "path": "/etc/passwd", "command": "true"}
    events, _ = await events_of({"id": "x", "method": method, "params": params}, {"hear": "answer"})
    assert json.loads(text(events)) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -32601, "message": f"Method not found: {method}", "data": {"method": method}},
    }


async def test_new_session_with_an_open_id_is_refused():
    async with agent_of(raw()) as agent:
        await agent.new_session("/")
        with pytest.raises(InvalidResultError, match="already open"):
            await agent.new_session("/")


async def test_endless_session_list_raises_an_error():
    page = {"sessions": [{"sessionId": "a", "cwd": "/"}], "nextCursor": "again"}
    command = raw({"session/list": [[{"result": page}]]}, capabilities={"sessionCapabilities": {"list": {}}})
    async with agent_of(command) as agent:
        with pytest.raises(InvalidResultError, match="same cursor"):
            _ = [info async for info in agent.list_sessions()]


async def test_a_load_without_a_replay_has_no_history():
    async with agent_of(raw(capabilities={"loadSession": True})) as agent:
        session = await agent.load_session("s", "/")
        assert session.history == []
        assert done(await read(session.prompt("go"))).stop_reason == "end_turn"


async def test_replay_of_a_resume_is_not_part_of_the_next_turn():
    script = {"session/resume": [[chunk("old"), {"result": {}}]]}
    async with agent_of(
        raw(script, [chunk("new"), END], capabilities={"sessionCapabilities": {"resume": {}}})
    ) as agent:
        session = await agent.resume_session("s", "/")
        assert text(session.events_between_turns) == "old"
        assert await session.ask("go") == "new"
