"""A client on `dragoman.client`, the public API, that times a stream and prints one JSON object.

    dragoman_library.py --chunks N --size BYTES [--slow-after EVENTS] -- CMD...

It accepts the same agents as ``python_sdk_client.py``. Every update is read as a typed event with ``async for``. With
``--slow-after`` the reader stops after that many events until nothing more arrives. ``grown_bytes`` is the growth of
its memory during that time. Then it reads to the end.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from dragoman.client import Session, connect
from dragoman.client.events import TextChunk, TurnFinished
from dragoman.event_loop import run

TIMEOUT_S = 300
WARM_UP_CHUNKS = 100
SESSION_CWD = "/"
PAUSE_S = 2.0
"""Long enough for an agent to send everything, if nothing holds it back."""


async def stream(session: Session, order: dict[str, Any]) -> tuple[float, int]:
    """Return the seconds that it took and the number of events read."""
    received = 0
    started = perf_counter()
    async for event in session.prompt(json.dumps(order)):
        match event:
            case TextChunk():
                received += 1
            case TurnFinished(stop_reason=reason):
                assert reason == "end_turn", reason
            case _:
                pass
    return perf_counter() - started, received


async def stream_slowly(session: Session, order: dict[str, Any], slow_after: int) -> dict[str, Any]:
    received = grown = 0
    before = read_rss_bytes()
    async for event in session.prompt(json.dumps(order)):
        received += isinstance(event, TextChunk)
        if received == slow_after:
            await asyncio.sleep(PAUSE_S)
            grown = read_rss_bytes() - before
    return {"chunks_received": received, "grown_bytes": grown}


async def measure(options: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    async with connect(command) as agent:
        session = await agent.new_session(SESSION_CWD)
        await stream(session, {"size": options.size, "chunks": WARM_UP_CHUNKS})
        order = {"size": options.size, "chunks": options.chunks, "yield": options.yields}
        if options.slow_after:
            return await stream_slowly(session, order, options.slow_after)
        seconds, received = await stream(session, order)
        return {"stream_s": seconds, "chunks_received": received, "chunks_per_s": received / seconds}


def read_rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def parse_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(usage="%(prog)s [options] -- CMD ARGS...")
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--yield", dest="yields", action="store_true")
    parser.add_argument("--slow-after", type=int, default=0)
    split = argv.index("--")
    return parser.parse_args(argv[:split]), argv[split + 1 :]


async def main() -> None:
    options, command = parse_arguments(sys.argv[1:])
    async with asyncio.timeout(TIMEOUT_S):
        print(json.dumps(await measure(options, command)))


if __name__ == "__main__":
    run(main())
