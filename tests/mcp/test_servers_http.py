"""Configured faults of a scripted HTTP server, checked with a plain HTTP client."""

import http.client
import json
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp.judging import judging_address
from tests.mcp.servers.commands import scripted_http
from tests.mcp.servers.raw import PATIENCE_S, VERSION

A_MOMENT_S = 0.3

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": VERSION}}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}
SECRET = "Bearer canary"


def ask(address, method, path, message=None, *, timeout_s=PATIENCE_S, **headers):
    """Send one request. Return status, headers and body."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout_s)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, json.dumps(message) if message else None, named)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def opened(address):
    status, headers, body = ask(address, "POST", "/mcp", INITIALIZE)
    assert (status, json.loads(body)["id"]) == (200, 1)
    return headers["Mcp-Session-Id"]


@contextmanager
def listening(address, session):
    """Open the stream of a session, and yield it once the server has opened it as well."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/mcp", headers={"Mcp-Session-Id": session})
        with connection.getresponse() as response:
            assert response.status == 200
            yield response


def test_a_session_lives_until_it_is_deleted():
    with scripted_http() as address:
        session = opened(address)
        status, headers, body = ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=session)
        assert (status, headers["Content-Type"]) == (200, "text/event-stream")
        assert json.loads(body.partition(b"data: ")[2])["result"]["content"][0]["text"] == "hi"
        assert ask(address, "DELETE", "/mcp", Mcp_Session_Id=session)[0] == 200
        assert ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=session)[0] == 404
        assert ask(address, "POST", "/mcp", CALL)[0] == 400
        assert ask(address, "GET", "/nowhere")[0] == 404


def test_sessions_do_not_receive_each_others_messages():
    with scripted_http({"list_changed_after_call": True}) as address:
        first, second = opened(address), opened(address)
        ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=first)
        listing = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
        tools = json.loads(ask(address, "POST", "/mcp", listing, Mcp_Session_Id=second)[2])["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["echo"]


def test_later_listener_replaces_the_stream():
    with scripted_http({"list_changed_after_call": True}) as address:
        session = opened(address)
        with listening(address, session), listening(address, session) as later:
            ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=session)
            assert later.readline() == b"event: message\n"
            assert json.loads(later.readline()[6:])["method"] == "notifications/tools/list_changed"


def test_a_misspelt_option_is_refused(capfd):
    with pytest.raises(AssertionError, match="did not start"), scripted_http(authorisation="x"):
        pass
    assert "no such option: authorisation" in capfd.readouterr().err


@pytest.mark.parametrize(("path", "method"), [("/mcp", "POST"), ("/sse", "GET")])
def test_header_can_be_required(path, method, tmp_path):
    file = tmp_path / "requests"
    with scripted_http(authorization=SECRET, requests_file=str(file)) as address:
        status, headers, _ = ask(address, method, path, INITIALIZE)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert ask(address, method, path, INITIALIZE, Authorization="Bearer other")[0] == 401
        assert ask(address, "POST", "/mcp", INITIALIZE, Authorization=SECRET)[0] == 200
    requests = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(request["method"], request["path"]) for request in requests] == [(method, path)] * 2 + [("POST", "/mcp")]
    assert [request["headers"].get("Authorization") for request in requests] == [None, "Bearer other", SECRET]


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_every_response_can_have_one_status(status):
    with scripted_http(status=status) as address:
        assert ask(address, "POST", "/mcp", INITIALIZE)[0] == status
        assert ask(address, "GET", "/sse")[0] == status


def test_redirect_within_the_server_is_followed():
    with scripted_http(redirect="/moved") as address:
        status, headers, _ = ask(address, "POST", "/mcp", INITIALIZE)
        assert (status, headers["Location"]) == (307, "/moved/mcp")
        assert ask(address, "POST", "/moved/mcp", INITIALIZE)[0] == 200


def test_external_redirect_names_the_address():
    with scripted_http(redirect="http://127.0.0.1:9/mcp") as address:
        status, headers, _ = ask(address, "POST", "/mcp", INITIALIZE)
        assert (status, headers["Location"]) == (307, "http://127.0.0.1:9/mcp")


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [("html", "text/html"), ("json", "application/json"), ("event", "text/event-stream")],
)
def test_garbage_is_not_a_message(kind, content_type):
    with scripted_http(garbage=kind) as address:
        status, headers, body = ask(address, "POST", "/mcp", INITIALIZE)
        assert (status, headers["Content-Type"]) == (200, content_type)
        with pytest.raises(ValueError):
            json.loads(body.partition(b"data: ")[2] or body)


def test_hung_server_accepts_the_request_and_never_answers():
    with scripted_http(hang=True) as address, pytest.raises(TimeoutError):
        ask(address, "POST", "/mcp", INITIALIZE, timeout_s=A_MOMENT_S)


def test_connection_can_be_dropped_before_any_answer():
    with scripted_http(drop="start") as address, pytest.raises(http.client.RemoteDisconnected):
        ask(address, "POST", "/mcp", INITIALIZE)


def test_connection_can_be_dropped_during_a_call():
    with scripted_http(drop="call") as address:
        session = opened(address)
        with pytest.raises(http.client.IncompleteRead):
            ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=session)


def test_a_crash_in_the_answer_leaves_half_of_it():
    with scripted_http({"crash_at": "answer"}) as address:
        session = opened(address)
        with pytest.raises(http.client.IncompleteRead) as broken:
            ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=session)
        assert broken.value.partial.startswith(b"event: message")
        with pytest.raises(ConnectionError):
            ask(address, "POST", "/mcp", INITIALIZE)


def test_server_can_have_no_stream_for_its_messages():
    with scripted_http(no_stream=True) as address:
        assert ask(address, "GET", "/mcp", Mcp_Session_Id=opened(address))[0] == 405


def test_server_can_forget_a_session():
    with scripted_http(forget_after=2) as address:
        session = opened(address)
        statuses = [ask(address, "POST", "/mcp", CALL, Mcp_Session_Id=session)[0] for _ in range(3)]
        assert statuses == [200, 200, 404]


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_sdk_client_connects_with_the_header(path):
    with scripted_http(authorization=SECRET) as address:
        async with judging_address(address + path, headers={"Authorization": SECRET}) as client:
            assert (await client.call_tool("echo", {"text": "in"})).content[0].text == "in"


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_sdk_client_follows_a_redirect_within_the_server(path):
    with scripted_http(redirect="/moved") as address:
        async with judging_address(address + path) as client:
            assert (await client.call_tool("echo", {"text": "moved"})).content[0].text == "moved"


async def test_dropped_call_fails_in_the_sdk_client():
    with scripted_http(drop="call") as address:
        async with judging_address(address + "/mcp") as client:
            with pytest.raises(MCPError):
                await client.call_tool("echo", {})
