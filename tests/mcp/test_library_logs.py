"""The HTTP libraries log URLs and headers. Their logs are silenced for our requests only."""

import logging
import subprocess
import sys

import httpx2
import pytest

from dragoman.mcp.definition import HttpServer, SseServer
from tests.mcp.servers.commands import scripted_http


@pytest.mark.parametrize(("kind", "path"), [(HttpServer, "mcp"), (SseServer, "sse")])
async def test_library_logs_are_silenced_only_for_our_requests(bench, kind, path, caplog):
    caplog.set_level(logging.DEBUG)
    with scripted_http() as address:
        server = await bench.ready(kind("web", f"{address}/{path}"))
        await server.call("echo", {})
        assert not {record.name.partition(".")[0] for record in caplog.records} & {"httpx2", "httpcore2", "mcp"}
        async with httpx2.AsyncClient() as client:
            await client.get(f"{address}/of-somebody-else")
        assert "of-somebody-else" in caplog.text


def test_importing_the_transports_changes_no_logger():
    code = """
import logging, importlib
import mcp.client.streamable_http, httpx2
def state():
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    real = [each for each in loggers if isinstance(each, logging.Logger)]
    return {each.name: (each.level, each.disabled, each.propagate, each.handlers[:], each.filters[:]) for each in real}
before = state()
for name in ("streamable_http", "sse", "server"):
    importlib.import_module(f"dragoman.mcp.{name}")
after = state()
changed = [name for name, was in before.items() if after[name] != was]
made = [name for name, now in after.items() if name not in before and now != (0, False, True, [], [])]
print(changed + made)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
