"""The registry: the sessions of one agent, each with its state machine, and how they are opened and woken."""

from dragoman.bridge.registry.labels import (
    ARCHIVED,
    GROUPS,
    NO_LABEL,
    RUNS,
    SESSIONS,
    LabelChanges,
    SessionLabel,
    SessionLabels,
)
from dragoman.bridge.registry.lists import ListEntry, SessionLists
from dragoman.bridge.registry.opening import OpeningRequests
from dragoman.bridge.registry.opening_answers import OpeningQuestions
from dragoman.bridge.registry.registry import Announcements, SessionRegistry
from dragoman.bridge.registry.restorer import SessionRestorer
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import LifeEvent, SessionLife, SessionPhase, WrongTransition

__all__ = [
    "ARCHIVED",
    "GROUPS",
    "NO_LABEL",
    "RUNS",
    "SESSIONS",
    "Announcements",
    "LabelChanges",
    "LifeEvent",
    "ListEntry",
    "OpeningQuestions",
    "OpeningRequests",
    "ServedSession",
    "SessionLabel",
    "SessionLabels",
    "SessionLife",
    "SessionLists",
    "SessionPhase",
    "SessionRegistry",
    "SessionRestorer",
    "WrongTransition",
]
