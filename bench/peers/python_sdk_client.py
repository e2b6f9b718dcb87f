"""A client on the official Python SDK that times an agent and prints one JSON object.

    python_sdk_client.py [--chunks N --size BYTES [--yield]] [--roundtrips R] [--message-bytes M] -- CMD...

Every prompt is a JSON object as described in ``python_sdk_agent.py``. All times are in seconds:

``initialize_s``       from before the agent is spawned to its ``initialize`` answer
``new_session_s``      one ``session/new``
``stream_s``           from sending the prompt until its response came and all N updates were handled,
                       after a warm-up
``roundtrip_*_s``      a prompt that is answered at once, R times after a warm-up
``big_message_s``      the same with a prompt text of M bytes
``big_update_s``       a prompt answered by one update of M bytes
``agent_rss_bytes``    memory of the agent process after ``initialize`` (null where there is no /proc)
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import acp

TIMEOUT_S = 300
WARM_UP_ROUNDTRIPS = 20
WARM_UP_CHUNKS = 100
SESSION_CWD = "/"


class CountingClient:
    def __init__(self) -> None:
        self._received = 0
        self._expected = 0
        self._all_received = asyncio.Event()

    def expect(self, updates: int) -> None:
        self._received = 0
        self._expected = updates
        self._all_received.clear()

    async def session_update(self, **_: Any) -> None:
        self._received += 1
        if self._received == self._expected:
            self._all_received.set()

    async def wait_for_all(self) -> int:
        if self._expected:
            await self._all_received.wait()
        return self._received


class Session:
    def __init__(self, agent: acp.Agent, client: CountingClient, session_id: str) -> None:
        self._agent = agent
        self._client = client
        self._session_id = session_id

    async def prompt(self, order: dict[str, Any], *, updates: int = 0, pad_to_bytes: int = 0) -> tuple[float, int]:
        """Return the seconds it took and the number of updates handled."""
        # Padded with blanks after the object, which cost a JSON reader nothing.
        blocks = [acp.text_block(json.dumps(order).ljust(pad_to_bytes))]
        self._client.expect(updates)
        started = perf_counter()
        await self._agent.prompt(session_id=self._session_id, prompt=blocks)
        received = await self._client.wait_for_all()
        return perf_counter() - started, received


async def time_roundtrips(session: Session, count: int) -> dict[str, float]:
    for _ in range(WARM_UP_ROUNDTRIPS):
        await session.prompt({})
    seconds = sorted([(await session.prompt({}))[0] for _ in range(count)])
    return {
        "roundtrip_p50_s": statistics.median(seconds),
        "roundtrip_p99_s": seconds[min(count - 1, count * 99 // 100)],
        "roundtrip_min_s": seconds[0],
    }


async def measure(options: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    client = CountingClient()
    started = perf_counter()
    # The same buffer limit as in the SDK's own run_agent. Without it, lines over 64 KiB are read in pieces.
    async with acp.spawn_agent_process(
        client,
        *command,
        env=os.environ,
        transport_kwargs={"stderr": None, "limit": acp.core.DEFAULT_STDIO_BUFFER_LIMIT_BYTES},
    ) as (agent, process):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        report: dict[str, Any] = {"initialize_s": perf_counter() - started}
        report["agent_rss_bytes"] = read_rss_bytes(process.pid)

        started = perf_counter()
        response = await agent.new_session(cwd=SESSION_CWD, mcp_servers=[])
        report["new_session_s"] = perf_counter() - started
        session = Session(agent, client, response.session_id)

        if options.roundtrips:
            report |= await time_roundtrips(session, options.roundtrips)
        if options.chunks:
            order = {"size": options.size, "yield": options.yields}
            await session.prompt(order | {"chunks": WARM_UP_CHUNKS}, updates=WARM_UP_CHUNKS)
            seconds, received = await session.prompt(order | {"chunks": options.chunks}, updates=options.chunks)
            report |= {"stream_s": seconds, "chunks_received": received}
            report["chunks_per_s"] = received / seconds
        if options.message_bytes:
            report["big_message_s"], _ = await session.prompt({}, pad_to_bytes=options.message_bytes)
            report["big_update_s"], _ = await session.prompt({"bytes": options.message_bytes}, updates=1)
    return report


def read_rss_bytes(pid: int) -> int | None:
    try:
        resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        return None
    return resident_pages * os.sysconf("SC_PAGE_SIZE")


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
    asyncio.run(main())
