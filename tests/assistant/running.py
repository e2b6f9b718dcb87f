"""Our agent in this process, connected to a scripted client."""

import asyncio
from contextlib import asynccontextmanager

from dragoman.assistant import make_agent
from dragoman.assistant.models.script import parse_script
from dragoman.assistant.setup import AgentSetup
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_REQUEST_PERMISSION
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair


@asynccontextmanager
async def running_agent(home, script="- - text: hello\n", *, model=None, store=None, **options):
    near, far = memory_pair()
    model = model or parse_script(script, "test.yaml")
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        tasks.create_task(
            make_agent(lambda: store or FileStore(home), lambda: AgentSetup(home, model=model)).serve(far)
        )
        async with ScriptedClient(near, **options) as client:
            yield client


@asynccontextmanager
async def session_in(cwd, script="- - text: hello\n", **options):
    async with running_agent(cwd / ".home", script, **options) as client:
        await client.initialize()
        yield client, await client.new_session(str(cwd))


def answer_with(client, option_id, *, remember=None):
    """Answer permission requests with this option and scope. Return the list of requests."""
    asked = []
    meta = None if remember is None else {"dragoman/remember": remember}

    async def answer(params):
        asked.append(params)
        return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id=option_id, meta=meta))

    client.routes.on_request(SESSION_REQUEST_PERMISSION, answer)
    return asked


async def set_mode(client, session_id, mode):
    await client.connection.call_extension("session/set_mode", {"sessionId": session_id, "modeId": mode})
