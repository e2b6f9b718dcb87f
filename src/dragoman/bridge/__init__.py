"""The bridge: puts any agent that speaks ACP on stdio before any number of viewers."""

from dragoman.bridge.agents_file import read_agents_file
from dragoman.bridge.bridge import Bridge
from dragoman.bridge.hub import Event, Hub, Outlet, Viewer
from dragoman.bridge.settings import AgentSpec, Settings

__all__ = ["AgentSpec", "Bridge", "Event", "Hub", "Outlet", "Settings", "Viewer", "read_agents_file"]
