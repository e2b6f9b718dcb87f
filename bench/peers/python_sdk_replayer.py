"""An agent on the official Python SDK that answers `session/load` with many updates.

    python_sdk_replayer.py UPDATES FILE

All updates are the same one, read from a file, so that only the sending is timed.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import acp
from acp.schema import AgentMessageChunk


class ReplayingAgent:
    _client: acp.Client

    def __init__(self, updates: int, update: AgentMessageChunk) -> None:
        self._updates = updates
        self._update = update

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def load_session(self, session_id: str, **_: Any) -> acp.LoadSessionResponse:
        for _number in range(self._updates):
            await self._client.session_update(session_id, self._update)
        return acp.LoadSessionResponse()


if __name__ == "__main__":
    chunk = AgentMessageChunk.model_validate_json(Path(sys.argv[2]).read_bytes())
    asyncio.run(acp.run_agent(ReplayingAgent(int(sys.argv[1]), chunk)))
