"""Several bridges on one database: which node owns a session, and how viewers on other nodes use it.

node.py             this bridge as one of the nodes: heartbeat, messages, wakes
access.py           shares and codes of links, the same on every node
code_directory.py   codes that lead to something at one node
mailbox.py          messages to other nodes, in order
messages.py         what nodes say to each other
agent_node.py       one agent's sessions among the nodes: lost ones, lists, announcements
remote_sessions.py  sessions that other nodes own: their owners, and viewers here that follow them
remote_session.py   one of these sessions
owner_link.py       the link of one viewer here to one owner
remote_viewer.py    viewers of other nodes, on sessions that this node owns
labels.py           labels of sessions, in the database

Imported only by a bridge with a store: it needs the package psycopg.
"""

from dragoman.bridge.nodes.agent_node import AgentNode, AgentParts
from dragoman.bridge.nodes.node import BridgeNode

__all__ = ["AgentNode", "AgentParts", "BridgeNode"]
