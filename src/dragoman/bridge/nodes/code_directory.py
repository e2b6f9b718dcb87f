"""Finds the node that created a code, and sends it requests.

A question or a login exists in the memory of one node, but a browser may bring its code to any node. That node looks up
the hash of the code in the database, which names the node that created it. It sends the browser's request to that node
and receives the answer as a message.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from dragoman.bridge.guard import AccessUnavailableError
from dragoman.bridge.nodes.messages import CodeAnswer, CodeRequest, NodeMessage
from dragoman.bridge.router import CodeKind
from dragoman.errors import DragomanError, LogError
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.code_table import CodeTable

SendToNode = Callable[[uuid.UUID, NodeMessage], None]

ANSWER_TIMEOUT_S = 10.0
"""Time for another node to answer. It takes some milliseconds unless that node or the database hangs."""

UNAVAILABLE = "the bridge cannot use its database at the moment; try again soon"
"""Shown to strangers, who must not see details of the database."""

MAX_LOOKUPS = 2
"""Number of concurrent look-ups. The other connections are reserved for this node's own work, such as its heartbeat."""

SLOT_TIMEOUT_S = 5.0
"""Time to wait for a slot. A look-up takes some milliseconds unless the database hangs."""

_log = logging.getLogger("dragoman.bridge")


@contextmanager
def without_details() -> Generator[None]:
    """Replace database errors with one that names no details, because strangers can see it."""
    try:
        yield
    except LogError as error:
        _log.info("sign-in links and read-only links cannot be used: %s", error)
        raise AccessUnavailableError(UNAVAILABLE) from error


class Lookups:
    """Limits the concurrent look-ups of codes. Strangers can send any number of wrong codes."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Wait for a slot, in bounded time, and hide details of errors. Raises AccessUnavailableError."""
        try:
            async with asyncio.timeout(SLOT_TIMEOUT_S):
                await self._slots.acquire()
        except TimeoutError:
            raise AccessUnavailableError("too many links are being opened at the same time; try again soon") from None
        try:
            with without_details():
                yield
        finally:
            self._slots.release()


class NodeGoneError(DragomanError):
    """The node that created the code has stopped."""


class CodeDirectory:
    """Finds the node of a code, and sends it requests."""

    def __init__(self, database: Database, node: uuid.UUID, send: SendToNode, lookups: Lookups) -> None:
        self._database = database
        self._node = node
        self._send = send
        self._lookups = lookups
        self._asked: dict[str, tuple[uuid.UUID, asyncio.Future[CodeAnswer]]] = {}

    async def publish(self, kind: CodeKind, hash_: bytes, agent: str, *, life_s: float, limit: int) -> None:
        """Register a code so that all nodes can find this node by it. Raises LogError."""
        await CodeTable(self._database, kind).put(hash_, agent, life_s=life_s, limit=limit, node=self._node)

    async def ask(
        self, kind: CodeKind, hash_: bytes, make: Callable[[str, str], CodeRequest], *, work_s: float = 0.0
    ) -> CodeAnswer | None:
        """Send a request to the node of a code, and return its answer.

        `make` builds the request for an agent and a request id. `work_s` is added to the timeout. Return None if the
        code does not belong to another node. Raises NodeGoneError, AccessUnavailableError.
        """
        async with self._lookups.slot():
            located = await CodeTable(self._database, kind).locate(hash_)
        if located is None or located.node == self._node:
            return None
        if not located.is_alive:
            raise NodeGoneError("the bridge that created this link has stopped")
        id_ = str(uuid.uuid4())
        answered = asyncio.get_running_loop().create_future()
        self._asked[id_] = located.node, answered
        self._send(located.node, make(located.scope, id_))
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S + work_s):
                return await answered
        except TimeoutError:
            raise AccessUnavailableError("the bridge that created this link does not answer; try again soon") from None
        finally:
            del self._asked[id_]

    def settle(self, answer: CodeAnswer) -> None:
        """Complete the request that another node has answered. A late answer is dropped."""
        _, answered = self._asked.get(answer.id, (None, None))
        if answered is not None and not answered.done():
            answered.set_result(answer)

    def drop_nodes(self, nodes: set[uuid.UUID]) -> None:
        """Fail the requests to nodes that are gone."""
        for node, answered in self._asked.values():
            if node in nodes and not answered.done():
                answered.set_exception(NodeGoneError("the bridge that created this link has stopped"))
