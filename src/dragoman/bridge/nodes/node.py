"""This bridge as one of the nodes that share a database: its heartbeat, its messages, and when it polls.

A node polls when a NOTIFY wakes it, and at least once per second. It polls five times per second if it has no LISTEN
connection, which a connection pooler may refuse. One poll reads, in this order:

    1. the last record of each session that viewers here follow
    2. the messages of other nodes
    3. the records up to those ends

So a message that was sent before a record was committed is handled before the record is shown.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Container, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from psycopg import Error

from dragoman.bridge.guard.credentials import hash_code
from dragoman.bridge.nodes import messages
from dragoman.bridge.nodes.access import NodeAccess
from dragoman.bridge.nodes.code_directory import NodeGoneError
from dragoman.bridge.nodes.mailbox import Mailbox
from dragoman.bridge.nodes.messages import BringLogin, LoginBrought, Missed, OpenQuestion, QuestionOpened
from dragoman.bridge.router import BroughtLogin, LinkedQuestion
from dragoman.bridge.router.logins import PASS_TIMEOUT_S, PASSED
from dragoman.bridge.settings import AgentSpec
from dragoman.errors import DragomanError
from dragoman.store.opening import NODE_VARIABLE
from dragoman.store.postgresql import Database, schema
from dragoman.store.postgresql.errors import LeaseLostError
from dragoman.store.postgresql.message_cipher import NodeKey
from dragoman.store.postgresql.message_table import MAX_ROWS, MessageTable, NodeMessage
from dragoman.store.postgresql.node import LEASE_S, Node
from dragoman.store.postgresql.retention import Pruner
from dragoman.store.retention import RetentionPolicy

if TYPE_CHECKING:
    from dragoman.bridge.nodes.agent_node import AgentNode

POLL_S = 1.0
"""Pause between polls if nothing wakes the node."""

BLIND_POLL_S = 0.2
"""Pause between polls of a node that cannot be woken."""

_LISTEN_RETRY_S = 2.0
_LAST_MESSAGES_S = 1.0
_SWEEP_S = 60.0
_STOOD_STILL = 2 / 3
"""Part of the lease after which other nodes may regard this one as dead."""

_log = logging.getLogger("dragoman.bridge")


class NodeWakes:
    """Wakes other nodes, once for everything that was committed during the previous wake."""

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
        """Cancel the pending wake-ups."""
        if self._waking is not None:
            self._waking.cancel()

    async def _wake_all(self) -> None:
        try:
            while self._to_wake:
                nodes, self._to_wake = self._to_wake, set()
                try:
                    await self._table.wake(list(nodes))
                except DragomanError:
                    return  # the nodes poll anyway
        finally:
            self._waking = None


class ReceivedNumbers:
    """The numbers of the messages that were received from other nodes."""

    def __init__(self) -> None:
        self.numbers: dict[uuid.UUID, int] = {}
        """The last number of each node."""
        self._leaving: dict[uuid.UUID, int] = {}
        """The last numbers of nodes that have left for good. The next poll removes their rows."""

    def keep_only(self, known: Container[uuid.UUID]) -> None:
        """Forget the numbers of nodes that have left for good, once their messages are removed."""
        left = {sender: number for sender, number in self.numbers.items() if sender not in known}
        for sender, number in left.items():
            if self._leaving.get(sender) == number:
                del self.numbers[sender]
        self._leaving = {sender: number for sender, number in left.items() if sender in self.numbers}


class NextPoll:
    """When this node polls again, and whether it must catch up then."""

    def __init__(self) -> None:
        self.is_listening = False
        """Whether other nodes can wake this one."""
        self.is_behind = False
        """Whether this node may have missed changes of other nodes."""
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Poll soon."""
        self._woken.set()

    async def wait(self) -> None:
        """Wait until it is time to poll."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S if self.is_listening else BLIND_POLL_S):
                await self._woken.wait()
        self._woken.clear()


class BridgeNode:
    """This bridge among the nodes that share a database."""

    def __init__(
        self, address: str, agents: Sequence[str], lease_s: float | None, retention: RetentionPolicy | None = None
    ) -> None:
        """Raises InvalidStoreAddressError. Does not connect yet."""
        self.database = Database(address)
        key = NodeKey()
        self.node = Node(self.database, lease_s or LEASE_S, agents, key.public)
        self.node.on_lost = self._lose
        self._pruner = Pruner(self.database, self.node.id, retention)
        self._table = MessageTable(self.database, self.node.id, key)
        self.mailbox = Mailbox(self._table, self.node.lease_s)
        self.mailbox.on_lost_touch = self._lose_touch
        self.access = NodeAccess(self.database, self.node, self.mailbox.send)
        self._agents: dict[str, AgentNode] = {}
        self._nodes: dict[uuid.UUID, list[str]] = {}
        """The other living nodes, with the agents that each serves."""
        self._lost_touch: set[uuid.UUID] = set()
        """Nodes to notify that messages for them were dropped."""
        self._received = ReceivedNumbers()
        self._next_poll = NextPoll()
        self._wakes = NodeWakes(self._table)

    async def open(self) -> None:
        """Check that the tables exist, and start the heartbeat. Raises LogError."""
        await schema.check(self.database)
        await self.node.ensure()
        await self._look_for_nodes()
        self._pruner.start()

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """Return the coroutines that receive messages of other nodes. They run until they are cancelled."""
        return [self._listen(), self._poll_regularly(), self.access.watch()]

    async def close(self) -> None:
        """Send the last messages, release all sessions to other nodes, and leave."""
        await self.mailbox.finish(_LAST_MESSAGES_S)
        self._wakes.cancel()
        self.access.close()
        await self._pruner.stop()
        await self.node.leave()
        await self.database.close()

    def add(self, name: str, agent: "AgentNode") -> None:
        """Pass the messages for an agent to it, and announce this node to the others that serve it."""
        self._agents[name] = agent
        for node in self.others(name):
            agent.greet_node(node)

    def bind_agent(self, spec: AgentSpec) -> AgentSpec:
        """Return the agent with this node in its environment. It loses its sessions in this database with the node."""
        return msgspec.structs.replace(spec, env={**spec.env, NODE_VARIABLE: str(self.node.id)})

    def others(self, agent: str) -> list[uuid.UUID]:
        """Return the other nodes that serve an agent of this name."""
        return [node for node, agents in self._nodes.items() if agent in agents]

    async def open_question(self, hash_: bytes, option_id: str | None) -> LinkedQuestion | None:
        """Return the question of a link that another node created. See `ServedAgent.open_question`.

        Return None if there is none. Raises AccessUnavailableError.
        """
        try:
            answer = await self.access.codes.ask(
                "question", hash_, lambda agent, id_: OpenQuestion(agent, id_, hash_, option_id)
            )
        except NodeGoneError:
            return LinkedQuestion({"state": "gone"})
        if not isinstance(answer, QuestionOpened) or answer.described is None:
            return None
        return LinkedQuestion(msgspec.json.decode(answer.described), answer.is_offered)

    async def bring_login(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Pass the parameters of a login's redirect to an agent of another node. See `ServedAgent.bring_login`.

        Raises AccessUnavailableError.
        """
        hash_ = hash_code(back.get("state", ""))
        passed = {name: back[name] for name in PASSED if name in back}
        try:
            answer = await self.access.codes.ask(
                "login", hash_, lambda agent, id_: BringLogin(agent, id_, passed), work_s=PASS_TIMEOUT_S
            )
        except NodeGoneError:
            return None
        if not isinstance(answer, LoginBrought) or answer.server is None:
            return None
        return BroughtLogin(answer.server, answer.is_taken)

    def wake(self, nodes: Iterable[uuid.UUID]) -> None:
        """Wake nodes, so that they poll."""
        self._wakes.wake(nodes)

    def fall_behind(self) -> None:
        """Make all agents catch up soon, with retries until that succeeds."""
        self._next_poll.is_behind = True
        self._next_poll.wake()

    async def _listen(self) -> None:
        """Wait for notifications. Reconnect when the connection is lost or refused."""
        while True:
            try:
                connection = await self._table.listen()
                try:
                    self._next_poll.is_listening = True
                    self._next_poll.wake()
                    async for notify in connection.notifies():
                        self.access.handle_wake(notify.payload)
                        self._next_poll.wake()
                finally:
                    self._next_poll.is_listening = False
                    await connection.close()
            except (Error, OSError) as error:
                _log.debug("no notifications from the database: %s", error)
            await asyncio.sleep(_LISTEN_RETRY_S)

    async def _poll_regularly(self) -> None:
        """Poll until the task is cancelled. Look for nodes and sweep at longer intervals."""
        polled_at = time.monotonic()
        next_nodes = next_sweep = 0.0
        is_away = False
        while True:
            await self._next_poll.wait()
            now = time.monotonic()
            try:
                if now - polled_at > self.node.lease_s * _STOOD_STILL:
                    self._next_poll.is_behind = True  # other nodes may have dropped messages for this one
                await self._catch_up()
                has_new_sender = await self._poll()
                if now >= next_nodes or has_new_sender:
                    next_nodes = now + POLL_S
                    await self._look_for_nodes()
                    self._report_missed()
                await self._catch_up()
                if now >= next_sweep:
                    next_sweep = now + _SWEEP_S
                    await self._table.sweep()
                    await self.access.sweep()
            except DragomanError as error:
                # Warn once per outage. Retry soon, because viewers wait for the messages.
                _log.log(
                    logging.DEBUG if is_away else logging.WARNING,
                    "the messages of other nodes cannot be read: %s",
                    error,
                )
                is_away = True
                await asyncio.sleep(BLIND_POLL_S)
                continue
            if is_away:
                _log.warning("the messages of other nodes can be read again")
            is_away = False
            polled_at = time.monotonic()

    async def _poll(self) -> bool:
        """Receive messages and records. Return whether a message came from an unknown node."""
        senders: set[uuid.UUID] = set()
        keys = [key for agent in self._agents.values() for key in agent.followed()]
        tips = await self._table.tips(keys) if keys else {}
        while True:
            found = await self._table.look(self._received.numbers)
            for message in found:
                senders.add(message.sender)
                self._received.numbers[message.sender] = message.number
                self._receive(message)
            if len(found) < MAX_ROWS:
                break
        for agent in self._agents.values():
            await agent.follow(tips)
        return not senders <= self._nodes.keys()

    def _receive(self, row: NodeMessage) -> None:
        try:
            message = messages.decode(self._table.decrypt(row))
            if isinstance(message, QuestionOpened | LoginBrought):
                self.access.codes.settle(message)
                return
            agent = self._agents.get(message.agent)
            if agent is not None:
                agent.receive_message(message, row.sender)
        except Exception as error:  # noqa: BLE001 -- an error in one message must not stop the next ones
            context = {"message": "the bridge failed to process a message of another node", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _look_for_nodes(self) -> None:
        known = await self._table.nodes()
        nodes = {node: agents for node, agents in known.items() if agents is not None and node != self.node.id}
        self._received.keep_only(known)
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
            self._next_poll.is_behind = True  # the sessions of those nodes changed without a message
        self.mailbox.keep_only(nodes)

    async def _catch_up(self) -> None:
        if not self._next_poll.is_behind:
            return
        self._next_poll.is_behind = False
        try:
            for agent in self._agents.values():
                await agent.catch_up()
        except DragomanError:
            self._next_poll.is_behind = True
            raise

    def _report_missed(self) -> None:
        """Notify nodes that messages for them were dropped, now that the database is available again."""
        affected, self._lost_touch = self._lost_touch & self._nodes.keys(), set()
        for node in affected:
            for name in self._agents.keys() & set(self._nodes[node]):
                self.mailbox.send(node, Missed(name))

    def _lose_touch(self, node: uuid.UUID, reason: str) -> None:
        self._lost_touch.add(node)
        for agent in self._agents.values():
            agent.lose_touch(node, reason)

    def _lose(self, failure: LeaseLostError) -> None:
        self._lost_touch.update(self._nodes)
        self.mailbox.drop_all()
        for agent in self._agents.values():
            agent.lose_all(failure)
