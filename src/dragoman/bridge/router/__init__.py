"""The router: it finds the viewer or the agent that a message is for, and the id under which it goes there."""

from dragoman.bridge.router.questions import AgentRequest, Ownership, Questions
from dragoman.bridge.router.router import AgentMessages, Router

__all__ = ["AgentMessages", "AgentRequest", "Ownership", "Questions", "Router"]
