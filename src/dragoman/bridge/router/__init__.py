"""Routes messages between viewers and the agent.

router.py             checks each message of a viewer and calls its handler
handshake.py          `initialize`
opening_requests.py   session/new, fork, load and resume
session_requests.py   prompts, queued prompts, steering, close and delete
listing.py            session/list
label_requests.py     session/set_title, archive, unarchive and status
session_pages.py      the lists of the page
search.py             `_dragoman/search`
file_requests.py      files for the composer, and reverts
answer_links.py       approval links
logins.py             logins at MCP servers
inspection.py         the wire inspector
agent_messages.py     messages of the agent
other_nodes.py        sessions that other nodes own

A handler returns a `Reply`, which is in reply.py.
"""

from dragoman.bridge.router.agent_messages import AgentMessages
from dragoman.bridge.router.answer_links import AnswerLink, AnswerLinks, LinkedQuestion
from dragoman.bridge.router.code_register import CodeKind
from dragoman.bridge.router.logins import BroughtLogin, PendingLogin, PendingLogins
from dragoman.bridge.router.router import Router

__all__ = [
    "AgentMessages",
    "AnswerLink",
    "AnswerLinks",
    "BroughtLogin",
    "CodeKind",
    "LinkedQuestion",
    "PendingLogin",
    "PendingLogins",
    "Router",
]
