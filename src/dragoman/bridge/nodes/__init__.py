"""Several bridges on one database: which node owns a session, and how viewers on other nodes use it.

node.py             this bridge as one of the nodes: heartbeat, messages, wakes
access.py           shares and codes of links, the same on every node
code_directory.py   codes that lead to something at one node
mailbox.py          messages to other nodes, in order
messages.py         what nodes say to each other
agent_node.py       one agent's sessions among the nodes: lost ones, lists, announcements
remote_session.py   a session of another node, and its journal, as viewers here read it
relay.py            viewers here, on sessions that another node owns
remote_viewer.py    viewers of other nodes, on sessions that this node owns
labels.py           labels of sessions, in the database

Imported only by a bridge with a store: it needs the package psycopg.
"""

from dragoman.bridge.nodes.agent_node import AgentNode, AgentParts
from dragoman.bridge.nodes.node import BridgeNode

__all__ = ["AgentNode", "AgentParts", "BridgeNode"]
