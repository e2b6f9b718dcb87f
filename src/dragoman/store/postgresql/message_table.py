"""Messages between the nodes that share a database. Each is received once, in the order in which it was sent.

A sender numbers its messages per receiver. It runs one INSERT per receiver at a time, so rows appear in order. An
INSERT whose answer was lost is repeated and adds nothing. A receiver remembers the last number that it received from
each sender, until that sender has left for good, and removes the rows up to it. The rows for a node that is gone are
removed by the other nodes. Bodies are encrypted for the receiver (`message_cipher`).

Each node listens on its channel. The connection for that does not belong to the pool, because a pooler uses a
connection for others between transactions. Without this connection, nodes poll and see messages a little later.
"""

import uuid
from collections.abc import Sequence
from typing import LiteralString

import msgspec

from dragoman.errors import DragomanError
from dragoman.store.postgresql.database import Connection, Database
from dragoman.store.postgresql.message_cipher import NodeKey

MAX_ROWS = 500
"""The most messages that are read at a time."""

_SEND: LiteralString = """
WITH sent AS (
    INSERT INTO dragoman_message (receiver, sender, number, body)
    SELECT %(receiver)s, %(sender)s, new.* FROM unnest(%(numbers)s::bigint[], %(bodies)b::bytea[]) AS new
    ON CONFLICT DO NOTHING)
SELECT pg_notify(%(channel)s, '')
"""
_LOOK: LiteralString = """
WITH taken AS (
    DELETE FROM dragoman_message m USING unnest(%(senders)s::uuid[], %(numbers)s::bigint[]) AS t (sender, number)
    WHERE m.receiver = %(me)s AND m.sender = t.sender AND m.number <= t.number)
SELECT sender, number, body FROM dragoman_message m WHERE receiver = %(me)s AND NOT EXISTS (
    SELECT FROM unnest(%(senders)s::uuid[], %(numbers)s::bigint[]) AS t (sender, number)
    WHERE t.sender = m.sender AND m.number <= t.number)
ORDER BY sender, number LIMIT %(limit)s
"""
_ENDS: LiteralString = """
SELECT e.session, e.last, CASE WHEN n.beat + n.lease > clock_timestamp() THEN e.owner END
FROM dragoman_end e LEFT JOIN dragoman_node n ON n.id = e.owner WHERE e.session = ANY(%s)
"""
_NODES: LiteralString = """
SELECT id, CASE WHEN beat + lease > clock_timestamp() THEN agents END, key FROM dragoman_node WHERE agents <> '{}'
"""
_KEY: LiteralString = "SELECT key FROM dragoman_node WHERE id = %s AND key IS NOT NULL"
_WAKE: LiteralString = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(channel, '') FROM unnest(%s::text[]) AS channel
"""
SHARES_CHANGED = "shares"
"""The payload of a notification after which shares are read again. Other notifications have no payload."""

WAKE_FOR_SHARES: LiteralString = f"""(
    SELECT count(pg_notify('dragoman_' || replace(n.id::text, '-', ''), '{SHARES_CHANGED}')) FROM dragoman_node n
    WHERE n.beat + n.lease > clock_timestamp() AND n.agents <> '{{}}')"""
"""A column that notifies all bridges when its statement is committed."""

_SWEEP: LiteralString = """
DELETE FROM dragoman_message m WHERE receiver <> %(me)s AND NOT EXISTS (
    SELECT FROM dragoman_node n WHERE n.id = m.receiver AND n.beat + 2 * n.lease > clock_timestamp())
"""


class ReceiverGoneError(DragomanError):
    """The receiver of a message has left for good."""

    def __init__(self, node: uuid.UUID) -> None:
        super().__init__(f"node {node} has left; ask again")


class NodeMessage(msgspec.Struct, frozen=True):
    """A message from another node."""

    sender: uuid.UUID
    number: int
    encrypted: bytes


class SessionTip(msgspec.Struct, frozen=True):
    """The last line of a session, and its owner if that node is alive."""

    last: int
    owner: uuid.UUID | None


class MessageTable:
    """The messages from and to one node."""

    def __init__(self, database: Database, node: uuid.UUID, key: NodeKey) -> None:
        self.database = database
        self._node = node
        self._key = key
        self._public_keys: dict[uuid.UUID, bytes] = {}

    async def send(self, receiver: uuid.UUID, first: int, bodies: Sequence[bytes]) -> None:
        """Send messages, numbered from `first`, and notify their receiver. Repeating the call is safe.

        Raises ReceiverGoneError.
        """
        public = await self._public_key(receiver)
        numbers = list(range(first, first + len(bodies)))
        contexts = (_context(self._node, receiver, number) for number in numbers)
        params = {
            "receiver": receiver,
            "sender": self._node,
            "numbers": numbers,
            "bodies": [
                self._key.encrypt(body, public, context) for body, context in zip(bodies, contexts, strict=True)
            ],
            "channel": channel_of(receiver),
        }
        await self.database.fetch_once(_SEND, params)

    async def look(self, taken: dict[uuid.UUID, int]) -> list[NodeMessage]:
        """Remove the messages up to the last number of each sender in `taken`, and return the next messages."""
        params = {
            "me": self._node,
            "senders": list(taken),
            "numbers": list(taken.values()),
            "limit": MAX_ROWS,
        }
        return [NodeMessage(*row) for row in await self.database.fetch_once(_LOOK, params)]

    def decrypt(self, message: NodeMessage) -> bytes:
        """Return the plain text of a message. Raises UnreadableMessageError."""
        return self._key.decrypt(message.encrypted, _context(message.sender, self._node, message.number))

    async def tips(self, keys: Sequence[int]) -> dict[int, SessionTip]:
        """Return the last lines and the owners of sessions. Deleted sessions are left out."""
        rows = await self.database.fetch_once(_ENDS, (list(keys),))
        return {key: SessionTip(last, owner) for key, last, owner in rows}

    async def nodes(self) -> dict[uuid.UUID, list[str] | None]:
        """Return the bridges, each with the names of its agents, or None if the bridge is silent but may come back."""
        rows = await self.database.fetch_once(_NODES)
        self._public_keys = {node: key for node, _, key in rows if key is not None}
        return {node: agents for node, agents, _ in rows}

    async def wake(self, nodes: Sequence[uuid.UUID]) -> None:
        """Notify nodes to look for messages and for new lines of sessions."""
        await self.database.fetch_once(_WAKE, ([channel_of(node) for node in nodes],))

    async def sweep(self) -> None:
        """Remove the messages for nodes that are gone."""
        await self.database.fetch_once(_SWEEP, {"me": self._node})

    async def listen(self) -> Connection:
        """Return a connection that receives the notifications for this node. Raises the errors of psycopg."""
        connection = await self.database.connect()
        try:
            await connection.execute(f'LISTEN "{channel_of(self._node)}"'.encode())
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _public_key(self, node: uuid.UUID) -> bytes:
        if node not in self._public_keys:
            rows = await self.database.fetch_once(_KEY, (node,))
            if not rows:
                raise ReceiverGoneError(node)
            self._public_keys[node] = rows[0][0]
        return self._public_keys[node]


def _context(sender: uuid.UUID, receiver: uuid.UUID, number: int) -> bytes:
    """Return the place of a message in the table, which its encryption is bound to."""
    return sender.bytes + receiver.bytes + number.to_bytes(8)


def channel_of(node: uuid.UUID) -> str:
    """Return the name of a node's channel."""
    return f"dragoman_{node.hex}"
