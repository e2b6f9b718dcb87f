"""An agent of the kit in this process, and a client that is connected to it."""

from contextlib import asynccontextmanager

from dragoman.agent import Agent
from dragoman.client.policies import allow_all


def make_agent(tmp_path, function=None, **options):
    """Create an agent whose sessions are stored in the test's directory."""
    agent = Agent("test", version="1", home=tmp_path / "home", **options)
    if function is not None:
        agent.on_prompt(function)
    return agent


@asynccontextmanager
async def session_with(agent, cwd, *, policy=None, mcp_servers=(), **options):
    """Connect to an agent and create a session."""
    async with agent.connect(policy=policy or allow_all(), **options) as remote:
        yield await remote.new_session(cwd, mcp_servers=list(mcp_servers))
