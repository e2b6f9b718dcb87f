"""The router: which viewer is asked, who is answered, and under which id."""

from dragoman.bridge.router.agent_messages import AgentMessages
from dragoman.bridge.router.ownership import Ownership
from dragoman.bridge.router.questions import AgentRequest, Questions
from dragoman.bridge.router.router import Router

__all__ = ["AgentMessages", "AgentRequest", "Ownership", "Questions", "Router"]
