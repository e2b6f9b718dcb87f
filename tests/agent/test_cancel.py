"""A cancelled turn of the kit answers `cancelled` at any point, and all its open calls are ended."""

import asyncio

import pytest

from dragoman.agent.turns import turn_runner
from dragoman.client.events import ToolCallChanged
from dragoman.protocol import v1
from tests.agent.connecting import make_agent, session_with
from tests.mcp.servers.commands import scripted

FINAL = ("completed", "failed")


async def everything(turn):
    """Use every function of a turn."""
    await turn.think("Let me see.")
    await turn.plan(["look", ("write", "in_progress")])
    await turn.say("First, ")
    async with turn.tool("Look", kind="read", locations=["a.txt"]) as call:
        await call.progress("half")
        await call.show(await turn.read_text("a.txt", default="nothing"))
        await call.raw_output({"length": 7})
    async with turn.tool("Write b.txt", kind="edit", locations=["b.txt"]) as call:
        await call.show_diff("b.txt", old=await turn.read_text("b.txt", default=None), new="new")
        if await call.allowed():
            await turn.write_text("b.txt", "new")
    async with turn.tool("Run", kind="execute", raw_input={"command": "echo hello"}) as call:
        if await call.allowed():
            await turn.run("echo hello", call=call)
    for tool in await turn.mcp_tools():
        await turn.call_tool(tool, {})
    await turn.title("Everything")
    await turn.usage(input_tokens=1, output_tokens=1, context_used=2, context_size=100)
    await turn.notice("nearly done")
    await turn.say("done.")


@pytest.mark.extended
async def test_turn_can_be_cancelled_at_every_tick_of_the_loop(tmp_path):
    """Cancel one tick later each time, until the turn ends before the cancel."""
    agent = make_agent(tmp_path, everything)
    ends = []
    async with session_with(agent, tmp_path) as session:
        for ticks in range(1_000):
            running = asyncio.create_task(session.run("go", timeout_s=30))
            for _ in range(ticks):
                await asyncio.sleep(0)
            if not running.done():
                session.cancel()
            result = await running
            assert result.error is None
            assert {call.status for call in result.tool_calls} <= set(FINAL)
            ends.append(result.stop_reason)
            if running.done() and result.stop_reason == "end_turn" and ticks > 50:
                break
        assert (await session.run("/help")).stop_reason == "end_turn"
    assert set(ends) == {"cancelled", "end_turn"}
    assert ends.count("cancelled") > 30


async def test_cancel_raises_in_the_function_and_ends_its_calls(tmp_path):
    begun = asyncio.Event()
    met = []

    async def answer(turn):
        call = turn.tool("Never ends", kind="execute")
        await call.announce()
        await call.show("so far")
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            met.append((error, turn.is_cancelled))
            raise

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        running = asyncio.create_task(session.run("x"))
        await begun.wait()
        session.cancel()
        result = await running
    assert result.stop_reason == "cancelled"
    assert [flag for _, flag in met] == [True]
    [call] = result.tool_calls
    assert call.status == "failed"
    assert [part.content.text for part in call.content] == ["so far", "cancelled"]


async def test_every_call_of_a_cancelled_turn_raises(tmp_path):
    begun = asyncio.Event()

    async def answer(turn):
        begun.set()
        for _ in range(3):
            try:
                await turn.say("x")
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        await turn.say("still here")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        running = asyncio.create_task(session.run("x"))
        await begun.wait()
        session.cancel()
        result = await running
    assert (result.stop_reason, result.text) == ("cancelled", "x")


async def test_function_that_ignores_its_cancellation_is_abandoned(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(turn_runner, "GRACE_S", 0.05)
    begun, end = asyncio.Event(), asyncio.Event()

    async def answer(turn):
        if turn.text == "again":
            await turn.say("answered")
            return
        begun.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        await turn.say("nobody hears this")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        running = asyncio.create_task(session.run("x"))
        await begun.wait()
        session.cancel()
        assert (await running).stop_reason == "cancelled"
        assert (await session.run("again")).text == "answered"
        end.set()
        assert (await session.run("again")).text == "answered"
    assert "it is abandoned" in caplog.text


async def test_failure_after_a_cancel_is_not_an_error_of_the_prompt(tmp_path):
    begun = asyncio.Event()

    async def answer(turn):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while cleaning up")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        running = asyncio.create_task(session.run("x"))
        await begun.wait()
        session.cancel()
        result = await running
    assert (result.stop_reason, result.error) == ("cancelled", None)


@pytest.mark.parametrize("way", ["close", "delete", "leave"])
async def test_closing_or_deleting_a_session_cancels_its_turn(tmp_path, way):
    begun, ended = asyncio.Event(), asyncio.Event()
    closed = []

    async def answer(turn):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    agent = make_agent(tmp_path, answer)

    @agent.on_close
    async def close(session):
        closed.append(session.id)

    async with session_with(agent, tmp_path) as session:
        running = asyncio.create_task(session.run("x"))
        await begun.wait()
        if way == "leave":
            running.cancel()
        else:
            await getattr(session, way)()
    await asyncio.wait_for(ended.wait(), 10)
    await asyncio.gather(running, return_exceptions=True)
    assert closed == [session.id]


async def test_mcp_tool_call_is_cancelled_with_its_turn(tmp_path):
    cancelled = tmp_path / "cancelled"

    async def answer(turn):
        [tool] = await turn.mcp_tools()
        await turn.call_tool(tool, {"text": "x"})

    command, *args = scripted(hang_at="call", cancel_file=str(cancelled))
    server = v1.McpServerStdio(name="slow", command=command, args=args, env=[])
    async with session_with(make_agent(tmp_path, answer), tmp_path, mcp_servers=[server]) as session:
        turn = session.prompt("x")
        async for event in turn:
            if isinstance(event, ToolCallChanged) and event.call.status == "in_progress":
                session.cancel()
        assert event.stop_reason == "cancelled"
    assert "requestId" in cancelled.read_text()
