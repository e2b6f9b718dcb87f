"""How a server becomes ready, and the reason if it does not."""

import asyncio

import pytest

from dragoman.mcp import server as server_module
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from tests.mcp.servers.commands import scripted, scripted_http


async def test_a_server_is_ready_with_its_tools(bench):
    server = await bench.ready(tools=[{"name": "add", "description": "Adds", "inputSchema": {"type": "object"}}])
    assert [(tool.name, tool.description) for tool in server.tools] == [("add", "Adds")]
    assert bench.states == ["connecting", "ready"]
    assert server.status().tools == 1


async def test_server_runs_in_its_directory_with_a_small_environment(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    command = scripted(echo_env=True)
    definition = StdioServer("one", command[0], tuple(command[1:]), (("GIVEN", "y"),))
    server = await bench.ready(definition)
    (said,) = (await server.call("echo", {})).content
    assert str(tmp_path) in said.text
    assert '"GIVEN": "y"' in said.text
    assert "SECRET_OF_OURS" not in said.text


async def test_all_pages_of_tools_are_read(bench):
    server = await bench.ready(tools=[], tool_count=250, page_size=20)
    assert len(server.tools) == 250
    assert len({tool.name for tool in server.tools}) == 250


async def test_repeating_pages_are_read_once(bench):
    server = await bench.ready(tools=[], tool_count=30, page_size=10, endless_cursor=True)
    assert 30 <= len(server.tools) <= 10_000


async def test_server_that_ignores_unknown_methods_is_ready_quickly(bench):
    server = await bench.ready(ignore_unknown_methods=True)
    assert server.state == "ready"


@pytest.mark.parametrize("garbage", ["text", "blank", "binary", "half", "json"])
async def test_garbage_on_stdout_is_ignored(bench, garbage):
    server = await bench.ready(garbage=[garbage])
    result = await server.call("echo", {"text": "still here"})
    assert "still here" in result.content[0].text


async def test_messages_in_pieces_are_joined(bench):
    server = await bench.ready(piece_bytes=7)
    assert "whole" in (await server.call("echo", {"text": "whole"})).content[0].text


async def test_missing_command_only_fails_its_server(bench):
    missing, other = bench.server(StdioServer("missing", "no-such-program-anywhere")), bench.server()
    await asyncio.gather(missing.settled(), other.settled())
    assert (missing.state, other.state) == ("failed", "ready")
    assert "no such command" in missing.reason


async def test_reason_of_an_exit_at_start_is_reported(bench):
    server = bench.server(crash_at="start", crash_code=9, crash_stderr="the licence has run out")
    await server.settled()
    assert server.state == "failed"
    assert "code 9" in server.reason
    assert "the licence has run out" in server.reason


@pytest.mark.parametrize("place", ["initialize", "list"])
async def test_reason_of_an_exit_during_the_handshake_is_reported(bench, place):
    server = bench.server(crash_at=place, crash_stderr="out of memory")
    await server.settled()
    assert server.state == "failed"
    assert "out of memory" in server.reason


@pytest.mark.parametrize("place", ["start", "initialize", "list"])
async def test_hanging_server_times_out(bench, place, monkeypatch):
    monkeypatch.setattr(server_module, "CONNECT_TIMEOUT_S", 3.0)
    server = bench.server(hang_at=place, stderr="fetching the catalogue")
    await server.settled()
    assert server.state == "failed"
    assert "was not ready within" in server.reason
    assert "fetching the catalogue" in server.reason


async def test_program_that_is_not_a_server_fails(bench):
    server = bench.server(StdioServer("echo", "/bin/echo", ("hello",)))
    await server.settled()
    assert server.state == "failed"
    assert "exited with code 0" in server.reason


async def test_unknown_version_fails_with_a_reason(bench):
    server = bench.server(protocol_version="1999-01-01")
    await server.settled()
    assert server.state == "failed"
    assert "1999-01-01" in server.reason


async def test_secrets_are_redacted_in_reasons_and_descriptions(bench):
    command = scripted(crash_at="start", crash_stderr="cannot log in with hunter2-canary")
    server = bench.server(StdioServer("one", command[0], tuple(command[1:]), (("PASSWORD", "hunter2-canary"),)))
    await server.settled()
    assert "cannot log in with [hidden]" in server.reason
    assert "hunter2-canary" not in f"{server!r} {server.definition!r} {server.status()!r}"


async def test_colours_and_control_characters_of_stderr_are_removed(bench):
    server = bench.server(crash_at="start", crash_stderr="\x1b[31mred\x1b[0m\x07 alert")
    await server.settled()
    assert "red alert" in server.reason


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_server_at_a_url_is_ready_with_its_tools(bench, path):
    with scripted_http() as address:
        make = HttpServer if path == "mcp" else SseServer
        server = await bench.ready(make("web", f"{address}/{path}"))
        assert [tool.name for tool in server.tools] == ["echo"]
        result = await server.call("echo", {"text": "over the network"})
        assert "over the network" in result.content[0].text


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_unreachable_url_fails_with_a_reason(bench, path):
    make = HttpServer if path == "mcp" else SseServer
    server = bench.server(make("web", f"http://127.0.0.1:1/{path}?token=canary-token", (("X-Key", "canary-key"),)))
    await server.settled()
    assert server.state == "failed"
    assert "nothing answers at its address" in server.reason
    assert "canary" not in server.reason


async def test_invalid_url_fails_with_a_reason(bench):
    server = bench.server(HttpServer("web", "nonsense"))
    await server.settled()
    assert "not an http or https URL" in server.reason
