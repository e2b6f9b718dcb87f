"""The libraries beneath log addresses and headers: of what they do for us nothing, of the rest what they always log."""

import logging

import httpx2
import pytest

from dragoman.mcp.definition import HttpServer, SseServer
from tests.mcp.servers.commands import scripted_http


@pytest.mark.parametrize(("kind", "path"), [(HttpServer, "mcp"), (SseServer, "sse")])
async def test_what_a_library_does_for_us_is_not_logged_and_what_it_does_for_others_is(bench, kind, path, caplog):
    caplog.set_level(logging.DEBUG)
    with scripted_http() as address:
        server = await bench.ready(kind("web", f"{address}/{path}"))
        await server.call("echo", {})
        assert not {record.name.partition(".")[0] for record in caplog.records} & {"httpx2", "httpcore2", "mcp"}
        async with httpx2.AsyncClient() as client:
            await client.get(f"{address}/of-somebody-else")
        assert "of-somebody-else" in caplog.text
