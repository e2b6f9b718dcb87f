"""The leanest agent that the official Python SDK allows, for the benchmarks.

The first text block of a prompt is a JSON object with optional fields: ``chunks`` updates of ``size`` characters each,
yielding to the event loop after each if ``yield`` is true, then one update of ``bytes`` characters. Without any of
them, the agent answers at once.
"""

import asyncio
import json
from typing import Any

import acp

SESSION_ID = "0" * 32  # as long as a real one, so that lines are of a real length


class BenchAgent:
    _client: acp.Client

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, **_: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=SESSION_ID)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        order = json.loads(prompt[0].text)
        text = "x" * order.get("size", 0)
        yields = order.get("yield", False)
        for _number in range(order.get("chunks", 0)):
            await self._client.session_update(session_id, acp.update_agent_message_text(text))
            if yields:
                await asyncio.sleep(0)
        if order.get("bytes"):
            await self._client.session_update(session_id, acp.update_agent_message_text("x" * order["bytes"]))
        return acp.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(BenchAgent()))
