"""A simple viewer over HTTP: sequential requests and concurrent event streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx2
import msgspec

from tests.bridge.front.serving import Serving

PATIENCE_S = 20


class Event(msgspec.Struct):
    """A server-sent event."""

    id: str | None
    message: dict[str, Any]


class HttpViewer:
    """Speaks ACP by POST and GET."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.id: str | None = None
        self._ids = count(1)

    async def post(self, message: dict[str, Any] | bytes | str, **headers: str) -> httpx2.Response:
        content = message if isinstance(message, bytes | str) else json.dumps({"jsonrpc": "2.0", **message})
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        known = {} if self.id is None else {"acp-connection-id": self.id}
        return await self.http.post(
            "/acp", content=content, headers={"content-type": "application/json", **known, **names}
        )

    async def call(self, method: str, params: dict[str, Any], **headers: str) -> int:
        """Send a request, expect it to be accepted, and return its id."""
        number = next(self._ids)
        answer = await self.post({"id": number, "method": method, "params": params}, **headers)
        assert answer.status_code == 202, answer.text
        return number

    async def initialize(self) -> httpx2.Response:
        params = {"protocolVersion": 1, "clientCapabilities": {}}
        answer = await self.post({"id": "hello", "method": "initialize", "params": params})
        if answer.status_code == 200:
            self.id = answer.headers["acp-connection-id"]
        return answer

    async def prompt(self, session: str, **order: Any) -> int:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": json.dumps(order)}]}
        return await self.call("session/prompt", params, acp_session_id=session)

    @asynccontextmanager
    async def stream(self, session: str | None = None, after: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        assert self.id is not None
        headers = {"accept": "text/event-stream", "acp-connection-id": self.id}
        headers |= {} if session is None else {"acp-session-id": session}
        headers |= {} if after is None else {"last-event-id": after}
        async with self.http.stream("GET", "/acp", headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield read_events(response)

    async def open_session(self, events: AsyncIterator[Event]) -> str:
        """Create a session from the events of the connection."""
        number = await self.call("session/new", {"cwd": "/", "mcpServers": []})
        return (await answer_to(number, events))["result"]["sessionId"]


async def read_events(response: httpx2.Response) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line == "":
            if "data" in fields:
                yield Event(fields.get("id"), json.loads(fields["data"]))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            assert name not in fields
            fields[name] = value


async def answer_to(number: int, events: AsyncIterator[Event]) -> dict[str, Any]:
    return (await until_answer(number, events))[-1].message


async def until_answer(number: int, events: AsyncIterator[Event], patience_s: float = PATIENCE_S) -> list[Event]:
    """Return the events up to the answer to this request."""
    taken = []
    async with asyncio.timeout(patience_s):
        async for event in events:
            taken.append(event)
            if event.message.get("id") == number and "method" not in event.message:
                return taken
    raise AssertionError(f"the stream ended before {number} was answered")


def texts(events: list[Event]) -> list[str]:
    """Return the agent's texts in these events."""
    said = [event.message["params"]["update"] for event in events if event.message.get("method") == "session/update"]
    return [update["content"]["text"] for update in said if update["sessionUpdate"] == "agent_message_chunk"]


@asynccontextmanager
async def http_viewer(served: Serving, **options: Any) -> AsyncIterator[HttpViewer]:
    async with httpx2.AsyncClient(base_url=served.url, headers=served.headers, timeout=PATIENCE_S, **options) as http:
        yield HttpViewer(http)
