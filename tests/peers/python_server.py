"""The agent of the interop tests on the official Python SDK's server, over HTTP and WebSocket.

The first line on stdout is ``{"url"}``. It exits when stdin ends.
"""

import asyncio
import json
import socket
import sys
from typing import Any

import acp
from acp.http.asgi import create_asgi_app
from hypercorn.asyncio import serve
from hypercorn.config import Config
from python_agent import PythonAgent

REPLAYED = 200


class LoadingAgent(PythonAgent):
    """Replays two hundred numbers when loaded."""

    async def initialize(self, **_: Any) -> acp.InitializeResponse:
        answer = await super().initialize()
        answer.agent_capabilities = acp.schema.AgentCapabilities(load_session=True)
        return answer

    async def load_session(self, session_id: str, **_: Any) -> acp.LoadSessionResponse:
        self._cancelled[session_id] = asyncio.Event()
        for number in range(REPLAYED):
            await self._say(session_id, f"{number} ")
        return acp.LoadSessionResponse()


async def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    config = Config()
    config.bind = [f"fd://{listening.fileno()}"]
    config.accesslog = config.errorlog = None
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: sys.stdin.buffer.read1() or ended.set())
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}/acp"}), flush=True)
    await serve(create_asgi_app(lambda _: LoadingAgent()), config, shutdown_trigger=ended.wait)


asyncio.run(main())
