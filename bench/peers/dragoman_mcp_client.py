"""dragoman's MCP client: `dragoman_mcp_client.py CALLS -- SERVER…` calls a tool CALLS times."""

import asyncio
import json
import statistics
import sys
from time import perf_counter
from typing import Any

import uvloop

from dragoman.mcp.client import DECLINED
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import StdioServer
from dragoman.mcp.server import ServerConnection
from dragoman.proc import Supervisor

WARM_UP_CALLS = 5
ARGUMENTS = {"text": "A tiny text."}


class Nobody:
    """Answers servers that ask nothing."""

    def roots(self) -> list[str]:
        return []

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        del server, params
        return DECLINED

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


async def call(server: ServerConnection) -> float:
    started = perf_counter()
    result = await server.call("echo", ARGUMENTS)
    seconds = perf_counter() - started
    if result.failed or not result.content:
        raise RuntimeError(f"the tool answered {result}")
    return seconds


async def main() -> None:
    calls, _, command, *arguments = sys.argv[1:]
    async with Supervisor() as supervisor:

        async def supervise() -> Supervisor:
            return supervisor

        definition = StdioServer("scripted", command, tuple(arguments))
        server = ServerConnection(definition, ServerEnvironment(".", supervise), Nobody(), lambda _: None)
        server.start()
        await server.settled()
        for _ in range(WARM_UP_CALLS):
            await call(server)
        median_s = statistics.median([await call(server) for _ in range(int(calls))])
        await server.stop()
    print(json.dumps({"median_us": 1_000_000 * median_s}))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
