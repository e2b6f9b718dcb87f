"""The router: it finds the viewer or the agent that a message is for, and the id under which it goes there."""

from dragoman.bridge.router.agent_messages import AgentMessages
from dragoman.bridge.router.logins import PendingLogin, PendingLogins
from dragoman.bridge.router.questions import AgentRequest, Ownership, Questions
from dragoman.bridge.router.router import Router

__all__ = ["AgentMessages", "AgentRequest", "Ownership", "PendingLogin", "PendingLogins", "Questions", "Router"]
