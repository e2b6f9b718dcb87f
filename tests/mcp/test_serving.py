"""Functions served over the relay, judged by the official SDK's client and by plain requests."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.era import LEGACY_VERSIONS
from dragoman.mcp.serving import relay
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession
from dragoman.mcp.serving.function_tool import UnusableFunctionError
from dragoman.mcp.serving.relay_server import serve_relay
from tests.mcp.function_tools import Functions
from tests.mcp.judging import judging_command


@asynccontextmanager
async def serving(functions):
    """Serve functions and yield a function that connects the judge."""
    async with serve_relay(FunctionServer(functions.all(), "tools")) as definition:
        command = [definition.command, *definition.args]
        yield lambda: judging_command(command, env=dict(definition.env))


@asynccontextmanager
async def judged():
    functions = Functions()
    async with serving(functions) as connect, connect() as client:
        yield client, functions


async def test_the_functions_are_listed():
    async with judged() as (client, _):
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


async def test_calls_are_answered():
    async with judged() as (client, _):
        result = await client.call_tool("add", {"a": 2})
        assert (result.is_error, result.structured_content, result.content[0].text) == (False, {"sum": 3}, '{"sum":3}')
        assert (await client.call_tool("greet", {"name": "Zoë"})).content[0].text == "grüezi Zoë"


async def test_failures_are_results():
    async with judged() as (client, _):
        failed = await client.call_tool("fail", {})
        assert (failed.is_error, failed.content[0].text) == (True, "LookupError: no such thing")
        unfit = await client.call_tool("add", {"a": "two"})
        assert (unfit.is_error, unfit.content[0].text) == (
            True,
            "the arguments of add do not fit: Expected `int`, got `str` - at `$.a`",
        )


async def test_an_unknown_tool_is_an_error():
    async with judged() as (client, _):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nothing", {})
        assert caught.value.error.code == ErrorCode.INVALID_PARAMS
        assert "there is no tool 'nothing'" in str(caught.value.error.data)


async def test_an_unknown_method_is_an_error():
    async with judged() as (client, _):
        with pytest.raises(MCPError) as caught:
            await client.session.list_resources()
        assert caught.value.error.code == ErrorCode.METHOD_NOT_FOUND


async def test_calls_run_concurrently():
    async with judged() as (client, _):
        results = await asyncio.gather(client.call_tool("meet", {}), client.call_tool("meet", {}))
        assert [result.content[0].text for result in results] == ["met", "met"]


async def test_a_cancelled_call_is_cancelled_in_the_function():
    async with judged() as (client, functions):
        call = asyncio.create_task(client.call_tool("wait", {}))
        await functions.begun.wait()
        call.cancel()
        await functions.cancelled.wait()
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"sum": 2}


async def test_progress_precedes_the_result_in_order():
    told = []

    async def on_progress(progress, total, message):
        told.append((progress, total, message))

    async with judged() as (client, _):
        result = await client.call_tool("count", {"to": 3}, progress_callback=on_progress)
        assert result.content[0].text == "counted"
        assert told == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
        assert (await client.call_tool("count", {"to": 3})).content[0].text == "counted"


async def test_two_clients_have_separate_conversations():
    async with serving(Functions()) as connect, connect() as one, connect() as two:
        results = await asyncio.gather(one.call_tool("meet", {}), two.call_tool("meet", {}))
        assert [result.content[0].text for result in results] == ["met", "met"]


async def test_large_value_is_transferred():
    async with judged() as (client, _):
        name = "ö" * 1_000_000
        assert (await client.call_tool("greet", {"name": name})).content[0].text == f"grüezi {name}"


async def test_end_of_serving_ends_calls_and_keeps_the_exception():
    functions = Functions()
    server = FunctionServer(functions.all())
    with pytest.raises(ZeroDivisionError):
        async with serve_relay(server) as definition:
            wait = asyncio.create_task(_begin_waiting(definition))
            await functions.begun.wait()
            raise ZeroDivisionError
    await functions.cancelled.wait()
    assert await wait == b"", "the connection is closed without an answer"


async def _begin_waiting(definition):
    """Request a call that never ends, over plain pipes. Return the message that arrives instead of its answer."""
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


async def test_socket_is_private_and_removed_afterwards():
    async with serve_relay(FunctionServer([])) as definition:
        path = Path(definition.args[-1])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert definition.env[0][1] not in " ".join(definition.args)
    assert not path.parent.exists()


async def test_long_temporary_directory_works(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    async with serve_relay(FunctionServer([])) as definition:
        assert Path(definition.args[-1]).is_socket()


@pytest.mark.parametrize("token", ["", "wrong", "0" * 64])
async def test_relay_with_a_wrong_token_is_disconnected(token):
    async with serve_relay(FunctionServer([])) as definition:
        reader, writer = await asyncio.open_unix_connection(definition.args[-1])
        with closing(writer):
            writer.write(f"{token}\n{json.dumps(INITIALIZE)}\n".encode())
            writer.write_eof()
            assert await _rest(reader) == b""


async def _rest(reader):
    try:
        return await reader.read()
    except ConnectionResetError:  # our last bytes were not read
        return b""


async def test_relay_imports_nothing_from_its_directory(tmp_path):
    (tmp_path / "socket.py").write_text("raise SystemExit('imported from the project')")
    async with serve_relay(FunctionServer([Functions().greet])) as definition:
        command = [definition.command, *definition.args]
        async with judging_command(command, env=dict(definition.env), cwd=str(tmp_path)) as client:
            assert (await client.call_tool("greet", {"name": "you"})).content[0].text == "grüezi you"


async def test_relay_reports_a_missing_server():
    async with serve_relay(FunctionServer([])) as definition:
        pass
    command = [definition.command, *definition.args]
    done = subprocess.run(command, env=dict(definition.env), capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("the program that offers these tools has exited: ")


def test_relay_module_prints_its_usage():
    environment = {name: value for name, value in os.environ.items() if name != relay.TOKEN}
    command = [sys.executable, "-m", "dragoman.mcp.serving.relay", "nowhere"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: relay.py SOCKET, with DRAGOMAN_RELAY_TOKEN in the environment\n"


async def ignore(method, params):
    raise AssertionError(method)


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, "2099-01-01"])
async def test_known_client_version_is_used(version):
    conversation = FunctionSession(FunctionServer([]))
    answer = await conversation.answer("initialize", {"protocolVersion": version}, b"1", ignore)
    assert answer["protocolVersion"] == (version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[-1])
    assert answer["capabilities"] == {"tools": {}}


async def test_a_ping_is_answered():
    assert await FunctionSession(FunctionServer([])).answer("ping", {}, b"1", ignore) == {}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("initialize", {}, ErrorCode.INVALID_PARAMS),
        ("tools/call", {}, ErrorCode.INVALID_PARAMS),
        ("tools/call", {"name": "greet", "arguments": []}, ErrorCode.INVALID_PARAMS),
        ("server/discover", {}, ErrorCode.METHOD_NOT_FOUND),
    ],
)
async def test_unanswerable_requests_are_errors(method, params, code):
    with pytest.raises(RpcError) as caught:
        await FunctionSession(FunctionServer([Functions().greet])).answer(method, params, b"1", ignore)
    assert caught.value.code == code


async def test_only_the_request_with_exactly_that_id_is_cancelled():
    functions = Functions()
    conversation = FunctionSession(FunctionServer(functions.all()))
    running = asyncio.create_task(conversation.answer("tools/call", {"name": "wait"}, b'"1"', ignore))
    await functions.begun.wait()
    conversation.receive("notifications/cancelled", {"requestId": 1})
    conversation.receive("notifications/cancelled", {})
    conversation.receive("notifications/unheard", {"requestId": "1"})
    await conversation.answer("tools/call", {"name": "greet", "arguments": {"name": "you"}}, b"1", ignore)
    assert not functions.cancelled.is_set()
    conversation.receive("notifications/cancelled", {"requestId": "1"})
    with pytest.raises(RpcError) as caught:
        await running
    assert caught.value.code == ErrorCode.REQUEST_CANCELLED


async def test_cancelled_call_of_a_plain_function_ends_immediately():
    functions = Functions()
    conversation = FunctionSession(FunctionServer(functions.all()))
    running = asyncio.create_task(conversation.answer("tools/call", {"name": "block"}, b"1", ignore))
    await functions.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    functions.held.set()


def test_duplicate_function_names_are_refused():
    with pytest.raises(UnusableFunctionError, match="two functions have this name"):
        FunctionServer([print_twice, print_twice])


def print_twice(word: str):
    return word * 2
