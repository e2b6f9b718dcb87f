"""A reader who is slow makes the agent wait; nothing grows, and nothing stops for ever."""

import sys

from dragoman.client import Text
from dragoman.client.turn import MAX_EVENTS, MAX_READS
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
    if message["method"] == "session/prompt":
        for number in range(count if "flood" in line else 1):
            text = f"{number} ".ljust(size)
            content = {"type": "text", "text": text}
            update = {"sessionUpdate": kind, "content": content}
            if kind == "tool_call":
                update |= {"toolCallId": "c", "title": "Dig", "content": [{"type": "content", "content": content}]}
            params = {"sessionId": message["params"]["sessionId"], "update": update}
            print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=number % 100 == 0)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
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


async def test_long_updates_are_held_back_sooner():
    count, size = 400, 100_000
    async with agent_of(flood(count, size, "tool_call")) as agent:
        session = await agent.new_session("/")
        turn = session.prompt("flood")
        await anext(turn)
        await until(lambda: turn.is_held)
        assert turn.waiting * size <= (MAX_READS + 2) * 64 * 1024
        assert len(await read(turn)) == count


async def test_a_call_in_the_middle_of_the_loop_does_not_wait_for_ever():
    async with agent_of(flood(5 * MAX_EVENTS)) as agent:
        session, count = await agent.new_session("/"), 0
        turn = session.prompt("flood")
        async for event in turn:
            count += isinstance(event, Text)
            if count == 1:
                await until(lambda: turn.waiting >= MAX_EVENTS)
                other = await agent.new_session("/")
                assert await other.ask("one") == "0         "
    assert count == 5 * MAX_EVENTS


async def test_a_reader_who_leaves_lets_the_agent_go_on():
    async def leave_in_the_middle(session):
        turn = session.prompt("flood")
        async for _ in turn:
            await until(lambda: turn.waiting >= MAX_EVENTS)
            return

    async with agent_of(flood(5 * MAX_EVENTS)) as agent:
        session = await agent.new_session("/")
        await leave_in_the_middle(session)
        assert await session.ask("one") == "0         "
