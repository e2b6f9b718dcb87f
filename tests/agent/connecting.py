"""An agent of the kit in this process, and a client that talks with it."""

from contextlib import asynccontextmanager

from dragoman.agent import Agent
from dragoman.client import allow_all


def make_agent(tmp_path, function=None, **options):
    """Return an agent whose sessions are kept in the test's directory."""
    agent = Agent("test", version="1", home=tmp_path / "home", **options)
    if function is not None:
        agent.on_prompt(function)
    return agent


@asynccontextmanager
async def session_with(agent, cwd, *, policy=None, mcp_servers=(), **options):
    """Connect to an agent, and begin a session."""
    async with agent.connect(policy=policy or allow_all(), **options) as remote:
        yield await remote.new_session(cwd, mcp_servers=list(mcp_servers))
