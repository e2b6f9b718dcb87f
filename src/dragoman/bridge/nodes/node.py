"""This bridge as one of the nodes that share a database: its heartbeat, its messages, and when to look.

A node looks when it is woken by a NOTIFY, and else once a second; without the connection that is woken, which a pooler
may refuse, five times a second. One look is: the ends of the sessions that viewers here follow, then the messages of
other nodes, then the records up to those ends. A message that was sent before a record was committed is so taken before
the record is shown.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Protocol

from psycopg import Error

from dragoman.bridge.nodes import messages
from dragoman.bridge.nodes.mailbox import Mailbox
from dragoman.bridge.nodes.messages import NodeMessage
from dragoman.errors import DragomanError, LogFailed
from dragoman.store.postgresql import Database, schema
from dragoman.store.postgresql.errors import LeaseLost
from dragoman.store.postgresql.message_table import MAX_ROWS, MessageTable, SessionTip
from dragoman.store.postgresql.node import LEASE_S, Node
from dragoman.store.postgresql.retention import Pruner
from dragoman.store.retention import RetentionPolicy

LOOK_S = 1.0
"""Between looks of a node that nobody wakes."""

BLIND_LOOK_S = 0.2
"""The same for one that cannot be woken."""

_LISTEN_RETRY_S = 2.0
_LAST_MESSAGES_S = 1.0
_SWEEP_S = 60.0
_STOOD_STILL = 2 / 3
"""Part of the lease after which this process asks whether its sessions were taken."""

_log = logging.getLogger("dragoman.bridge")


class NodeAgent(Protocol):
    """One agent's sessions, as the node needs them."""

    def take(self, message: NodeMessage, sender: uuid.UUID) -> None:
        """Take a message of another node."""
        ...

    def followed(self) -> list[int]:
        """Return the keys of all sessions that viewers here follow and other nodes write."""
        ...

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Show viewers what other nodes have committed; raises DragomanError."""
        ...

    def greet_node(self, node: uuid.UUID) -> None:
        """Tell a node that has come of the sessions that are open here."""
        ...

    async def drop_nodes(self, nodes: set[uuid.UUID]) -> None:
        """Note that nodes are gone; raises DragomanError."""
        ...

    def lose_all(self, failure: LogFailed) -> None:
        """Stop everything that only an owner may do."""
        ...

    async def find_lost(self) -> None:
        """Give up the sessions that another node took while this process stood still; raises DragomanError."""
        ...


class BridgeNode:
    """This bridge among the nodes that share a database."""

    def __init__(
        self, address: str, agents: Sequence[str], lease_s: float | None, retention: RetentionPolicy | None = None
    ) -> None:
        """Raises BadStoreAddress; nothing is connected yet."""
        self.database = Database(address)
        self.node = Node(self.database, lease_s or LEASE_S, agents)
        self.node.on_lost = self._lose
        self._pruner = Pruner(self.database, self.node.id, retention)
        self._table = MessageTable(self.database, self.node.id)
        self.mailbox = Mailbox(self._table)
        self._agents: dict[str, NodeAgent] = {}
        self._nodes: dict[uuid.UUID, list[str]] = {}
        """The nodes that live, this one left out."""
        self._taken: dict[uuid.UUID, int] = {}
        """The last message of each node that was taken."""
        self._woken = asyncio.Event()
        self._is_listening = False
        self._to_wake: set[uuid.UUID] = set()
        self._waking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """See that the tables are there, and begin the heartbeat; raises LogFailed."""
        await schema.check(self.database)
        await self.node.ensure()
        await self._look_for_nodes()
        self._pruner.start()

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """Return the work that takes messages of other nodes, until it is cancelled."""
        return [self._listen(), self._look_regularly()]

    async def close(self) -> None:
        """Give all sessions to other nodes, and leave."""
        await self.mailbox.finish(_LAST_MESSAGES_S)
        if self._waking is not None:
            self._waking.cancel()
        await self._pruner.stop()
        await self.node.leave()
        await self.database.close()

    def add(self, name: str, agent: NodeAgent) -> None:
        """Pass the messages for an agent to it."""
        self._agents[name] = agent

    @property
    def has_others(self) -> bool:
        """Whether other bridges live."""
        return bool(self._nodes)

    def others(self, agent: str) -> list[uuid.UUID]:
        """Return the other nodes that serve an agent of this name."""
        return [node for node, agents in self._nodes.items() if agent in agents]

    def wake(self, nodes: Iterable[uuid.UUID]) -> None:
        """Wake nodes: once for all that was committed while the wake before was under way."""
        self._to_wake.update(nodes)
        if self._waking is None:
            self._waking = asyncio.create_task(self._wake_all())

    async def _wake_all(self) -> None:
        try:
            while self._to_wake:
                nodes, self._to_wake = self._to_wake, set()
                try:
                    await self._table.wake(list(nodes))
                except DragomanError:
                    return  # they look for themselves
        finally:
            self._waking = None

    async def _listen(self) -> None:
        """Be told when to look, again and again: the connection may be lost or refused."""
        while True:
            try:
                connection = await self._table.listen()
                try:
                    self._is_listening = True
                    self._woken.set()
                    async for _ in connection.notifies():
                        self._woken.set()
                finally:
                    self._is_listening = False
                    await connection.close()
            except (Error, OSError) as error:
                _log.debug("no wakes from the database: %s", error)
            await asyncio.sleep(_LISTEN_RETRY_S)

    async def _look_regularly(self) -> None:
        looked_at = time.monotonic()
        next_nodes = next_sweep = 0.0
        is_away = False
        while True:
            try:
                async with asyncio.timeout(LOOK_S if self._is_listening else BLIND_LOOK_S):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            now = time.monotonic()
            try:
                if now - looked_at > self.node.lease_s * _STOOD_STILL:
                    await self._find_lost()
                await self._look()
                if now >= next_nodes:
                    next_nodes = now + LOOK_S
                    await self._look_for_nodes()
                if now >= next_sweep:
                    next_sweep = now + _SWEEP_S
                    await self._table.sweep()
            except DragomanError as error:
                _log.log(logging.DEBUG if is_away else logging.WARNING, "no messages of other nodes: %s", error)
                is_away = True
                await asyncio.sleep(BLIND_LOOK_S)
                continue
            if is_away:
                _log.warning("messages of other nodes are read again")
            is_away = False
            looked_at = time.monotonic()

    async def _look(self) -> None:
        keys = [key for agent in self._agents.values() for key in agent.followed()]
        tips = await self._table.tips(keys) if keys else {}
        while True:
            found = await self._table.look(self._taken)
            for message in found:
                self._taken[message.sender] = message.number
                self._take(message.body, message.sender)
            if len(found) < MAX_ROWS:
                break
        for agent in self._agents.values():
            await agent.follow(tips)

    def _take(self, body: bytes, sender: uuid.UUID) -> None:
        try:
            message = messages.decode(body)
            agent = self._agents.get(message.agent)
            if agent is not None:
                agent.take(message, sender)
        except Exception as error:  # noqa: BLE001 -- one message of another node stops no other
            context = {"message": "the bridge met an error with a message of another node", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _look_for_nodes(self) -> None:
        nodes = await self._table.nodes()
        nodes.pop(self.node.id, None)
        gone, new = self._nodes.keys() - nodes.keys(), nodes.keys() - self._nodes.keys()
        self._nodes = nodes
        for node in new:
            for name, agent in self._agents.items():
                if name in nodes[node]:
                    agent.greet_node(node)
        for node in gone:
            self.mailbox.forget(node)
        for agent in self._agents.values() if gone else ():
            await agent.drop_nodes(set(gone))

    async def _find_lost(self) -> None:
        for agent in self._agents.values():
            await agent.find_lost()

    def _lose(self, failure: LeaseLost) -> None:
        self.mailbox.drop_all()
        for agent in self._agents.values():
            agent.lose_all(failure)
