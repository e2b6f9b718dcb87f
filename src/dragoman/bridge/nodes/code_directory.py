"""Codes that lead to something in the memory of one node: which node that is, and how it is asked.

A browser that was given a code comes to any node. That node looks for the hash of the code in the database, which tells
whose it is, and passes on to that node what the browser wants. The answer comes back the same way.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from dragoman.bridge.guard import AccessUnavailable
from dragoman.bridge.nodes.messages import CodeAnswer, CodeRequest, NodeMessage
from dragoman.bridge.router import CodeKind
from dragoman.errors import DragomanError, LogFailed
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.code_table import CodeTable

SendToNode = Callable[[uuid.UUID, NodeMessage], None]

ANSWER_TIMEOUT_S = 10.0
"""For another node to answer: some milliseconds, unless it or the database stands still."""

UNAVAILABLE = "the bridge cannot use its database now; try again soon"
"""For people who are not told more of the database."""

MAX_LOOKUPS = 2
"""Codes that are looked for at a time. The other connections are for this node's own work: its heartbeat must not wait
for strangers."""

SLOT_TIMEOUT_S = 5.0
"""For one of them: a look-up takes some milliseconds, unless the database stands still."""

_log = logging.getLogger("dragoman.bridge")


@contextmanager
def without_details() -> Generator[None]:
    """Say that the database cannot be used, without its name or its words: those who are told may be anybody."""
    try:
        yield
    except LogFailed as error:
        _log.info("codes and shares cannot be used: %s", error)
        raise AccessUnavailable(UNAVAILABLE) from error


class Lookups:
    """Slots for strangers' codes: anybody may bring wrong ones, and the node's own work must not wait for them."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait for a slot, in bounded time, and say no more than `without_details`; raises AccessUnavailable."""
        try:
            async with asyncio.timeout(SLOT_TIMEOUT_S):
                await self._slots.acquire()
        except TimeoutError:
            raise AccessUnavailable("many links are being opened; try again soon") from None
        try:
            with without_details():
                yield
        finally:
            self._slots.release()


class NodeGone(DragomanError):
    """The node that had what a code leads to has ended."""


class CodeDirectory:
    """Finds the node of a code, and asks it."""

    def __init__(self, database: Database, node: uuid.UUID, send: SendToNode, lookups: Lookups) -> None:
        self._database = database
        self._node = node
        self._send = send
        self._lookups = lookups
        self._asked: dict[str, tuple[uuid.UUID, asyncio.Future[CodeAnswer]]] = {}

    async def publish(self, kind: CodeKind, hash_: bytes, agent: str, *, life_s: float, limit: int) -> None:
        """Have all nodes find what a code leads to at this node; raises LogFailed."""
        await CodeTable(self._database, kind).put(hash_, agent, life_s=life_s, limit=limit, node=self._node)

    async def ask(
        self, kind: CodeKind, hash_: bytes, make: Callable[[str, str], CodeRequest], *, work_s: float = 0.0
    ) -> CodeAnswer | None:
        """Ask the node of a code, by a message for an agent with an id; None if this is no code of another node.

        The node may take `work_s` before it answers. Raises NodeGone, AccessUnavailable.
        """
        async with self._lookups.slot():
            located = await CodeTable(self._database, kind).locate(hash_)
        if located is None or located.node == self._node:
            return None
        if not located.is_alive:
            raise NodeGone("the bridge that had this has ended")
        id_ = str(uuid.uuid4())
        answered = asyncio.get_running_loop().create_future()
        self._asked[id_] = located.node, answered
        self._send(located.node, make(located.scope, id_))
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S + work_s):
                return await answered
        except TimeoutError:
            raise AccessUnavailable("the bridge that has this does not answer now; try again soon") from None
        finally:
            del self._asked[id_]

    def take(self, answer: CodeAnswer) -> None:
        """Take the answer of another node; one that comes too late is dropped."""
        _, answered = self._asked.get(answer.id, (None, None))
        if answered is not None and not answered.done():
            answered.set_result(answer)

    def drop_nodes(self, nodes: set[uuid.UUID]) -> None:
        """Note that nodes are gone."""
        for node, answered in self._asked.values():
            if node in nodes and not answered.done():
                answered.set_exception(NodeGone("the bridge that had this has ended"))
