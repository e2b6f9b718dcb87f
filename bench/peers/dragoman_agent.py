"""The agent on `dragoman.protocol.Connection` that the other bench agents are compared with.

The first text block of a prompt is a JSON object with optional fields: ``chunks`` updates of ``size`` characters each,
yielding to the event loop after each if ``yield`` is true, then one update of ``bytes`` characters, then ``ticks``
updates some milliseconds apart, each with its send time. Without any of them, the agent answers at once.
"""

import asyncio
import json
import time

from dragoman.event_loop import run
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import INITIALIZE, SESSION_NEW, SESSION_PROMPT, SESSION_UPDATE
from dragoman.wire import StdioTransport, claim_stdio

TICK_S = 0.01
SESSION_ID = "0" * 32  # as long as a real one, so that lines are of a real length


class BenchAgent:
    def __init__(self) -> None:
        routes = Routes("agent")
        routes.on_request(INITIALIZE, self._initialize)
        routes.on_request(SESSION_NEW, self._new_session)
        routes.on_request(SESSION_PROMPT, self._prompt)
        self._connection = Connection(StdioTransport(*claim_stdio()), routes)

    async def serve(self) -> None:
        async with self._connection as connection:
            await connection.wait_ended()

    async def _initialize(self, params: v1.InitializeRequest) -> v1.InitializeResponse:
        del params
        return v1.InitializeResponse(protocol_version=1)

    async def _new_session(self, params: v1.NewSessionRequest) -> v1.NewSessionResponse:
        del params
        return v1.NewSessionResponse(session_id=SESSION_ID)

    async def _prompt(self, params: v1.PromptRequest) -> v1.PromptResponse:
        block = params.prompt[0]
        order = json.loads(block.text) if isinstance(block, v1.TextContent) else {}
        text = "x" * order.get("size", 0)
        yields = order.get("yield", False)
        for _number in range(order.get("chunks", 0)):
            await self._say(params.session_id, text)
            if yields:
                await asyncio.sleep(0)
        if order.get("bytes"):
            await self._say(params.session_id, "x" * order["bytes"])
        for _number in range(order.get("ticks", 0)):
            await asyncio.sleep(TICK_S)
            await self._say(params.session_id, f"<{time.monotonic_ns()}>")
        return v1.PromptResponse(stop_reason="end_turn")

    async def _say(self, session_id: str, text: str) -> None:
        update = v1.AgentMessageChunk(content=v1.TextContent(text=text))
        await self._connection.notify(SESSION_UPDATE, v1.SessionNotification(session_id=session_id, update=update))


async def main() -> None:
    await BenchAgent().serve()


if __name__ == "__main__":
    run(main())
