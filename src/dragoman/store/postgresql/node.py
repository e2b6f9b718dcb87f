"""This process as one of those that share a database: its heartbeat, and the lease that follows from it.

A node owns sessions as long as its heartbeat is younger than its lease, by the clock of the database. Here the lease
counts from before the heartbeat was sent, and ends a third earlier: a node that cannot reach the database stops first,
and only then may another take its sessions over.

Times that several nodes tell are those of the database too: each heartbeat brings its time, and the time since then is
measured here.
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

from dragoman.errors import DragomanError
from dragoman.store.postgresql.database import Database, Row
from dragoman.store.postgresql.errors import DatabaseRefused, DatabaseUnavailable, LeaseLost

LEASE_S = 15.0
"""A node that is gone for so long has lost its sessions."""

_BEATS = 5
"""Heartbeats within a lease."""

OWN_PART = 2 / 3
"""Part of the lease after which this process stops by itself."""

_FORGOTTEN = "1 day"
"""Rows of nodes that ended without a word are removed after this time."""

_BEAT = """
INSERT INTO dragoman_node (id, name, pid, lease, agents, key) VALUES (%s, %s, %s, make_interval(secs => %s), %s, %s)
ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
_LEAVE = "DELETE FROM dragoman_node WHERE id = %s"
_CLEAN = f"DELETE FROM dragoman_node WHERE beat < clock_timestamp() - interval '{_FORGOTTEN}'"


class Node:
    """The heartbeat of this process."""

    def __init__(
        self, database: Database, lease_s: float = LEASE_S, agents: Sequence[str] = (), key: bytes | None = None
    ) -> None:
        """Take the names of the agents that this process serves to viewers, and its public key, if it is a bridge."""
        self.id = uuid.uuid4()
        self.lease_s = lease_s
        self.on_lost: Callable[[LeaseLost], None] | None = None
        """Called when the lease has ended without the database having been reached."""
        self._database = database
        self._agents = list(agents)
        self._key = key
        self._beating: asyncio.Task[None] | None = None
        self._beaten_at = -math.inf
        self._clock_ms: float | None = None
        """The time of the database, less the time of our clock that never jumps; None before the first heartbeat."""
        self._starting = asyncio.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether no other node can have taken the sessions of this one."""
        return self.left_s > 0

    @property
    def left_s(self) -> float:
        """The time for which that is sure."""
        return self._beaten_at + self.lease_s * OWN_PART - time.monotonic()

    def now(self) -> datetime:
        """Return the time of the database."""
        if self._clock_ms is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(self._clock_ms / 1000 + time.monotonic(), UTC)

    def now_ms(self) -> int:
        """Return the time of the database, in milliseconds since 1970."""
        return int(1000 * self.now().timestamp())

    def lost(self) -> LeaseLost:
        """Make the error of a lease that has ended."""
        return LeaseLost(self._database.name, self.lease_s)

    async def ensure(self) -> None:
        """Have a heartbeat; raises DatabaseUnavailable, DatabaseRefused."""
        if self.is_alive:
            return
        async with self._starting:
            if not self.is_alive:
                sent_at = time.monotonic()
                self._note_beat(sent_at, await self._database.fetch(_BEAT, self._row()))
            if self._beating is None or self._beating.done():
                self._beating = asyncio.create_task(self._beat())

    async def leave(self) -> None:
        """End the heartbeat; sessions that are still owned can be taken at once."""
        beating, self._beating = self._beating, None
        if beating is None:
            return
        beating.cancel()
        await asyncio.wait([beating])
        self._beaten_at = -math.inf
        with suppress(DragomanError):
            await self._database.fetch(_LEAVE, (self.id,), patience_s=1.0)

    def _row(self) -> tuple[object, ...]:
        return self.id, socket.gethostname(), os.getpid(), self.lease_s, self._agents, self._key

    def _note_beat(self, sent_at: float, beaten: list[Row]) -> None:
        self._beaten_at = sent_at
        self._clock_ms = beaten[0][0] - 1000 * time.monotonic()

    async def _beat(self) -> None:
        pause_s = self.lease_s / _BEATS
        was_alive = True
        with suppress(DatabaseUnavailable, DatabaseRefused):
            await self._database.fetch_once(_CLEAN)
        while True:
            await asyncio.sleep(pause_s if self.is_alive else min(pause_s, 1.0))
            sent_at = time.monotonic()
            with suppress(DatabaseUnavailable, DatabaseRefused, TimeoutError):
                async with asyncio.timeout(max(pause_s, 1.0)):
                    beaten = await self._database.fetch_once(_BEAT, self._row())
                self._note_beat(sent_at, beaten)
            if was_alive and not self.is_alive and self.on_lost is not None:
                self.on_lost(self.lost())
            was_alive = self.is_alive
