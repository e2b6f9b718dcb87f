"""Functions served over HTTP and over the relay, judged by the official SDK's client and by bare requests."""

import asyncio
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp.shared.exceptions import MCPError

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.era import LEGACY_VERSIONS
from dragoman.mcp.serving import relay
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession
from dragoman.mcp.serving.function_tool import UnusableFunction
from dragoman.mcp.serving.loopback import MAX_SESSIONS, serve_loopback
from dragoman.mcp.serving.relay_server import serve_relay
from tests.mcp.function_tools import Functions
from tests.mcp.judging import judging_address, judging_command

TRANSPORTS = ["http", "relay"]
over_both = pytest.mark.parametrize("transport", TRANSPORTS)


@asynccontextmanager
async def serving(transport, functions):
    """Serve functions and give a function that connects the judge."""
    server = FunctionServer(functions.all(), "tools")
    if transport == "http":
        async with serve_loopback(server) as definition:
            yield lambda: judging_address(definition.url, headers=dict(definition.headers))
    else:
        async with serve_relay(server) as definition:
            command = [definition.command, *definition.args]
            yield lambda: judging_command(command, env=dict(definition.env))


@asynccontextmanager
async def judged(transport):
    functions = Functions()
    async with serving(transport, functions) as connect, connect() as client:
        yield client, functions


@over_both
async def test_the_functions_are_listed(transport):
    async with judged(transport) as (client, _):
        assert client.server_info.name == "tools"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["add", "greet", "fail", "wait", "meet", "count", "block"]
        assert tools["add"].description == "Add two numbers."
        assert tools["add"].input_schema["properties"]["b"] == {
            "type": "integer",
            "default": 1,
            "description": "the second",
        }
        assert list(tools["count"].input_schema["properties"]) == ["to"]


@over_both
async def test_calls_are_answered(transport):
    async with judged(transport) as (client, _):
        result = await client.call_tool("add", {"a": 2})
        assert (result.is_error, result.structured_content, result.content[0].text) == (False, {"sum": 3}, '{"sum":3}')
        assert (await client.call_tool("greet", {"name": "Zoë"})).content[0].text == "grüezi Zoë"


@over_both
async def test_failures_are_results(transport):
    async with judged(transport) as (client, _):
        failed = await client.call_tool("fail", {})
        assert (failed.is_error, failed.content[0].text) == (True, "LookupError: no such thing")
        unfit = await client.call_tool("add", {"a": "two"})
        assert (unfit.is_error, unfit.content[0].text) == (
            True,
            "the arguments of add do not fit: Expected `int`, got `str` - at `$.a`",
        )


@over_both
async def test_an_unknown_tool_is_an_error(transport):
    async with judged(transport) as (client, _):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nothing", {})
        assert caught.value.error.code == ErrorCode.INVALID_PARAMS
        assert "there is no tool 'nothing'" in str(caught.value.error.data)


@over_both
async def test_an_unknown_method_is_an_error(transport):
    async with judged(transport) as (client, _):
        with pytest.raises(MCPError) as caught:
            await client.session.list_resources()
        assert caught.value.error.code == ErrorCode.METHOD_NOT_FOUND


@over_both
async def test_calls_run_side_by_side(transport):
    async with judged(transport) as (client, _):
        results = await asyncio.gather(client.call_tool("meet", {}), client.call_tool("meet", {}))
        assert [result.content[0].text for result in results] == ["met", "met"]


@over_both
async def test_a_cancelled_call_is_cancelled_in_the_function(transport):
    async with judged(transport) as (client, functions):
        call = asyncio.create_task(client.call_tool("wait", {}))
        await functions.begun.wait()
        call.cancel()
        await functions.cancelled.wait()
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"sum": 2}


@over_both
async def test_progress_is_told_in_order_and_before_the_result(transport):
    told = []

    async def hear(progress, total, message):
        told.append((progress, total, message))

    async with judged(transport) as (client, _):
        result = await client.call_tool("count", {"to": 3}, progress_callback=hear)
        assert result.content[0].text == "counted"
        assert told == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
        assert (await client.call_tool("count", {"to": 3})).content[0].text == "counted"


@over_both
async def test_two_clients_have_a_conversation_each(transport):
    async with serving(transport, Functions()) as connect, connect() as one, connect() as two:
        results = await asyncio.gather(one.call_tool("meet", {}), two.call_tool("meet", {}))
        assert [result.content[0].text for result in results] == ["met", "met"]


@over_both
async def test_a_large_value_goes_through(transport):
    async with judged(transport) as (client, _):
        name = "ö" * 1_000_000
        assert (await client.call_tool("greet", {"name": name})).content[0].text == f"grüezi {name}"


@over_both
async def test_the_end_of_serving_ends_the_calls_and_raises_what_the_block_raised(transport):
    functions = Functions()
    server = FunctionServer(functions.all())
    serve = serve_loopback if transport == "http" else serve_relay
    with pytest.raises(ZeroDivisionError):
        async with serve(server) as definition:
            wait = asyncio.create_task(_begin_waiting(definition))
            await functions.begun.wait()
            raise ZeroDivisionError
    await functions.cancelled.wait()
    assert await wait == b"", "the connection is closed without an answer"


async def _begin_waiting(definition):
    """Ask for a call that never ends, bare, and return what comes instead of its answer."""
    if hasattr(definition, "url"):
        session = await asyncio.to_thread(lambda: post(definition, INITIALIZE)[1]["mcp-session-id"])
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(definition.url).port)
        body = json.dumps(call("wait")).encode()
        head = {"Host": urlsplit(definition.url).netloc, "Mcp-Session-Id": session, "Content-Length": len(body)}
        lines = [f"{name}: {value}" for name, value in {**head, **dict(definition.headers)}.items()]
        writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
    else:
        reader, writer = await asyncio.open_unix_connection(definition.args[-1])
        writer.write(f"{definition.env[0][1]}\n{json.dumps(call('wait'))}\n".encode())
    with closing(writer):
        return await reader.read()


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LEGACY_VERSIONS[-1],
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def call(name, request_id=2, /, **arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def post(definition, message, *, method="POST", path=None, body=None, **headers):
    """Send one bare request with the token; a header that is None is left out."""
    address = urlsplit(definition.url)
    named = {**dict(definition.headers), **{name.replace("_", "-"): value for name, value in headers.items()}}
    given = {name: value for name, value in named.items() if value is not None}
    with closing(http.client.HTTPConnection(address.netloc, timeout=30)) as connection:
        connection.request(method, path or address.path, body or (json.dumps(message) if message else None), given)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


@asynccontextmanager
async def posting():
    async with serve_loopback(FunctionServer([Functions().greet])) as definition:

        async def send(message=None, **options):
            return await asyncio.to_thread(post, definition, message, **options)

        yield send


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer ü".encode("latin-1")}, 401),
        ({"path": "/other"}, 404),
        ({"method": "GET"}, 405),
        ({"method": "HEAD"}, 405),
        ({"Mcp_Session_Id": "made-up"}, 404),
        ({}, 400),
        ({"body": "{"}, 400),
        ({"body": "[]"}, 400),
        ({"body": json.dumps({"jsonrpc": "2.0", "method": "x", "params": [1]})}, 400),
    ],
    ids=str,
)
async def test_what_must_not_be_answered_is_refused(headers, status):
    async with posting() as send:
        assert (await send(call("greet", name="you"), **headers))[0] == status


async def test_no_refusal_holds_the_token():
    async with serve_loopback(FunctionServer([])) as definition:
        token = dict(definition.headers)["Authorization"]
        assert len(token) > 60
        assert token.removeprefix("Bearer ") not in repr(definition)
        _, headers, body = await asyncio.to_thread(post, definition, call("x"), Authorization="Bearer wrong")
        assert token.removeprefix("Bearer ") not in f"{headers}{body}"


async def test_it_listens_on_this_machine_alone():
    async with serve_loopback(FunctionServer([])) as definition:
        address = urlsplit(definition.url)
        assert address.hostname == "127.0.0.1"
        outside = socket.socket(socket.AF_INET6)
        with closing(outside), pytest.raises(OSError):
            outside.connect(("::1", address.port))


async def test_a_session_lives_until_it_is_deleted():
    async with posting() as send:
        session = {"Mcp_Session_Id": (await send(INITIALIZE))[1]["mcp-session-id"]}
        status, _, body = await send({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
        assert (status, body) == (202, b"")
        status, headers, body = await send(call("greet", "seven", name="you"), **session)
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(body)["id"] == "seven"
        assert (await send(call("greet"), Mcp_Protocol_Version="1999-01-01", **session))[0] == 400
        bad = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}
        assert (await send(bad, **session))[0] == 400
        assert (await send(method="DELETE", **session))[0] == 200
        assert (await send(call("greet", name="you"), **session))[0] == 404


async def test_the_oldest_session_goes_when_there_are_too_many():
    async with posting() as send:
        sessions = [(await send(INITIALIZE))[1]["mcp-session-id"] for _ in range(MAX_SESSIONS + 1)]
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert [(await send(ping, Mcp_Session_Id=each))[0] for each in sessions[:2]] == [404, 200]


async def test_what_is_no_http_is_refused():
    async with serve_loopback(FunctionServer([])) as definition:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(definition.url).port)
        with closing(writer):
            writer.write(b"nonsense\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 400 ")


async def test_a_client_that_waits_for_permission_to_go_on_gets_it():
    async with serve_loopback(FunctionServer([])) as definition:
        address = urlsplit(definition.url)
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        with closing(writer):
            head = f"POST /mcp HTTP/1.1\r\nHost: {address.netloc}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            writer.write(head.encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 100 ")
            await reader.readline()
            writer.write(b"{}")
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")


async def test_the_socket_is_for_this_user_alone_and_goes_away():
    async with serve_relay(FunctionServer([])) as definition:
        path = Path(definition.args[-1])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert definition.env[0][1] not in " ".join(definition.args)
    assert not path.parent.exists()


async def test_a_long_name_of_the_temporary_directory_is_no_hindrance(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    async with serve_relay(FunctionServer([])) as definition:
        assert Path(definition.args[-1]).is_socket()


@pytest.mark.parametrize("token", ["", "wrong", "0" * 64])
async def test_a_bridge_with_a_wrong_token_gets_nothing(token):
    async with serve_relay(FunctionServer([])) as definition:
        reader, writer = await asyncio.open_unix_connection(definition.args[-1])
        with closing(writer):
            writer.write(f"{token}\n{json.dumps(INITIALIZE)}\n".encode())
            writer.write_eof()
            assert await _rest(reader) == b""


async def _rest(reader):
    try:
        return await reader.read()
    except ConnectionResetError:  # what we wrote was not read
        return b""


async def test_the_bridge_takes_nothing_from_the_directory_it_is_started_in(tmp_path):
    (tmp_path / "socket.py").write_text("raise SystemExit('imported from the project')")
    async with serve_relay(FunctionServer([Functions().greet])) as definition:
        command = [definition.command, *definition.args]
        async with judging_command(command, env=dict(definition.env), cwd=str(tmp_path)) as client:
            assert (await client.call_tool("greet", {"name": "you"})).content[0].text == "grüezi you"


async def test_a_bridge_whose_server_is_gone_says_so():
    async with serve_relay(FunctionServer([])) as definition:
        pass
    command = [definition.command, *definition.args]
    done = subprocess.run(command, env=dict(definition.env), capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("the program that offers these tools is not there any more: ")


def test_the_bridge_is_a_module_too_and_says_how_it_is_used():
    environment = {name: value for name, value in os.environ.items() if name != relay.TOKEN}
    command = [sys.executable, "-m", "dragoman.mcp.serving.relay", "nowhere"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: relay.py SOCKET, with DRAGOMAN_RELAY_TOKEN in the environment\n"


async def nobody(method, params):
    raise AssertionError(method)


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, "2099-01-01"])
async def test_the_version_that_the_client_speaks_is_spoken_if_it_is_known(version):
    conversation = FunctionSession(FunctionServer([]))
    answer = await conversation.answer("initialize", {"protocolVersion": version}, b"1", nobody)
    assert answer["protocolVersion"] == (version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[-1])
    assert answer["capabilities"] == {"tools": {}}


async def test_a_ping_is_answered():
    assert await FunctionSession(FunctionServer([])).answer("ping", {}, b"1", nobody) == {}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("initialize", {}, ErrorCode.INVALID_PARAMS),
        ("tools/call", {}, ErrorCode.INVALID_PARAMS),
        ("tools/call", {"name": "greet", "arguments": []}, ErrorCode.INVALID_PARAMS),
        ("server/discover", {}, ErrorCode.METHOD_NOT_FOUND),
    ],
)
async def test_requests_that_cannot_be_answered_are_errors(method, params, code):
    with pytest.raises(RpcError) as caught:
        await FunctionSession(FunctionServer([Functions().greet])).answer(method, params, b"1", nobody)
    assert caught.value.code == code


async def test_only_the_request_of_that_very_id_is_cancelled():
    functions = Functions()
    conversation = FunctionSession(FunctionServer(functions.all()))
    running = asyncio.create_task(conversation.answer("tools/call", {"name": "wait"}, b'"1"', nobody))
    await functions.begun.wait()
    conversation.take("notifications/cancelled", {"requestId": 1})
    conversation.take("notifications/cancelled", {})
    conversation.take("notifications/unheard", {"requestId": "1"})
    await conversation.answer("tools/call", {"name": "greet", "arguments": {"name": "you"}}, b"1", nobody)
    assert not functions.cancelled.is_set()
    conversation.take("notifications/cancelled", {"requestId": "1"})
    with pytest.raises(RpcError) as caught:
        await running
    assert caught.value.code == ErrorCode.REQUEST_CANCELLED


async def test_the_call_of_a_plain_function_that_is_cancelled_is_over_at_once():
    functions = Functions()
    conversation = FunctionSession(FunctionServer(functions.all()))
    running = asyncio.create_task(conversation.answer("tools/call", {"name": "block"}, b"1", nobody))
    await functions.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    functions.held.set()


def test_two_functions_of_one_name_are_refused():
    with pytest.raises(UnusableFunction, match="there are two of that name"):
        FunctionServer([print_twice, print_twice])


def print_twice(word: str):
    return word * 2
