"""Helpers that start agents, open sessions and read turns."""

import asyncio
from contextlib import asynccontextmanager

from dragoman.client import connect
from dragoman.client.events import TextChunk, TurnFinished
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.wire import StdioTransport


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


@asynccontextmanager
async def open_connection(command, routes):
    """Start an agent and open a bare connection with these handlers. Leaving stops the agent."""
    async with Supervisor() as supervisor:
        child = await supervisor.start(command, inherit=EVERYTHING)
        transport = StdioTransport.for_child(child)
        async with Connection(transport, routes) as connection:
            yield connection


async def read(turn):
    return [event async for event in turn]


async def collect(turn, events):
    """Read a turn into a list, which keeps the events if the turn fails."""
    async for event in turn:
        events.append(event)


def text(events):
    return "".join(event.text for event in events if isinstance(event, TextChunk))


def done(events):
    last = events[-1]
    assert isinstance(last, TurnFinished)
    return last
