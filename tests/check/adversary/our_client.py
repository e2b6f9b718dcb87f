"""A program built on `dragoman.client` that uses all of its features: `our_client.py DIRECTORY COMMAND…`."""

import asyncio
import signal
import sys

from dragoman.client import Elicitation, accept, connect, decline
from dragoman.client.agent import AgentConnection
from dragoman.client.policies import PermissionQuestion, ask_user
from dragoman.client.sessions.session import Session
from dragoman.errors import DragomanError
from dragoman.protocol import v1

PIXEL = "iVBORw0KGgo="


async def decide(question: PermissionQuestion) -> bool:
    if "Wait to be cancelled" in str(question.tool_call.title):
        await asyncio.Event().wait()
    return True


def fill_in(elicitation: Elicitation):
    return accept({"name": "me"}) if elicitation.schema is not None else decline()


async def talk(agent: AgentConnection, directory: str) -> None:
    capabilities = agent.capabilities
    if agent.auth_methods:
        await agent.authenticate(agent.auth_methods[0].id)
    servers = [[sys.executable], *(["http://127.0.0.1:9/mcp"] if capabilities.mcp_capabilities.http else [])]
    more = ["/"] if capabilities.session_capabilities.additional_directories else []
    session = await agent.new_session(directory, mcp_servers=servers, additional_directories=more)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, session.cancel)
    if session.modes is not None:
        await session.set_mode("work")
        await session.set_config_option("model", "large")
    await prompt(session, with_image=capabilities.prompt_capabilities.image)
    if capabilities.load_session:
        await reopen_sessions(agent, session, directory)


async def prompt(session: Session, *, with_image: bool) -> None:
    blocks: list[v1.ContentBlock] = [
        v1.TextContent(text="Do all you can."),
        v1.ResourceLink(name="notes", uri="file:///notes.txt"),
    ]
    if with_image:
        blocks.append(v1.ImageContent(mime_type="image/png", data=PIXEL))
    async for _ in session.prompt(blocks):
        if session.modes is not None and session.modes.current_mode_id == "work":
            await session.set_mode("ask")


async def reopen_sessions(agent: AgentConnection, session: Session, directory: str) -> None:
    await session.close()
    async for _ in agent.list_sessions():
        pass
    async for _ in agent.list_sessions(directory):
        pass
    loaded = await agent.load_session(session.id, directory)
    await loaded.close()
    resumed = await agent.resume_session(session.id, directory)
    await resumed.delete()
    await agent.logout()


async def main(directory: str, *command: str) -> None:
    async with connect(command, policy=ask_user(decide), files="write", terminals=True, elicit=fill_in) as agent:
        await talk(agent, directory)


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except DragomanError as error:
        sys.exit(str(error))
