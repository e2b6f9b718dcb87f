"""A turn as one result: text, tool calls, changed files and stop reason."""

import asyncio
import json

import pytest

from dragoman.client import connect
from dragoman.client.errors import (
    ProcessDiedError,
    PromptRunningError,
    RemoteError,
    SessionClosedError,
    TurnTimeoutError,
)
from dragoman.client.events import FileWritten, TextChunk, ToolCallChanged
from dragoman.client.policies import allow_all, deny_all
from dragoman.client.sessions.result import TurnSummary
from dragoman.client.sessions.tool_call import merge
from dragoman.protocol import v1
from dragoman.testing import steps
from tests.client.driving import chunk, session_with
from tests.commands import DRAGOMAN, raw, scripted

NAMES = ("old.txt", "new.txt")
USAGE = {"totalTokens": 7, "inputTokens": 4, "outputTokens": 3}


def call(number, *, status="completed", content=(), **more):
    update = {"sessionUpdate": "tool_call", "toolCallId": str(number), "title": f"Call {number}", "status": status}
    return {"update": {**update, "content": list(content), **more}}


def diff(path, old, new):
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


async def run(*actions, timeout_s=None, **options):
    async with session_with(raw({}, list(actions)), **options) as session:
        return await session.run("go", timeout_s=timeout_s)


async def test_result_has_text_calls_usage_and_stop_reason():
    end = {"result": {"stopReason": "max_tokens", "usage": USAGE}}
    result = await run(chunk("a "), call(1), call(2, status="failed"), chunk("b"), end)
    assert (result.text, result.stop_reason, result.error) == ("a b", "max_tokens", None)
    assert [(each.tool_call_id, each.status) for each in result.tool_calls] == [("1", "completed"), ("2", "failed")]
    assert result.usage.total_tokens == 7
    assert not result.is_complete
    assert repr(result) == "<TurnResult max_tokens, 2 tool calls, text 'a b'>"
    assert result.raise_for_error() is result


async def test_turn_can_be_awaited_before_and_after_reading():
    async with session_with(scripted([steps.Say("a"), steps.Say("b")])) as session:
        assert (await session.prompt("go")).text == "ab"
        turn = session.prompt("go")
        first = await anext(turn)
        assert isinstance(first, TextChunk)
        assert (await turn).text == (await turn).text == "ab"
        assert (await turn).is_complete


async def test_abandoned_turn_returns_its_partial_result():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()])) as session:
        turn = session.prompt("go")
        async for _ in turn:
            break
        await turn.aclose()
        result = await turn
        assert (result.text, result.stop_reason, result.error) == ("a", "cancelled", None)


# The agent needs time to say something first.
TURN_TIMEOUT_S = 1.5


async def test_timed_out_turn_is_cancelled_with_a_partial_result():
    async with session_with(scripted([steps.Say("half"), steps.WaitForCancel()], [steps.Say("b")])) as session:
        result = await session.run("go", timeout_s=TURN_TIMEOUT_S)
        assert (result.text, result.stop_reason) == ("half", "cancelled")
        assert isinstance(result.error, TurnTimeoutError)
        assert "1.5 s" in str(result.error)
        with pytest.raises(TurnTimeoutError):
            result.raise_for_error()
        assert (await session.run("again", timeout_s=30)).text == "b"


async def test_result_does_not_wait_for_an_ignored_cancellation(monkeypatch):
    monkeypatch.setattr("dragoman.client.sessions.turn.CANCEL_TIMEOUT_S", 0.2)
    result = await run(chunk("half"), {"hear": "never"}, timeout_s=TURN_TIMEOUT_S)
    assert (result.text, result.stop_reason) == ("half", None)
    assert isinstance(result.error, TurnTimeoutError)
    assert "has not ended" in str(result.error.__cause__)


async def test_timeout_answers_open_questions_cancelled():
    async def never(question):
        await asyncio.Event().wait()

    async with session_with(scripted([steps.AskPermission()]), policy=never) as session:
        result = await session.run("go", timeout_s=TURN_TIMEOUT_S)
    assert (result.text, result.stop_reason) == ("outcome: cancelled", "cancelled")
    assert isinstance(result.error, TurnTimeoutError)


async def test_agent_errors_are_in_the_partial_result():
    result = await run(chunk("a"), {"error": {"code": -32603, "message": "Internal error"}})
    assert result.text == "a"
    assert isinstance(result.error, RemoteError)
    died = await run(chunk("a"), call(1, status="in_progress"), {"exit": 3, "stderr": "out of luck"})
    assert (died.text, died.stop_reason, len(died.tool_calls)) == ("a", None, 1)
    assert isinstance(died.error, ProcessDiedError)
    assert died.error.exit_code == 3


async def test_invalid_call_raises_its_error():
    async with session_with(scripted([steps.Say("a"), steps.WaitForCancel()])) as session:
        turn = session.prompt("go")
        await anext(turn)
        with pytest.raises(PromptRunningError):
            await session.run("go")
        await turn.aclose()
        session.detach()
        with pytest.raises(SessionClosedError):
            await session.run("go")


def changes(*events, cwd="/project"):
    summary, states = TurnSummary(cwd), {}
    for event in events:
        if isinstance(event, FileWritten):
            summary.add(event)
        else:
            states[event.tool_call_id] = merge(states.get(event.tool_call_id), event)
            summary.add(ToolCallChanged(states[event.tool_call_id], False, event))
    return [(each.path, each.before, each.after) for each in summary.result().changed_files]


def shown(number, *diffs, status="completed"):
    content = [v1.Diff(path=path, old_text=old, new_text=new) for path, old, new in diffs]
    return v1.ToolCall(tool_call_id=str(number), title="", status=status, content=content)


def test_diffs_of_completed_calls_are_merged_by_path():
    assert changes(
        shown(1, ("/project/a", "1", "2"), ("/project/new", None, "x")),
        shown(2, ("/project/a", "2", "3")),
        shown(3, ("b", "1", "2"), status="failed"),
        shown(4, ("c", "1", "2"), status="in_progress"),
    ) == [("/project/a", "1", "3"), ("/project/new", None, "x")]


def test_equal_paths_are_one_changed_file():
    assert changes(shown(1, ("a", "1", "2")), shown(2, ("/project/./x/../a", "2", "3"))) == [("/project/a", "1", "3")]


def test_replaced_diff_still_counts():
    done = v1.ToolCallProgress(tool_call_id="1", status="completed", content=[])
    assert changes(shown(1, ("a", "1", "2"), status="pending"), done) == [("/project/a", "1", "2")]


def test_completed_call_reported_twice_counts_once():
    again = shown(1, ("a", "x", "xx"))
    assert changes(again, again) == [("/project/a", "x", "xx")]


def test_restored_file_is_not_changed():
    assert changes(shown(1, ("a", "1", "2")), shown(2, ("a", "2", "1"))) == []


def test_partial_diff_is_applied_to_the_whole_file():
    assert changes(shown(1, ("a", None, "1\n2\n3\n")), shown(2, ("a", "2\n", "two\n"))) == [
        ("/project/a", None, "1\ntwo\n3\n")
    ]


def test_client_writes_take_precedence_over_diffs():
    assert changes(
        shown(1, ("a", "2", "two"), status="in_progress"),
        FileWritten("/project/a", "1 2", "1 two"),
        shown(1, ("a", "2", "two")),
        FileWritten("/project/a", "1 two", "one two"),
    ) == [("/project/a", "1 2", "one two")]


@pytest.mark.parametrize("files", ["write", None])
async def test_result_has_the_files_that_our_agent_changes(files, tmp_path):
    (tmp_path / "old.txt").write_text("before\n")
    script = tmp_path / "script.yaml"
    calls = [{"name": "write_file", "arguments": {"path": name, "content": "after\n"}} for name in NAMES]
    script.write_text(json.dumps([*([{"tool": each}] for each in calls), [{"text": "Done."}]]))
    command = [*DRAGOMAN, "agent", "--model", f"script:{script}"]
    async with connect(command, policy=allow_all(), files=files) as agent:
        result = await (await agent.new_session(tmp_path)).run("go", timeout_s=30)
    assert result.is_complete, result
    assert [(each.path, each.before, each.after) for each in result.changed_files] == [
        (str(tmp_path / "old.txt"), "before\n", "after\n"),
        (str(tmp_path / "new.txt"), None, "after\n"),
    ]
    async with connect(command, policy=deny_all(), files=files) as agent:
        denied = await (await agent.new_session(tmp_path)).run("go", timeout_s=30)
    assert denied.changed_files == ()
