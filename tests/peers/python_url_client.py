"""The scenario of python_client.py, with an agent at a URL, over the official Python SDK's HTTP or WebSocket client.

python_url_client.py --cwd DIR [options] -- http|websocket URL TOKEN
"""

import asyncio
import json
import os
import sys
from typing import Any

import acp
import httpx2

sys.modules["httpx"] = httpx2  # the same library under its new name, which is installed here

from acp.http.client import create_http_stream  # noqa: E402 -- it imports httpx
from acp.ws.client import create_websocket_stream  # noqa: E402
from python_client import TIMEOUT_S, RecordingClient, converse, describe, parse_arguments  # noqa: E402


async def run(options: Any, way: str, url: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    if way == "http":
        transport = create_http_stream(url, headers=headers)
    else:
        transport = await create_websocket_stream(url.replace("http", "ws", 1), headers=headers)
    recording = RecordingClient(options.answer)
    agent = acp.connect_to_agent(recording, transport)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await converse(agent, recording, options)
    finally:
        await transport.close()


def main() -> None:
    options, (way, url, token) = parse_arguments(sys.argv[1:])
    try:
        report = asyncio.run(run(options, way, url, token))
    except Exception as error:  # noqa: BLE001 -- the top of the process: every failure becomes the report
        print(json.dumps({"error": describe(error)}))
        sys.exit(1)
    print(json.dumps(report), flush=True)
    os._exit(0)  # the SDK leaves tasks that log errors after the loop has ended


main()
