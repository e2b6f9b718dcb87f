"""Messages between the nodes that share a database: each is taken once, in the order in which its sender sent them.

A sender numbers its messages for each receiver and has one INSERT for a receiver under way at a time, so that they
appear in order. An INSERT whose answer was lost is sent again and adds nothing. A receiver remembers the last number of
each sender that it took, until the sender has left for good, and then removes the rows. The rows of a node that is gone
are removed by the others. Their bodies are encrypted for the receiver (`message_cipher`).

Each node listens on a channel of its own. The connection for that is not one of the pool, because a pooler gives a
connection away between transactions. Without it nodes look for themselves, a little later.
"""

import uuid
from collections.abc import Sequence
from typing import LiteralString

import msgspec

from dragoman.errors import DragomanError
from dragoman.store.postgresql.database import Connection, Database
from dragoman.store.postgresql.message_cipher import NodeKey

MAX_ROWS = 500
"""Messages that are read at a time."""

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
"""The payload of a wake after which shares are read again; all others have none."""

WAKE_FOR_SHARES: LiteralString = f"""(
    SELECT count(pg_notify('dragoman_' || replace(n.id::text, '-', ''), '{SHARES_CHANGED}')) FROM dragoman_node n
    WHERE n.beat + n.lease > clock_timestamp() AND n.agents <> '{{}}')"""
"""A column that wakes all bridges when the statement around it is committed."""

_SWEEP: LiteralString = """
DELETE FROM dragoman_message m WHERE receiver <> %(me)s AND NOT EXISTS (
    SELECT FROM dragoman_node n WHERE n.id = m.receiver AND n.beat + 2 * n.lease > clock_timestamp())
"""


class ReceiverGone(DragomanError):
    """A node that is sent a message has left for good."""

    def __init__(self, node: uuid.UUID) -> None:
        super().__init__(f"node {node} has left; ask again")


class NodeMessage(msgspec.Struct, frozen=True):
    """A message of another node."""

    sender: uuid.UUID
    number: int
    encrypted: bytes


class SessionTip(msgspec.Struct, frozen=True):
    """The end of a session, and the node that owns it if that one lives."""

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
        """Send messages, numbered from `first`, and wake their receiver; does no harm when it is done twice.

        Raises ReceiverGone.
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
        """Remove messages that were taken, given the last number of each sender, and return the next ones."""
        params = {
            "me": self._node,
            "senders": list(taken),
            "numbers": list(taken.values()),
            "limit": MAX_ROWS,
        }
        return [NodeMessage(*row) for row in await self.database.fetch_once(_LOOK, params)]

    def decrypt(self, message: NodeMessage) -> bytes:
        """Return what a message says; raises UnreadableMessage."""
        return self._key.decrypt(message.encrypted, _context(message.sender, self._node, message.number))

    async def tips(self, keys: Sequence[int]) -> dict[int, SessionTip]:
        """Return the ends and the owners of sessions; one that is no more is left out."""
        rows = await self.database.fetch_once(_ENDS, (list(keys),))
        return {key: SessionTip(last, owner) for key, last, owner in rows}

    async def nodes(self) -> dict[uuid.UUID, list[str] | None]:
        """Return the bridges, each with the names of its agents; None for one that is gone and may come back."""
        rows = await self.database.fetch_once(_NODES)
        self._public_keys = {node: key for node, _, key in rows if key is not None}
        return {node: agents for node, agents, _ in rows}

    async def wake(self, nodes: Sequence[uuid.UUID]) -> None:
        """Have nodes look for messages and for ends of sessions."""
        await self.database.fetch_once(_WAKE, ([channel_of(node) for node in nodes],))

    async def sweep(self) -> None:
        """Remove the messages for nodes that are gone."""
        await self.database.fetch_once(_SWEEP, {"me": self._node})

    async def listen(self) -> Connection:
        """Make a connection that is told when to look; raises as psycopg does."""
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
                raise ReceiverGone(node)
            self._public_keys[node] = rows[0][0]
        return self._public_keys[node]


def _context(sender: uuid.UUID, receiver: uuid.UUID, number: int) -> bytes:
    """Name the place of a message in the table."""
    return sender.bytes + receiver.bytes + number.to_bytes(8)


def channel_of(node: uuid.UUID) -> str:
    """Name the channel of a node."""
    return f"dragoman_{node.hex}"
