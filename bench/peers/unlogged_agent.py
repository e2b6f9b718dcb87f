"""The real agent without a log, to measure the cost of the log. Its sessions are not stored.

unlogged_agent.py SCRIPT
"""

import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import NoReturn

from dragoman.assistant import make_agent
from dragoman.assistant.models import find_model
from dragoman.assistant.setup import AgentSetup
from dragoman.event_loop import run
from dragoman.home import home
from dragoman.store import Block, Header
from dragoman.store.history import ListedFacts
from dragoman.wire import StdioTransport, claim_stdio


class NoLog:
    """A log that discards everything."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.facts = ListedFacts()
        self.damage = None
        self.failure = None

    def append(self, lines: bytes, count: int | None = None) -> None:
        pass

    def record(self, kind: str, data: bytes) -> None:
        pass

    def flush(self) -> None:
        pass

    async def sync(self) -> None:
        pass

    async def blocks(self) -> AsyncIterator[list[Block]]:
        for batch in ():
            yield batch

    async def close(self) -> None:
        pass


class NoStore:
    """A store whose logs discard everything, and which has no sessions."""

    async def now(self) -> datetime:
        return datetime.now(UTC)

    async def create(self, header: Header, settings: bytes | None = None) -> NoLog:
        del settings
        return NoLog(header)

    async def open(self, session_id: str) -> NoReturn:
        raise NotImplementedError

    async def find(self, session_id: str) -> NoReturn:
        raise NotImplementedError

    async def page(self, cwd: str | None = None, cursor: str | None = None) -> NoReturn:
        raise NotImplementedError

    async def fork(self, session_id: str, header: Header) -> NoReturn:
        raise NotImplementedError

    async def delete(self, session_id: str) -> NoReturn:
        raise NotImplementedError

    async def close(self) -> None:
        pass


async def main() -> None:
    read_fd, write_fd = claim_stdio()
    setup = AgentSetup(home(), model=find_model(f"script:{sys.argv[1]}"))
    await make_agent(NoStore, lambda: setup).serve(StdioTransport(read_fd, write_fd))


if __name__ == "__main__":
    run(main())
