"""The node: this process among those that share a database, with its heartbeat and its lease.

A node owns sessions while its heartbeat is younger than its lease, by the clock of the database. The node itself counts
the lease from before the heartbeat was sent and stops after two thirds of it. So a node that cannot reach the database
stops writing before another node may take over its sessions.

A session that a bridge serves has two owners: the bridge writes its journal, and the agent writes its session log. Both
must change owners together, or the next bridge gets a session that its agent cannot open. So an agent obeys the lease
of its bridge:

1. The bridge passes the id of its node to the agent, in the environment (`opening.NODE_VARIABLE`).
2. The agent's heartbeat copies the heartbeat and the lease of that node into its own row. Both leases end at the same
   moment, even if only the bridge has stopped. No other code needs to know this, because a search for the owner of a
   log finds a silent node.
3. The agent knows the age of the copy and stops writing after two thirds of the lease.
4. A bridge that runs again sees that its lease has ended before it sends the next heartbeat, and kills its agent
   (`check`). Until that heartbeat the lease of the agent has ended as well. So the agent cannot write for a bridge that
   has lost the session.

If the bridge is not in the agent's database, its lease is not obeyed, and the agent is an independent node.

Times that several nodes compare are from the clock of the database. Each heartbeat returns that time, and the node
measures the time since then.
"""

import asyncio
import math
import os
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import LiteralString

from dragoman.errors import DragomanError
from dragoman.store.postgresql.database import Database, Row
from dragoman.store.postgresql.errors import DatabaseRefusedError, DatabaseUnavailableError, LeaseLostError

LEASE_S = 15.0
"""A node without a heartbeat for this long has lost its sessions."""

_BEATS = 5
"""The number of heartbeats per lease."""

_FOLLOWED_BEATS = 10
"""The same for an agent. The age of its copy is that of its bridge's heartbeat plus that of its own."""

OWN_PART = 2 / 3
"""The part of the lease after which this process stops writing."""

_FORGOTTEN = "1 day"
"""Rows of nodes that ended without leaving are removed after this time."""

_BEAT = """
INSERT INTO dragoman_node (id, name, pid, lease, agents, key) VALUES (%s, %s, %s, make_interval(secs => %s), %s, %s)
ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0::float, extract(epoch FROM lease)::float
"""
_EXPIRY_MARGIN_S = 0.01
"""Time after the end of a lease at which it is checked, because timers are not exact."""

_FOLLOW = """
INSERT INTO dragoman_node (id, name, pid, lease, beat)
SELECT %s, %s, %s, bridge.lease, bridge.beat FROM dragoman_node bridge WHERE bridge.id = %s
ON CONFLICT (id) DO UPDATE SET lease = excluded.lease, beat = excluded.beat
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    extract(epoch FROM clock_timestamp() - beat)::float, extract(epoch FROM lease)::float
"""
_LEAVE = "DELETE FROM dragoman_node WHERE id = %s"
_CLEAN = f"DELETE FROM dragoman_node WHERE beat < clock_timestamp() - interval '{_FORGOTTEN}'"


class Node:
    """The heartbeat of this process."""

    def __init__(
        self,
        database: Database,
        lease_s: float = LEASE_S,
        agents: Sequence[str] = (),
        key: bytes | None = None,
        *,
        bridge: uuid.UUID | None = None,
    ) -> None:
        """Create the node. Nothing is sent before `ensure`.

        A bridge passes the names of the `agents` that it serves to viewers, and its public `key`. An agent passes the
        node of its `bridge`, whose lease it obeys.
        """
        self.id = uuid.uuid4()
        self.lease_s = lease_s
        self.on_lost: Callable[[LeaseLostError], None] | None = None
        """Called when the lease has ended because the database could not be reached."""
        self._database = database
        self._agents = list(agents)
        self._key = key
        self._bridge = bridge
        self._beating: asyncio.Task[None] | None = None
        self._beaten_at = -math.inf
        self._has_lease = False
        """Whether there was a lease at the last check."""
        self._clock_ms: float | None = None
        """The time of the database minus our monotonic time. None before the first heartbeat."""
        self._expiry: asyncio.TimerHandle | None = None
        """Notices the end of the lease in time, because the cancellation of a hanging heartbeat takes seconds."""
        self._starting = asyncio.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether this node has its lease, so that no other node can have taken over its sessions."""
        return self.left_s > 0

    @property
    def left_s(self) -> float:
        """The time until `is_alive` ends, without another heartbeat."""
        return self._beaten_at + self.lease_s * OWN_PART - time.monotonic()

    def now(self) -> datetime:
        """Return the time of the database."""
        if self._clock_ms is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(self._clock_ms / 1000 + time.monotonic(), UTC)

    def now_ms(self) -> int:
        """Return the time of the database in milliseconds since 1970."""
        return int(1000 * self.now().timestamp())

    def lost(self) -> LeaseLostError:
        """Return the error for a lease that has ended."""
        return LeaseLostError(self._database.name, self.lease_s, of_bridge=self._bridge is not None)

    def check(self) -> None:
        """Call `on_lost` if the lease has ended since the last heartbeat. A suspended process does not notice it."""
        if self._has_lease and not self.is_alive:
            self._has_lease = False
            if self.on_lost is not None:
                self.on_lost(self.lost())

    async def ensure(self) -> None:
        """Send a heartbeat if the lease has ended, and keep sending them.

        Raises DatabaseUnavailableError, DatabaseRefusedError, and LeaseLostError while the bridge is silent.
        """
        if self.is_alive:
            return
        async with self._starting:
            if not self.is_alive:
                self.check()
                await self._begin()
            if self._beating is None or self._beating.done():
                self._beating = asyncio.create_task(self._beat())

    async def leave(self) -> None:
        """Stop the heartbeat and remove the row, so that others can acquire our sessions at once."""
        beating, self._beating = self._beating, None
        if beating is None:
            return
        beating.cancel()
        if self._expiry is not None:
            self._expiry.cancel()
        await asyncio.wait([beating])
        self._beaten_at = -math.inf
        self._has_lease = False
        with suppress(DragomanError):
            await self._database.fetch(_LEAVE, (self.id,), patience_s=1.0)

    async def _begin(self) -> None:
        sent_at = time.monotonic()
        beaten = await self._database.fetch(*self._statement())
        if not beaten and self._clock_ms is None:
            self._bridge = None  # it is in another database, so its lease does not apply to sessions in this one
            beaten = await self._database.fetch(*self._statement())
        self._record_beat(sent_at, beaten)
        if not self.is_alive:
            raise self.lost()

    def _statement(self) -> tuple[LiteralString, tuple[object, ...]]:
        about = self.id, socket.gethostname(), os.getpid()
        if self._bridge is not None:
            return _FOLLOW, (*about, self._bridge)
        return _BEAT, (*about, self.lease_s, self._agents, self._key)

    def _record_beat(self, sent_at: float, beaten: list[Row]) -> None:
        if not beaten:
            return  # the bridge has left
        now_ms, age_s, self.lease_s = beaten[0]
        self._beaten_at = sent_at - age_s
        self._clock_ms = now_ms - 1000 * time.monotonic()
        self._has_lease = self._has_lease or self.is_alive
        if self._expiry is not None:
            self._expiry.cancel()
        if self.is_alive:
            self._expiry = asyncio.get_running_loop().call_later(self.left_s + _EXPIRY_MARGIN_S, self.check)

    async def _beat(self) -> None:
        with suppress(DatabaseUnavailableError, DatabaseRefusedError):
            await self._database.fetch_once(_CLEAN)
        while True:
            pause_s = self.lease_s / (_BEATS if self._bridge is None else _FOLLOWED_BEATS)
            await asyncio.sleep(pause_s if self.is_alive else min(pause_s, 1.0))
            self.check()
            sent_at = time.monotonic()
            with suppress(DatabaseUnavailableError, DatabaseRefusedError, TimeoutError):
                async with asyncio.timeout(max(pause_s, 1.0)):
                    beaten = await self._database.fetch_once(*self._statement())
                self._record_beat(sent_at, beaten)
            self.check()
