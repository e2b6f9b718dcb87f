"""What a session asks of its client: its files and its terminals."""

import asyncio
import logging
from typing import Any, TypeVar

from dragoman.agent.tools.tool import ToolFailure
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import Method

P = TypeVar("P")
R = TypeVar("R")

ANSWER_TIMEOUT_S = 60.0
"""An editor answers in milliseconds, unless it is busy formatting on save, or its disk is far away."""

CLEANUP_TIMEOUT_S = 2.0
"""What is no longer needed is given back in this time: a cancelled turn waits for it."""

_log = logging.getLogger("dragoman.agent")


class ClientSide:
    """The other end of a session."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self.session_id = session_id
        self._connection = connection

    async def ask(self, method: Method[P, R], params: P, *, timeout_s: float = ANSWER_TIMEOUT_S) -> R:
        """Send a request and wait for its answer; raises RemoteError, and ToolFailure when there will be no answer."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._connection.call(method, params)
        except TimeoutError:
            raise ToolFailure(f"the client did not answer {method.name} within {timeout_s:.0f} s") from None
        except (InvalidResult, ConnectionClosed) as error:
            raise ToolFailure(str(error)) from None

    async def tell(self, method: Method[P, Any], params: P) -> None:
        """Ask for something that changes nothing for us when it fails."""
        try:
            await self.ask(method, params, timeout_s=CLEANUP_TIMEOUT_S)
        except (RemoteError, ToolFailure) as error:
            _log.debug("%s at the client failed: %s", method.name, error)
