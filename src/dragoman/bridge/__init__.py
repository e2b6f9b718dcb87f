"""The bridge: puts any agent that speaks ACP on stdio before any number of viewers."""

from dragoman.bridge.agents_file import read_agents_file
from dragoman.bridge.bridge import Bridge
from dragoman.bridge.delivery import StreamItem, Viewer, ViewerAccess, ViewerStream
from dragoman.bridge.served_agent import ServedAgent
from dragoman.bridge.settings import AgentLimits, AgentSpec, Settings, ViewerLimits
from dragoman.bridge.web_app import BridgeApp, create_app

__all__ = [
    "AgentLimits",
    "AgentSpec",
    "Bridge",
    "BridgeApp",
    "ServedAgent",
    "Settings",
    "StreamItem",
    "Viewer",
    "ViewerAccess",
    "ViewerLimits",
    "ViewerStream",
    "create_app",
    "read_agents_file",
]
