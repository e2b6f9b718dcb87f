"""A slow reader makes the agent wait, with bounded memory and without deadlocks."""

import sys

import pytest

from dragoman.client.errors import EventsLostError
from dragoman.client.events import TextChunk, TurnFinished
from dragoman.client.sessions.turn import MAX_BYTES, MAX_EVENTS
from tests.client.driving import agent_of, done, read, text
from tests.waiting import until

FLOOD = """
import json, sys
count, size = int(sys.argv[1]), int(sys.argv[2])
kind = sys.argv[3]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"protocolVersion": 1, "sessionId": str(message["id"]), "stopReason": "end_turn"}
    answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    if "afterwards" in line:
        print(answer)
    if message["method"] == "session/prompt":
        for number in range(count if "flood" in line else 1):
            text = f"{number} ".ljust(size)
            content = {"type": "text", "text": text}
            update = {"sessionUpdate": kind, "content": content}
            if kind == "tool_call":
                update |= {"toolCallId": "c", "title": "Dig", "content": [{"type": "content", "content": content}]}
            params = {"sessionId": message["params"]["sessionId"], "update": update}
            print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=number % 100 == 0)
    if "afterwards" not in line:
        print(answer, flush=True)
    sys.stdout.flush()
"""


def flood(count, size=10, kind="agent_message_chunk"):
    return [sys.executable, "-c", FLOOD, str(count), str(size), kind]


async def test_a_slow_reader_stops_the_agent_and_then_gets_everything():
    count = 30_000
    async with agent_of(flood(count)) as agent:
        session = await agent.new_session("/")
        turn = session.prompt("flood")
        first = await anext(turn)
        await until(lambda: turn.is_held)
        assert turn.waiting <= MAX_EVENTS
        events = [first, *await read(turn)]
    assert text(events).split() == [str(number) for number in range(count)]
    assert done(events).stop_reason == "end_turn"


async def test_long_updates_pause_the_connection_sooner():
    count, size = 400, 100_000
    async with agent_of(flood(count, size, "tool_call")) as agent:
        session = await agent.new_session("/")
        turn = session.prompt("flood")
        await anext(turn)
        await until(lambda: turn.is_held)
        assert turn.waiting * size <= 2 * MAX_BYTES
        assert len(await read(turn)) == count


async def test_call_inside_the_read_loop_does_not_deadlock():
    async with agent_of(flood(5 * MAX_EVENTS)) as agent:
        session, count = await agent.new_session("/"), 0
        turn = session.prompt("flood")
        async for event in turn:
            count += isinstance(event, TextChunk)
            if count == 1:
                await until(lambda: turn.waiting >= MAX_EVENTS)
                other = await agent.new_session("/")
                assert await other.ask("one") == "0         "
    assert count == 5 * MAX_EVENTS


async def test_unread_events_of_one_session_block_no_other():
    count = 90_000
    async with agent_of(flood(count)) as agent:
        one, other = await agent.new_session("/"), await agent.new_session("/")
        turn = one.prompt("flood")
        first = await anext(turn)
        assert await other.ask("one") == "0         "
        events = [first, *await read(turn)]
    assert text(events).split() == [str(number) for number in range(count)]


async def test_too_many_unread_events_are_dropped_with_an_error(monkeypatch):
    monkeypatch.setattr("dragoman.client.sessions.turn.MAX_UNREAD_EVENTS", 2_000)
    count = 20_000
    async with agent_of(flood(count)) as agent:
        one, other = await agent.new_session("/"), await agent.new_session("/")
        turn = one.prompt("flood")
        await anext(turn)
        assert await other.ask("one") == "0         "
        with pytest.raises(EventsLostError, match=r"events were dropped .* separate task"):
            await read(turn)
        assert isinstance((await read(turn))[-1], TurnFinished)
        whole = await turn
        assert len(whole.text) == 10 * count


@pytest.mark.parametrize(("count", "size", "most"), [(2_000, 10, 1_024), (100, 50_000, 20)])
async def test_only_the_latest_events_between_turns_are_kept(monkeypatch, count, size, most):
    monkeypatch.setattr("dragoman.client.sessions.session.MAX_BETWEEN_TURNS_BYTES", 1_000_000)
    async with agent_of(flood(count, size)) as agent:
        session = await agent.new_session("/")
        events = session.events_between_turns
        for _ in range(2):
            await session.ask("flood afterwards")
            await until(lambda: events and events[-1].text.split() == [str(count - 1)])
            assert most // 2 < len(events) <= most
            assert [int(event.text) for event in events] == list(range(count - len(events), count))
            events.clear()


async def test_agent_continues_after_its_reader_leaves():
    async def leave_in_the_middle(session):
        turn = session.prompt("flood")
        async for _ in turn:
            await until(lambda: turn.waiting >= MAX_EVENTS)
            return

    async with agent_of(flood(5 * MAX_EVENTS)) as agent:
        session = await agent.new_session("/")
        await leave_in_the_middle(session)
        assert await session.ask("one") == "0         "
