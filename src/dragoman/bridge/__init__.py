"""The bridge: serves any agent that speaks ACP on stdio to any number of viewers."""

from dragoman.bridge.agents_file import read_agents_file
from dragoman.bridge.bridge import Bridge
from dragoman.bridge.delivery import StreamItem
from dragoman.bridge.served_agent import ServedAgent
from dragoman.bridge.settings import AgentLimits, AgentSpec, BridgeSettings, ViewerLimits
from dragoman.bridge.viewers import Viewer, ViewerAccess, ViewerStream
from dragoman.bridge.web_app import BridgeApp, create_app

__all__ = [
    "AgentLimits",
    "AgentSpec",
    "Bridge",
    "BridgeApp",
    "BridgeSettings",
    "ServedAgent",
    "StreamItem",
    "Viewer",
    "ViewerAccess",
    "ViewerLimits",
    "ViewerStream",
    "create_app",
    "read_agents_file",
]
