"""An agent on the official Python SDK, over stdio, for the interop tests.

The prompt text chooses the turn: ``hello`` streams three chunks, ``permission`` asks before a tool call,
``wait`` streams one chunk and then waits for ``session/cancel``.
"""

import asyncio
import uuid
from typing import Any

import acp
from acp.schema import Implementation, PermissionOption, ToolCallUpdate

TOOL_CALL_ID = "call-1"
TOOL_CALL_TITLE = "Edit notes.txt"
OPTIONS = [
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class PythonAgent:
    _client: acp.Client

    def __init__(self) -> None:
        self._cancelled: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_info=Implementation(name="python-sdk-agent", version="0.12.1"),
        )

    async def new_session(self, **_: Any) -> acp.NewSessionResponse:
        session_id = str(uuid.uuid4())
        self._cancelled[session_id] = asyncio.Event()
        return acp.NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        if session_id not in self._cancelled:
            raise acp.RequestError(-32002, "Resource not found", {"sessionId": session_id})
        self._cancelled[session_id].clear()
        turns = {"hello": self._hello, "permission": self._permission, "wait": self._wait}
        text = "".join(block.text for block in prompt if block.type == "text")
        turn = turns.get(text.strip())
        if turn is None:
            raise acp.RequestError.invalid_params({"prompt": text, "known": sorted(turns)})
        await turn(session_id)
        cancelled = self._cancelled[session_id].is_set()
        return acp.PromptResponse(stop_reason="cancelled" if cancelled else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._cancelled:
            self._cancelled[session_id].set()

    async def _hello(self, session_id: str) -> None:
        for text in ("one ", "two ", "three"):
            await self._say(session_id, text)

    async def _permission(self, session_id: str) -> None:
        await self._client.session_update(
            session_id, acp.start_tool_call(TOOL_CALL_ID, TOOL_CALL_TITLE, kind="edit", status="pending")
        )
        response = await self._client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id=TOOL_CALL_ID, title=TOOL_CALL_TITLE, kind="edit", status="pending"),
            options=OPTIONS,
        )
        outcome = response.outcome
        option_id = outcome.option_id if outcome.outcome == "selected" else None
        if option_id is None:
            self._cancelled[session_id].set()
        status = "completed" if option_id == "yes" else "failed"
        await self._client.session_update(session_id, acp.update_tool_call(TOOL_CALL_ID, status=status))
        await self._say(session_id, "outcome: " + (f"selected {option_id}" if option_id else "cancelled"))

    async def _wait(self, session_id: str) -> None:
        await self._say(session_id, "waiting")
        await self._cancelled[session_id].wait()

    async def _say(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id, acp.update_agent_message_text(text))


if __name__ == "__main__":
    asyncio.run(acp.run_agent(PythonAgent()))
