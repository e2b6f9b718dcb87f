"""A client on `dragoman.protocol.Connection` that times an agent and prints one JSON object.

    dragoman_client.py [--chunks N --size BYTES [--yield]] [--roundtrips R] [--message-bytes M] -- CMD...

The arguments, the work and the output are the same as for ``python_sdk_client.py``.
"""

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from dragoman.event_loop import run
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import INITIALIZE, SESSION_NEW, SESSION_PROMPT, SESSION_UPDATE
from dragoman.wire import StdioTransport

TIMEOUT_S = 300
WARM_UP_ROUNDTRIPS = 20
WARM_UP_CHUNKS = 100
SESSION_CWD = "/"


class Session:
    """Counts the updates. The wire delivers the response only after every update was handled."""

    def __init__(self) -> None:
        self._received = 0

    def count(self, notification: v1.SessionNotification) -> None:
        del notification
        self._received += 1

    async def open(self, agent: Connection) -> None:
        self._agent = agent
        self._id = (await agent.call(SESSION_NEW, v1.NewSessionRequest(cwd=SESSION_CWD, mcp_servers=[]))).session_id

    async def prompt(self, order: dict[str, Any], *, pad_to_bytes: int = 0) -> tuple[float, int]:
        """Return the seconds that it took and the number of updates handled."""
        # Padded with blanks after the object, which cost a JSON reader nothing.
        block = v1.TextContent(text=json.dumps(order).ljust(pad_to_bytes))
        self._received = 0
        started = perf_counter()
        await self._agent.call(SESSION_PROMPT, v1.PromptRequest(session_id=self._id, prompt=[block]))
        return perf_counter() - started, self._received


async def time_roundtrips(session: Session, count: int) -> dict[str, float]:
    for _ in range(WARM_UP_ROUNDTRIPS):
        await session.prompt({})
    seconds = sorted([(await session.prompt({}))[0] for _ in range(count)])
    return {
        "roundtrip_p50_s": statistics.median(seconds),
        "roundtrip_p99_s": seconds[min(count - 1, count * 99 // 100)],
        "roundtrip_min_s": seconds[0],
    }


@asynccontextmanager
async def launch(command: list[str], routes: Routes) -> AsyncGenerator[Connection]:
    """Start an agent and open a bare connection to it."""
    async with Supervisor() as supervisor:
        child = await supervisor.start(command, inherit=EVERYTHING)
        transport = StdioTransport.for_child(child)
        async with Connection(transport, routes) as connection:
            yield connection


async def measure(options: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    session = Session()
    routes = Routes("client")
    routes.on_notification(SESSION_UPDATE, session.count)
    started = perf_counter()
    async with launch(command, routes) as agent:
        await agent.call(INITIALIZE, v1.InitializeRequest(protocol_version=1))
        report: dict[str, Any] = {"initialize_s": perf_counter() - started}

        started = perf_counter()
        await session.open(agent)
        report["new_session_s"] = perf_counter() - started

        if options.roundtrips:
            report |= await time_roundtrips(session, options.roundtrips)
        if options.chunks:
            order = {"size": options.size, "yield": options.yields}
            await session.prompt(order | {"chunks": WARM_UP_CHUNKS})
            seconds, received = await session.prompt(order | {"chunks": options.chunks})
            report |= {"stream_s": seconds, "chunks_received": received}
            report["chunks_per_s"] = received / seconds
        if options.message_bytes:
            report["big_message_s"], _ = await session.prompt({}, pad_to_bytes=options.message_bytes)
            report["big_update_s"], _ = await session.prompt({"bytes": options.message_bytes})
    return report


def parse_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(usage="%(prog)s [options] -- CMD ARGS...")
    parser.add_argument("--chunks", type=int, default=0)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--yield", dest="yields", action="store_true")
    parser.add_argument("--roundtrips", type=int, default=0)
    parser.add_argument("--message-bytes", type=int, default=0)
    split = argv.index("--") if "--" in argv else len(argv)
    options, command = parser.parse_args(argv[:split]), argv[split + 1 :]
    if not command:
        parser.error("an agent command is needed after --")
    return options, command


async def main() -> None:
    options, command = parse_arguments(sys.argv[1:])
    async with asyncio.timeout(TIMEOUT_S):
        print(json.dumps(await measure(options, command)))


if __name__ == "__main__":
    run(main())
