"""The gateway: puts any agent that speaks ACP on stdio before any number of viewers."""

from dragoman.gateway.agents_file import read_agents_file
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.hub import Event, Hub, Outlet, Viewer
from dragoman.gateway.settings import AgentSpec, Settings

__all__ = ["AgentSpec", "Event", "Gateway", "Hub", "Outlet", "Settings", "Viewer", "read_agents_file"]
