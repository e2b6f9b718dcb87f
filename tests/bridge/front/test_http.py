"""`/acp` over HTTP, according to the proposal."""

import json
import sys

import pytest

from dragoman.bridge import AgentSpec
from dragoman.bridge.front.acp_http import SESSION_METHODS
from tests.bridge.front.client import answer_to, http_viewer, texts, until_answer
from tests.bridge.front.serving import AGENT, serving
from tests.bridge.front.sockets import dial, open_session, order
from tests.bridge.front.sockets import until_answer as until_answer_by_socket
from tests.table import each_row


@pytest.fixture
async def viewer(served):
    async with http_viewer(served) as viewer:
        yield viewer


async def test_initialize_returns_the_connection_id(viewer):
    answer = await viewer.initialize()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["id"] == "hello"
    assert body["result"]["protocolVersion"] == 1
    assert body["result"]["connectionId"] == answer.headers["acp-connection-id"]


async def test_initialize_sets_a_cookie_for_affinity_once(viewer):
    first = await viewer.initialize()
    assert first.headers["set-cookie"].startswith("acp_affinity=")
    viewer.id = None
    second = await viewer.initialize()
    assert second.request.headers["cookie"].startswith("acp_affinity=")
    assert "set-cookie" not in second.headers


async def test_turn_uses_both_streams(viewer):
    await viewer.initialize()
    async with viewer.stream() as connection:
        session = await viewer.open_session(connection)
        async with viewer.stream(session) as events:
            number = await viewer.prompt(session, chunks=3, bytes=2)
            taken = await until_answer(number, events)
    assert texts(taken) == ["0:xx", "1:xx", "2:xx"]
    assert taken[-1].message["result"]["stopReason"] == "end_turn"


async def test_permission_request_is_answered_by_post(viewer):
    await viewer.initialize()
    async with viewer.stream() as connection:
        session = await viewer.open_session(connection)
        async with viewer.stream(session) as events:
            number = await viewer.prompt(session, ask=True)
            async for event in events:
                if event.message.get("method") == "session/request_permission":
                    break
            outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
            answer = await viewer.post({"id": event.message["id"], "result": outcome})
            assert answer.status_code == 202
            taken = await until_answer(number, events)
    assert json.loads(texts(taken)[0]) == outcome


async def test_pretty_printed_body_is_one_message(viewer):
    await viewer.initialize()
    params = {"cwd": "/", "mcpServers": [], "_meta": {"text": "a\nb"}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": params}
    answer = await viewer.post(json.dumps(message, indent=2).replace("\n", "\r\n"))
    assert answer.status_code == 202
    async with viewer.stream() as connection:
        assert "sessionId" in (await answer_to(7, connection))["result"]


async def test_stream_continues_after_the_last_event_id(viewer):
    await viewer.initialize()
    async with viewer.stream() as connection:
        session = await viewer.open_session(connection)
        seen = []
        async with viewer.stream(session) as events:
            number = await viewer.prompt(session, chunks=500, bytes=100)
            async for event in events:
                seen.append(event)
                if len(texts(seen)) == 100:
                    break
        async with viewer.stream(session, after=seen[-1].id) as events:
            seen += await until_answer(number, events)
    assert [text.partition(":")[0] for text in texts(seen)] == [str(number) for number in range(500)]


async def test_delete_closes_the_connection_and_its_streams(viewer):
    await viewer.initialize()
    async with viewer.stream() as connection:
        gone = await viewer.http.delete("/acp", headers={"acp-connection-id": viewer.id})
        assert gone.status_code == 202
        assert [event async for event in connection] == []
    again = await viewer.http.delete("/acp", headers={"acp-connection-id": viewer.id})
    assert again.status_code == 404


@each_row(
    ("send", "status", "words"),
    [
        (lambda v: v.post("[]"), 501, "batches"),
        (lambda v: v.post("{"), 400, "not a JSON-RPC message"),
        (lambda v: v.post(b'{"jsonrpc":"2.0","method":"a\xff"}'), 400, "UTF-8"),
        (lambda v: v.post("{}"), 400, "jsonrpc"),
        (lambda v: v.post("{}", content_type="text/plain"), 415, "application/json"),
        (lambda v: v.post("{}", content_encoding="gzip"), 415, "compressed"),
        (lambda v: v.post({"method": "x"}, acp_connection_id="no"), 404, "initialize"),
        (lambda v: v.http.get("/acp"), 406, "text/event-stream"),
        (
            lambda v: v.http.get("/acp", headers={"accept": "text/event-stream; q=0.0, */*"}),
            406,
            "text/event-stream",
        ),
        (lambda v: v.http.get("/acp", headers={"accept": "text/event-stream"}), 400, "Acp-Connection-Id"),
        (lambda v: v.http.delete("/acp"), 400, "Acp-Connection-Id"),
        (lambda v: v.http.put("/acp"), 405, "POST, GET, DELETE"),
        (lambda v: v.http.get("/acp/three"), 404, "the bridge has one, two"),
    ],
)
async def test_invalid_requests_are_refused_with_a_reason(viewer, send, status, words):
    await viewer.initialize()
    answer = await send(viewer)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    assert answer.headers["cache-control"] == "no-store"


async def test_message_before_initialize_is_refused(viewer):
    answer = await viewer.post({"id": 1, "method": "session/new", "params": {}})
    assert answer.status_code == 400
    assert "Acp-Connection-Id" in answer.json()["error"]


async def test_stream_broken_before_its_first_event_resumes(viewer):
    await viewer.initialize()
    async with viewer.stream() as connection:
        session = await viewer.open_session(connection)
        headers = {"accept": "text/event-stream", "acp-connection-id": viewer.id, "acp-session-id": session}
        async with viewer.http.stream("GET", "/acp", headers=headers) as response:
            lines = response.aiter_lines()
            begun_at = (await anext(lines)).removeprefix("id: ")
            number = await viewer.prompt(session, chunks=20)
            while not (await anext(lines)).startswith("data: "):
                pass
        async with viewer.stream(session, after=begun_at) as events:
            assert texts(await until_answer(number, events)) == [f"{one}:" for one in range(20)]


async def test_websocket_cursor_is_a_valid_last_event_id(served, viewer):
    await viewer.initialize()
    async with dial(served) as socket:
        session = await open_session(socket)
        await socket.send(order(session, chunks=10))
        await until_answer_by_socket(socket, 2)
    cursor = served.bridge.agent().sessions.by_id[session].history.cursor(5)
    opening = {"sessionId": session, "cwd": "/", "mcpServers": []}
    async with viewer.stream() as connection, viewer.stream(session, after=cursor) as events:
        number = await viewer.call("session/resume", opening, acp_session_id=session)
        await until_answer(number, connection)
        number = await viewer.prompt(session)
        after_resume = texts(await until_answer(number, events))
    assert len(after_resume) == 10 - 3  # after the user's message and the start of the turn
    async with viewer.stream(session, after=cursor) as events:
        number = await viewer.prompt(session)
        assert texts(await until_answer(number, events)) == after_resume


@pytest.mark.parametrize("params", [{"sessionId": "a", "prompt": []}, {"sessionId": 5}, [1]])
async def test_session_message_needs_the_session_header(viewer, params):
    await viewer.initialize()
    answer = await viewer.post({"id": 1, "method": "session/prompt", "params": params})
    assert answer.status_code == 400
    assert "Acp-Session-Id is missing" in answer.json()["error"]


async def test_message_to_an_unknown_session_is_not_found(viewer):
    await viewer.initialize()
    for method in sorted(SESSION_METHODS):
        answer = await viewer.post({"id": 1, "method": method, "params": {"sessionId": "a"}}, acp_session_id="a")
        assert answer.status_code == 404
        assert "create, load or resume it first" in answer.json()["error"]


async def test_session_is_known_while_it_opens(served, viewer):
    await viewer.initialize()
    one = served.bridge.agent().delivery.viewers.get(viewer.id)
    await served.bridge.agent().host.stop()  # so that the load waits for the next start
    opening = {"sessionId": "a", "cwd": "/", "mcpServers": []}
    one.receive(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": opening}).encode())
    assert one.knows("a")
    async with viewer.stream() as connection:
        assert "error" in await answer_to(1, connection)
    assert not one.knows("a")


async def test_initialize_notification_opens_no_connection(served, viewer):
    answer = await viewer.post({"method": "initialize", "params": {"protocolVersion": 1}})
    assert answer.status_code == 400
    assert "no id" in answer.json()["error"]
    assert not served.bridge.agent().delivery.viewers


async def test_session_header_must_match_the_body(viewer):
    await viewer.initialize()
    message = {"id": 1, "method": "session/prompt", "params": {"sessionId": "a", "prompt": []}}
    other = await viewer.post(message, acp_session_id="b")
    assert other.status_code == 400
    assert "another session" in other.json()["error"]


async def test_stream_of_an_unknown_session_is_not_found(viewer):
    await viewer.initialize()
    headers = {"accept": "text/event-stream", "acp-connection-id": viewer.id, "acp-session-id": ""}
    answer = await viewer.http.get("/acp", headers=headers)
    assert answer.status_code == 404


async def test_stream_may_be_opened_before_its_session_is_loaded(tmp_path):
    agent = AgentSpec("one", (sys.executable, str(AGENT), "--load"))
    async with serving(tmp_path, agents=(agent,)) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        async with viewer.stream("a"):
            pass
        one = served.bridge.agent().delivery.viewers.get(viewer.id)
        older, newer = one.session_stream("b", None), one.session_stream("b", None)
        assert older.ended
        assert one.knows("b")
        newer.end()
        assert not one.knows("b")


async def test_connection_belongs_to_one_agent_and_role(served, viewer):
    await viewer.initialize()
    elsewhere = await viewer.http.post(
        "/acp/two",
        content='{"jsonrpc":"2.0","method":"x"}',
        headers={"content-type": "application/json", "acp-connection-id": viewer.id},
    )
    assert elsewhere.status_code == 404
    _, code = await served.guard.shares.make(3600, None, None)
    cookie = (await served.guard.redeem_share(code)).partition(";")[0]
    headers = {"cookie": cookie, "origin": served.url, "content-type": "application/json", "authorization": ""}
    async with http_viewer(served) as reader:
        del reader.http.headers["authorization"]
        del headers["authorization"]
        answer = await reader.post({"method": "x"}, acp_connection_id=viewer.id, **headers)
    assert answer.status_code == 404


async def test_each_agent_has_its_own_path(viewer):
    answer = await viewer.http.post(
        "/acp/two",
        json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
    )
    assert answer.status_code == 200
