"""The registry: the sessions of one agent, each with its state machine, and how they are opened and woken."""

from dragoman.bridge.registry.opening import OpeningQuestions, OpeningRequests
from dragoman.bridge.registry.registry import Announcements, SessionRegistry, SessionRestorer
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import LifeEvent, SessionLife, SessionPhase, WrongTransition

__all__ = [
    "Announcements",
    "LifeEvent",
    "OpeningQuestions",
    "OpeningRequests",
    "ServedSession",
    "SessionLife",
    "SessionPhase",
    "SessionRegistry",
    "SessionRestorer",
    "WrongTransition",
]
