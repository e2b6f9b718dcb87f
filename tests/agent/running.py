"""Our agent in this process, with a scripted client on its other side."""

import asyncio
from contextlib import asynccontextmanager

from dragoman.agent import Agent
from dragoman.agent.models.script import parse_script
from dragoman.agent.setup import AgentSetup
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair


@asynccontextmanager
async def running_agent(home, script="- - text: hello\n", *, model=None, store=None, **options):
    near, far = memory_pair()
    model = model or parse_script(script, "test.yaml")
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        tasks.create_task(Agent(far, lambda: store or FileStore(home), lambda: AgentSetup(home, model=model)).serve())
        async with ScriptedClient(near, **options) as client:
            yield client


@asynccontextmanager
async def session_in(cwd, script="- - text: hello\n", **options):
    async with running_agent(cwd / ".home", script, **options) as client:
        await client.initialize()
        yield client, await client.new_session(str(cwd))
