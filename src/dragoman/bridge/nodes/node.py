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
from collections.abc import Container, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from psycopg import Error

from dragoman.bridge.guard.credentials import hash_code
from dragoman.bridge.nodes import messages
from dragoman.bridge.nodes.access import NodeAccess
from dragoman.bridge.nodes.code_directory import NodeGone
from dragoman.bridge.nodes.mailbox import Mailbox
from dragoman.bridge.nodes.messages import BringLogin, ForAgent, LoginBrought, Missed, OpenQuestion, QuestionOpened
from dragoman.bridge.router import BroughtLogin, LinkedQuestion
from dragoman.bridge.router.logins import PASS_TIMEOUT_S, PASSED
from dragoman.errors import DragomanError, LogFailed
from dragoman.store.postgresql import Database, schema
from dragoman.store.postgresql.errors import LeaseLost
from dragoman.store.postgresql.message_cipher import NodeKey
from dragoman.store.postgresql.message_table import MAX_ROWS, MessageTable, NodeMessage, SessionTip
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
"""Part of the lease after which other nodes may have taken this one for dead."""

_log = logging.getLogger("dragoman.bridge")


class NodeAgent(Protocol):
    """One agent's sessions, as the node needs them."""

    def take(self, message: ForAgent, sender: uuid.UUID) -> None:
        """Take a message of another node."""
        ...

    def followed(self) -> list[int]:
        """Return the keys of all sessions that viewers here follow and other nodes write."""
        ...

    async def follow(self, tips: dict[int, SessionTip]) -> None:
        """Show viewers what other nodes have committed; raises DragomanError."""
        ...

    def greet_node(self, node: uuid.UUID) -> None:
        """Tell a node that was found of this one, and of the sessions that are open here."""
        ...

    def drop_nodes(self, nodes: set[uuid.UUID]) -> None:
        """Note that nodes are gone."""
        ...

    def lose_all(self, failure: LogFailed) -> None:
        """Stop everything that only an owner may do."""
        ...

    def lose_touch(self, node: uuid.UUID, reason: str) -> None:
        """Note that messages for a node were dropped."""
        ...

    async def catch_up(self) -> None:
        """Note what other nodes did of which this one was not told; raises DragomanError."""
        ...


class NodeWakes:
    """Wakes other nodes: once for all that was committed while the wake before was under way."""

    def __init__(self, table: MessageTable) -> None:
        self._table = table
        self._to_wake: set[uuid.UUID] = set()
        self._waking: asyncio.Task[None] | None = None

    def wake(self, nodes: Iterable[uuid.UUID]) -> None:
        """Wake nodes soon."""
        self._to_wake.update(nodes)
        if self._waking is None:
            self._waking = asyncio.create_task(self._wake_all())

    def cancel(self) -> None:
        """Wake nobody any more."""
        if self._waking is not None:
            self._waking.cancel()

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


class TakenMessages:
    """The messages of other nodes that were taken."""

    def __init__(self) -> None:
        self.numbers: dict[uuid.UUID, int] = {}
        """The last one of each node."""
        self._leaving: dict[uuid.UUID, int] = {}
        """The same of nodes that have left for good; their rows are removed with the next look."""

    def forget_others(self, known: Container[uuid.UUID]) -> None:
        """Forget the numbers of nodes that have left for good, once their messages are removed too."""
        left = {sender: number for sender, number in self.numbers.items() if sender not in known}
        for sender, number in left.items():
            if self._leaving.get(sender) == number:
                del self.numbers[sender]
        self._leaving = {sender: number for sender, number in left.items() if sender in self.numbers}


class NextLook:
    """When this node looks again, and whether it has to catch up then."""

    def __init__(self) -> None:
        self.is_listening = False
        """Whether other nodes can wake this one."""
        self.is_behind = False
        """Whether other nodes did something of which this one was not told."""
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look soon."""
        self._woken.set()

    async def wait(self) -> None:
        """Wait until it is time to look."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S if self.is_listening else BLIND_LOOK_S):
                await self._woken.wait()
        self._woken.clear()


class BridgeNode:
    """This bridge among the nodes that share a database."""

    def __init__(
        self, address: str, agents: Sequence[str], lease_s: float | None, retention: RetentionPolicy | None = None
    ) -> None:
        """Raises BadStoreAddress; nothing is connected yet."""
        self.database = Database(address)
        key = NodeKey()
        self.node = Node(self.database, lease_s or LEASE_S, agents, key.public)
        self.node.on_lost = self._lose
        self._pruner = Pruner(self.database, self.node.id, retention)
        self._table = MessageTable(self.database, self.node.id, key)
        self.mailbox = Mailbox(self._table, self.node.lease_s)
        self.mailbox.on_lost_touch = self._lose_touch
        self.access = NodeAccess(self.database, self.node, self.mailbox.send)
        self._agents: dict[str, NodeAgent] = {}
        self._nodes: dict[uuid.UUID, list[str]] = {}
        """The nodes that live, this one left out."""
        self._lost_touch: set[uuid.UUID] = set()
        """Nodes that are to be told that messages for them were dropped."""
        self._taken = TakenMessages()
        self._next_look = NextLook()
        self._wakes = NodeWakes(self._table)

    async def open(self) -> None:
        """See that the tables are there, and begin the heartbeat; raises LogFailed."""
        await schema.check(self.database)
        await self.node.ensure()
        await self._look_for_nodes()
        self._pruner.start()

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """Return the work that takes messages of other nodes, until it is cancelled."""
        return [self._listen(), self._look_regularly(), self.access.watch()]

    async def close(self) -> None:
        """Give all sessions to other nodes, and leave."""
        await self.mailbox.finish(_LAST_MESSAGES_S)
        self._wakes.cancel()
        self.access.close()
        await self._pruner.stop()
        await self.node.leave()
        await self.database.close()

    def add(self, name: str, agent: NodeAgent) -> None:
        """Pass the messages for an agent to it, and tell the other nodes that serve it."""
        self._agents[name] = agent
        for node in self.others(name):
            agent.greet_node(node)

    @property
    def remembered(self) -> set[uuid.UUID]:
        """The other nodes of which it remembers anything."""
        return {*self._nodes, *self._taken.numbers, *self.mailbox.receivers}

    def others(self, agent: str) -> list[uuid.UUID]:
        """Return the other nodes that serve an agent of this name."""
        return [node for node, agents in self._nodes.items() if agent in agents]

    async def open_question(self, hash_: bytes, option_id: str | None) -> LinkedQuestion | None:
        """Give the question of a link that another node made, as `ServedAgent.open_question`; None if there is none.

        Raises AccessUnavailable.
        """
        try:
            answer = await self.access.codes.ask(
                "question", hash_, lambda agent, id_: OpenQuestion(agent, id_, hash_, option_id)
            )
        except NodeGone:
            return LinkedQuestion({"state": "gone"})
        if not isinstance(answer, QuestionOpened) or answer.described is None:
            return None
        return LinkedQuestion(msgspec.json.decode(answer.described), answer.is_offered)

    async def bring_login(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Give an agent of another node what a browser brought back, as `ServedAgent.bring_login`.

        Raises AccessUnavailable.
        """
        hash_ = hash_code(back.get("state", ""))
        passed = {name: back[name] for name in PASSED if name in back}
        try:
            answer = await self.access.codes.ask(
                "login", hash_, lambda agent, id_: BringLogin(agent, id_, passed), work_s=PASS_TIMEOUT_S
            )
        except NodeGone:
            return None
        if not isinstance(answer, LoginBrought) or answer.server is None:
            return None
        return BroughtLogin(answer.server, answer.is_taken)

    def wake(self, nodes: Iterable[uuid.UUID]) -> None:
        """Have nodes look."""
        self._wakes.wake(nodes)

    def fall_behind(self) -> None:
        """Have all agents catch up soon, again and again until that has succeeded."""
        self._next_look.is_behind = True
        self._next_look.wake()

    async def _listen(self) -> None:
        """Be told when to look, again and again: the connection may be lost or refused."""
        while True:
            try:
                connection = await self._table.listen()
                try:
                    self._next_look.is_listening = True
                    self._next_look.wake()
                    async for told in connection.notifies():
                        self.access.note_wake(told.payload)
                        self._next_look.wake()
                finally:
                    self._next_look.is_listening = False
                    await connection.close()
            except (Error, OSError) as error:
                _log.debug("no wakes from the database: %s", error)
            await asyncio.sleep(_LISTEN_RETRY_S)

    async def _look_regularly(self) -> None:
        looked_at = time.monotonic()
        next_nodes = next_sweep = 0.0
        is_away = False
        while True:
            await self._next_look.wait()
            now = time.monotonic()
            try:
                if now - looked_at > self.node.lease_s * _STOOD_STILL:
                    self._next_look.is_behind = True
                await self._catch_up()
                has_new_sender = await self._look()
                if now >= next_nodes or has_new_sender:
                    next_nodes = now + LOOK_S
                    await self._look_for_nodes()
                    self._tell_missed()
                await self._catch_up()
                if now >= next_sweep:
                    next_sweep = now + _SWEEP_S
                    await self._table.sweep()
                    await self.access.sweep()
            except DragomanError as error:
                _log.log(logging.DEBUG if is_away else logging.WARNING, "no messages of other nodes: %s", error)
                is_away = True
                await asyncio.sleep(BLIND_LOOK_S)
                continue
            if is_away:
                _log.warning("messages of other nodes are read again")
            is_away = False
            looked_at = time.monotonic()

    async def _look(self) -> bool:
        """Take messages and records; tells whether a message was of a node that is not known."""
        senders: set[uuid.UUID] = set()
        keys = [key for agent in self._agents.values() for key in agent.followed()]
        tips = await self._table.tips(keys) if keys else {}
        while True:
            found = await self._table.look(self._taken.numbers)
            for message in found:
                senders.add(message.sender)
                self._taken.numbers[message.sender] = message.number
                self._take(message)
            if len(found) < MAX_ROWS:
                break
        for agent in self._agents.values():
            await agent.follow(tips)
        return not senders <= self._nodes.keys()

    def _take(self, taken: NodeMessage) -> None:
        try:
            message = messages.decode(self._table.decrypt(taken))
            if isinstance(message, QuestionOpened | LoginBrought):
                self.access.codes.take(message)
                return
            agent = self._agents.get(message.agent)
            if agent is not None:
                agent.take(message, taken.sender)
        except Exception as error:  # noqa: BLE001 -- one message of another node stops no other
            context = {"message": "the bridge met an error with a message of another node", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _look_for_nodes(self) -> None:
        known = await self._table.nodes()
        nodes = {node: agents for node, agents in known.items() if agents is not None and node != self.node.id}
        self._taken.forget_others(known)
        gone, new = self._nodes.keys() - nodes.keys(), nodes.keys() - self._nodes.keys()
        self._nodes = nodes
        for node in new:
            for name, agent in self._agents.items():
                if name in nodes[node]:
                    agent.greet_node(node)
        for node in gone:
            self.mailbox.drop(node)
        self.access.codes.drop_nodes(gone)
        for agent in self._agents.values() if gone else ():
            agent.drop_nodes(set(gone))
            self._next_look.is_behind = True  # nobody tells what has become of the sessions of those nodes
        self.mailbox.forget_others(nodes)

    async def _catch_up(self) -> None:
        if not self._next_look.is_behind:
            return
        self._next_look.is_behind = False
        try:
            for agent in self._agents.values():
                await agent.catch_up()
        except DragomanError:
            self._next_look.is_behind = True
            raise

    def _tell_missed(self) -> None:
        """Tell nodes that messages for them were dropped, now that the database can be used again."""
        told, self._lost_touch = self._lost_touch & self._nodes.keys(), set()
        for node in told:
            for name in self._agents.keys() & set(self._nodes[node]):
                self.mailbox.send(node, Missed(name))

    def _lose_touch(self, node: uuid.UUID, reason: str) -> None:
        self._lost_touch.add(node)
        for agent in self._agents.values():
            agent.lose_touch(node, reason)

    def _lose(self, failure: LeaseLost) -> None:
        self._lost_touch.update(self._nodes)
        self.mailbox.drop_all()
        for agent in self._agents.values():
            agent.lose_all(failure)
