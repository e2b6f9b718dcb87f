"""The start of a connection: `initialize` and the requests directly after it."""

import asyncio
import json
import sys

from dragoman.bridge import AgentSpec
from tests.bridge.front.client import PATIENCE_S, http_viewer
from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import INITIALIZE, call, dial, until_answer
from tests.bridge.viewers import events_of

NEW = {"method": "session/new", "params": {"cwd": "/", "mcpServers": []}}

UNWILLING = """
import json, sys
error = {"code": -32000, "message": "Authentication required", "data": {"how": "log in", "big": 1.0}}
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "error": error}), flush=True)
"""


def line(**message):
    return json.dumps({"jsonrpc": "2.0", **message})


async def test_agents_refusal_of_initialize_is_passed_on(tmp_path):
    agent = AgentSpec("one", (sys.executable, "-c", UNWILLING))
    async with serving(tmp_path, agents=(agent,)) as served, dial(served) as socket, http_viewer(served) as viewer:
        by_socket = await call(socket, **INITIALIZE)
        by_http = await viewer.initialize()
    assert by_socket["error"]["code"] == -32000
    assert by_socket["error"]["message"] == "Authentication required: the agent refused to start: how: log in; big: 1.0"
    assert by_socket["error"]["data"] == {"how": "log in", "big": 1.0}
    assert by_http.status_code == 200
    assert by_http.json()["error"] == by_socket["error"]


async def test_requests_after_initialize_wait_for_its_answer(served):
    async with dial(served) as socket:
        for message in (INITIALIZE, {**NEW, "id": 1}, {**NEW, "id": 2}):
            await socket.send(line(**message))
        taken = await until_answer(socket, 2)
    answers = [message for message in taken if "method" not in message]
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert all("result" in answer for answer in answers)


async def test_requests_waiting_for_initialize_are_limited(tmp_path):
    async with serving(tmp_path, max_requests=2) as served:
        viewer = served.bridge.agent().open_viewer()
        viewer.receive(line(**INITIALIZE).encode())
        for number in (1, 2, 3):
            viewer.receive(line(id=number, **NEW).encode())
        stream = viewer.stream()
        answers = {}
        async with asyncio.timeout(PATIENCE_S):
            while len(answers) < 4:
                messages = map(decode, events_of(await stream.next_batch()))
                answers |= {one["id"]: one for one in messages if "method" not in one}
    assert [number for number in answers if "error" in answers[number]] == [3]
    assert "2 messages wait for an earlier request" in answers[3]["error"]["data"]


def decode(event):
    return json.loads(event.data)
