"""The official MCP SDK's client: `mcp_sdk_client.py CALLS -- SERVER…` calls a tool CALLS times."""

import asyncio
import json
import statistics
import sys
from time import perf_counter

import uvloop
from mcp import ClientSession, StdioServerParameters, stdio_client

WARM_UP_CALLS = 5
ARGUMENTS = {"text": "A tiny text."}


async def call(session: ClientSession) -> float:
    started = perf_counter()
    result = await session.call_tool("echo", ARGUMENTS)
    seconds = perf_counter() - started
    if result.is_error or not result.content:
        raise RuntimeError(f"the tool answered {result}")
    return seconds


async def main() -> None:
    calls, _, command, *arguments = sys.argv[1:]
    parameters = StdioServerParameters(command=command, args=arguments)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for _ in range(WARM_UP_CALLS):
            await call(session)
        median_s = statistics.median([await call(session) for _ in range(int(calls))])
    print(json.dumps({"median_us": 1_000_000 * median_s}))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
