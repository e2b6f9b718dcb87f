"""The router: which viewer is asked, who is answered, and under which id."""

from dragoman.bridge.router.questions import AgentRequest, Ownership, Questions
from dragoman.bridge.router.router import AgentMessages, Router

__all__ = ["AgentMessages", "AgentRequest", "Ownership", "Questions", "Router"]
