"""The router: it finds the viewer or the agent that a message is for, and the id under which it goes there."""

from dragoman.bridge.router.agent_messages import AgentMessages
from dragoman.bridge.router.agent_request import AgentRequest
from dragoman.bridge.router.answer_links import AnswerLink, AnswerLinks, LinkedQuestion
from dragoman.bridge.router.code_register import CodeKind
from dragoman.bridge.router.logins import BroughtLogin, PendingLogin, PendingLogins
from dragoman.bridge.router.questions import Ownership, Questions
from dragoman.bridge.router.router import Router

__all__ = [
    "AgentMessages",
    "AgentRequest",
    "AnswerLink",
    "AnswerLinks",
    "BroughtLogin",
    "CodeKind",
    "LinkedQuestion",
    "Ownership",
    "PendingLogin",
    "PendingLogins",
    "Questions",
    "Router",
]
