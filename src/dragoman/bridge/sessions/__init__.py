"""The sessions of one agent.

sessions.py           the open sessions by id, and how stored ones are opened
session.py            one session: its journal, its viewers, its turns, and whether the agent has it
phase.py              the life cycle of a session at the agent
turns.py              prompts and states in both versions of ACP
prompt_queue.py       prompts that wait for the end of a turn
repeated_prompts.py   prompts that a client sends again after a lost connection
questions.py          requests of the agent, and the viewers that can answer them
ownership.py          terminals and MCP servers that belong to one viewer
subagents.py          sessions that the agent creates for parts of its work
labels.py, lists.py   titles, the archive, and the order of lists
announcements.py      the states of the agent and its sessions, for viewers
"""

from dragoman.bridge.sessions.agent_request import AgentRequest
from dragoman.bridge.sessions.announcements import Announcements
from dragoman.bridge.sessions.labels import (
    ARCHIVED,
    GROUPS,
    NO_LABEL,
    RUNS,
    SESSIONS,
    LabelChanges,
    SessionLabel,
    SessionLabels,
)
from dragoman.bridge.sessions.lists import ListEntry, SessionLists
from dragoman.bridge.sessions.ownership import Ownership
from dragoman.bridge.sessions.phase import SessionPhase
from dragoman.bridge.sessions.questions import Questions
from dragoman.bridge.sessions.session import PASSING, ServedSession, describe_closed
from dragoman.bridge.sessions.sessions import ServedSessions

__all__ = [
    "ARCHIVED",
    "GROUPS",
    "NO_LABEL",
    "PASSING",
    "RUNS",
    "SESSIONS",
    "AgentRequest",
    "Announcements",
    "LabelChanges",
    "ListEntry",
    "Ownership",
    "Questions",
    "ServedSession",
    "ServedSessions",
    "SessionLabel",
    "SessionLabels",
    "SessionLists",
    "SessionPhase",
    "describe_closed",
]
