"""The hub: one agent, its sessions with their journals, and the viewers on them."""

from dragoman.bridge.hub.event import Event
from dragoman.bridge.hub.hub import Hub
from dragoman.bridge.hub.outlet import Outlet
from dragoman.bridge.hub.viewer import Viewer

__all__ = ["Event", "Hub", "Outlet", "Viewer"]
