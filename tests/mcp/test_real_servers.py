"""The real servers work here with the official SDK's client."""

import json
import subprocess
from datetime import datetime

import pytest

from tests.mcp.judging import judging_address, judging_command
from tests.mcp.servers.commands import EVERYTHING, TIME, everything_http, filesystem, git, needs_node


def text_of(result):
    assert not result.is_error, result
    return result.content[0].text


async def names_in(client):
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_time_server_returns_the_time():
    async with judging_command(TIME) as client:
        assert await names_in(client) == {"get_current_time", "convert_time"}
        answer = json.loads(text_of(await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})))
        assert str(datetime.fromisoformat(answer["datetime"]).utcoffset()) == "9:00:00"


async def test_git_server_reads_a_repository(tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("new\n")
    async with judging_command(git(tmp_path)) as client:
        assert "git_status" in await names_in(client)
        assert "new.txt" in text_of(await client.call_tool("git_status", {"repo_path": str(tmp_path)}))


@needs_node
async def test_the_filesystem_server_reads_a_file(tmp_path):
    (tmp_path / "note.txt").write_text("hello from a file")
    async with judging_command(filesystem(tmp_path)) as client:
        assert "read_text_file" in await names_in(client)
        answer = await client.call_tool("read_text_file", {"path": str(tmp_path / "note.txt")})
        assert text_of(answer) == "hello from a file"


@needs_node
async def test_the_everything_server_answers_over_stdio():
    async with judging_command(EVERYTHING) as client:
        assert {"echo", "get-tiny-image", "trigger-long-running-operation"} <= await names_in(client)
        assert text_of(await client.call_tool("echo", {"message": "hi"})) == "Echo: hi"


@needs_node
@pytest.mark.parametrize("kind", ["streamableHttp", "sse"])
async def test_the_everything_server_answers_over_http(kind):
    with everything_http(kind) as address:
        async with judging_address(address) as client:
            assert text_of(await client.call_tool("echo", {"message": "hi"})) == "Echo: hi"
