"""The hub: one agent, its sessions with their journals, and the viewers on them."""

from dragoman.gateway.hub.event import Event
from dragoman.gateway.hub.hub import Hub
from dragoman.gateway.hub.outlet import Outlet
from dragoman.gateway.hub.viewer import Viewer

__all__ = ["Event", "Hub", "Outlet", "Viewer"]
