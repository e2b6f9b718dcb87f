"""What the tests of the client share."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.client import Done, Text, connect
from dragoman.testing import dump_turns

RAW_AGENT = str(Path(__file__).parent / "raw_agent.py")


def scripted(*turns):
    """Return the command of a scripted agent, which keeps to the protocol."""
    return [sys.executable, "-m", "dragoman.testing", dump_turns(list(turns))]


def raw(script=None, *prompts, capabilities=None):
    """Return the command of an agent that says what it is told; `prompts` are what it does for each prompt."""
    script = dict(script or {})
    if prompts:
        script["session/prompt"] = list(prompts)
    if capabilities is not None:
        script["initialize"] = [[{"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}]]
    return [sys.executable, RAW_AGENT, json.dumps(script)]


def chunk(text):
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}


END = {"result": {"stopReason": "end_turn"}}


@asynccontextmanager
async def agent_of(command, **options):
    async with asyncio.timeout(30), connect(command, **options) as agent:
        yield agent


@asynccontextmanager
async def session_with(command, cwd="/", **options):
    async with agent_of(command, **options) as agent:
        yield await agent.new_session(cwd)


async def read(turn):
    return [event async for event in turn]


async def collect(turn, events):
    """Read into a list that is still there when the turn fails."""
    async for event in turn:
        events.append(event)


def text(events):
    return "".join(event.text for event in events if isinstance(event, Text))


def done(events):
    last = events[-1]
    assert isinstance(last, Done)
    return last


async def until(condition):
    """Look again and again; the timeout of the connection bounds it."""
    while not condition():
        await asyncio.sleep(0.001)
