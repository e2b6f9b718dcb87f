"""Helpers for tests of sessions that are loaded or resumed."""

import asyncio
import json
from contextlib import asynccontextmanager

from dragoman.assistant import make_agent
from dragoman.assistant.models.model import ReplyText
from dragoman.assistant.models.script import parse_script
from dragoman.assistant.setup import AgentSetup
from dragoman.protocol import v1
from dragoman.protocol.methods import (
    SESSION_CLOSE,
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_LIST,
    SESSION_LOAD,
    SESSION_RESUME,
)
from dragoman.store import FileStore
from dragoman.wire import memory_pair
from tests.assistant.running import running_agent
from tests.wire.raw_end import raw_end

SCRIPT = """
- - thought: hm
  - text: one
  - text: two
  - usage: {input: 3, output: 4}
- - tool: {name: fly, arguments: {to: moon}}
- - text: cannot
- - text: started
  - delay_s: 600
- - text: five
"""


class Remembers:
    """A model that reports how much it remembers."""

    name = "remembers"
    context_size = 1000
    content_types = frozenset()
    thought_levels = ()
    summarises = True

    def start(self):
        return self

    async def close(self):
        pass

    async def reply(self, request):
        yield ReplyText(f"{len(request.messages)} messages")


async def load(client, session_id, cwd, **options):
    request = v1.LoadSessionRequest(session_id=session_id, cwd=str(cwd), mcp_servers=[], **options)
    return await client.connection.call(SESSION_LOAD, request)


async def resume(client, session_id, cwd, **options):
    request = v1.ResumeSessionRequest(session_id=session_id, cwd=str(cwd), **options)
    return await client.connection.call(SESSION_RESUME, request)


async def fork(client, session_id, cwd, **options):
    request = v1.ForkSessionRequest(session_id=session_id, cwd=str(cwd), **options)
    return (await client.connection.call(SESSION_FORK, request)).session_id


async def close(client, session_id):
    return await client.connection.call(SESSION_CLOSE, v1.CloseSessionRequest(session_id=session_id))


async def delete(client, session_id):
    return await client.connection.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=session_id))


async def listed(client, cwd=None, cursor=None):
    request = v1.ListSessionsRequest(cwd=cwd and str(cwd), cursor=cursor)
    return await client.connection.call(SESSION_LIST, request)


def files(home):
    return sorted(home.glob("projects/*/session-*.jsonl"))


async def converse(place, *prompts, script=SCRIPT, **options):
    """Hold a conversation with a new agent. Return its session id and the updates."""
    cwd, home = place
    async with running_agent(home, script, **options) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        for prompt in prompts:
            await client.prompt(session_id, prompt)
        return session_id, client.conversation()


def without_user(updates):
    return [update for update in updates if not isinstance(update, v1.UserMessageChunk)]


@asynccontextmanager
async def raw_client(home, script):
    """Connect raw lines to our agent."""
    near, far = memory_pair()
    model = parse_script(script, "f")
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        tasks.create_task(make_agent(lambda: FileStore(home), lambda: AgentSetup(home, model=model)).serve(far))
        async with raw_end(near) as end:
            await end.ask({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
            yield end


async def lines_until_answer(end, request):
    """Send a request and return the lines before its answer."""
    end.send(request)
    lines = [await end.lines.get()]
    while b'"method":"session/update"' in lines[-1]:
        lines.append(await end.lines.get())
    updates = [line for line in lines[:-1] if b"available_commands_update" not in line]
    return updates, json.loads(lines[-1])["result"]
