"""Runs our client with real MCP servers for `make servers`. Exits with 1 if one fails.

Each server is used over its transports and in its eras. Its version is compared with the requested era, one tool is
called, and a resource is read if it has one. A server of both eras is used in the legacy one as if that was remembered.
"""

import asyncio
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import McpServerError
from dragoman.mcp.connector import ERAS, ServerEnvironment
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer, identity
from dragoman.mcp.era import Era
from dragoman.mcp.server import ServerConnection
from dragoman.proc import Supervisor
from tests.chromium import find_browser
from tests.mcp.connecting import Answers
from tests.mcp.servers.commands import EVERYTHING, SDK_SERVER, TIME, everything_http, filesystem, git, sdk_http
from tests.ports import free_port

HERE = Path(__file__).parent
PYTHON = Path(sys.executable).parent.parent / "servers" / "bin"
PACKAGES = HERE / "node_modules"
CALL_TIMEOUT_S = 60.0
PAGE = b"<html><head><title>A page</title></head><body><p>A page for the fetch server.</p></body></html>"
NOTE = ("note://one", "a note")
ADD = ("add", {"a": 2, "b": 3}, "5")
ECHO = ("echo", {"message": "hi"}, "Echo: hi")
COUNT = ("count", {}, "counted")


class RealServer(NamedTuple):
    """A server, a call, and a part of its answer."""

    name: str
    definition: object
    tool: str
    arguments: dict
    expected: str
    era: Era = Era.LEGACY
    resource: tuple[str, str] | None = None


def stdio(name, command, *, roots=True, **env):
    return StdioServer(name, str(command[0]), tuple(map(str, command[1:])), env, roots=roots)


def node(package, *arguments):
    """Return the command of a package's program."""
    return ["node", str(PACKAGES / package), *arguments]


def in_both_eras(name, definition, *call):
    return [RealServer(name, definition, *(call or ADD), era, NOTE) for era in Era]


@contextmanager
def at_address(command):
    """Run a server on a port, and yield its URL once it listens."""
    port = free_port()
    with subprocess.Popen([*command, "http", str(port)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert any(b"running on" in line for line in process.stderr), "the server ended before it listened"
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@contextmanager
def page_served():
    """Serve one page and yield its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def programs(directory, page):
    """Return the servers that are started over stdio."""
    subprocess.run(["git", "init", "-q", str(directory)], check=True)
    (directory / "note.txt").write_text("hello from a file")
    thought = {"thought": "hm", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}
    entity = {"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}
    fetch = [PYTHON / "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"]
    browser = ("--executable-path", find_browser() or "chromium")
    playwright = node("@playwright/mcp/cli.js", "--headless", "--isolated", "--no-sandbox", *browser)
    return [
        RealServer("time", stdio("time", TIME), "get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00"),
        RealServer("git", stdio("git", git(directory)), "git_status", {"repo_path": str(directory)}, "note.txt"),
        RealServer(
            "filesystem",
            stdio("fs", filesystem(directory), roots=False),
            "read_text_file",
            {"path": str(directory / "note.txt")},
            "hello from a file",
        ),
        RealServer("everything", stdio("all", EVERYTHING), *ECHO),
        RealServer(
            "memory",
            stdio("memory", memory(), MEMORY_FILE_PATH=str(directory / "memory.jsonl")),
            "create_entities",
            entity,
            "Ada",
        ),
        RealServer("sequential-thinking", stdio("think", thinking()), "sequentialthinking", thought, "thoughtNumber"),
        RealServer("fetch", stdio("fetch", fetch), "fetch", {"url": page}, "A page for the fetch server"),
        RealServer("playwright", stdio("browser", playwright), "browser_navigate", {"url": page}, "Page Title: A page"),
        *in_both_eras("fastmcp", stdio("fast", [PYTHON / "python", HERE / "fastmcp_server.py", "stdio"])),
        *in_both_eras("typescript sdk", stdio("ts", ["node", HERE / "typescript.mjs", "stdio"])),
        *in_both_eras("python sdk", stdio("py", [*SDK_SERVER, "stdio"]), *COUNT),
    ]


def memory():
    return node("@modelcontextprotocol/server-memory/dist/index.js")


def thinking():
    return node("@modelcontextprotocol/server-sequential-thinking/dist/index.js")


async def use(real, environment):
    """Use one server. Return the version. Raises McpServerError and AssertionError."""
    ERAS.remember(identity(real.definition), real.era)
    server = ServerConnection(real.definition, environment, Answers(), lambda _: None)
    server.start()
    try:
        await server.settled()
        assert server.state == "ready", server.reason
        assert (server.version >= "2026") is (real.era is Era.MODERN), f"it spoke {server.version}"
        result = await server.call(real.tool, real.arguments, timeout_s=CALL_TIMEOUT_S)
        text = "\n".join(getattr(block, "text", "") for block in result.content)
        assert not result.failed, text
        assert real.expected in text, text
        if real.resource:
            uri, expected = real.resource
            [part] = await server.read(uri, timeout_s=CALL_TIMEOUT_S)
            assert part.resource.text == expected
        return server.version
    finally:
        await server.stop()


async def judge(real, environment):
    """Use one server and print the outcome. Return whether it succeeded."""
    try:
        words = f"passed  {await use(real, environment)}"
    except (McpServerError, AssertionError) as problem:
        words = f"FAILED  {problem}"
    print(f"{real.name:20} {real.definition.transport:6} {words}", flush=True)
    return words.startswith("passed")


@asynccontextmanager
async def environment_in(directory):
    async with Supervisor() as supervisor:

        async def supervise():
            return supervisor

        yield ServerEnvironment(str(directory), supervise)


def at_addresses():
    """Return the servers at a URL: how to run each, and how to use it at its URL."""
    fast, ts = [str(PYTHON / "python"), str(HERE / "fastmcp_server.py")], ["node", str(HERE / "typescript.mjs")]
    return (
        (everything_http("streamableHttp"), lambda url: [RealServer("everything", HttpServer("all", url), *ECHO)]),
        (everything_http("sse"), lambda url: [RealServer("everything", SseServer("all", url), *ECHO)]),
        (at_address(fast), lambda url: in_both_eras("fastmcp", HttpServer("fast", url))),
        (at_address(ts), lambda url: in_both_eras("typescript sdk", HttpServer("ts", url))),
        (sdk_http(), lambda url: in_both_eras("python sdk", HttpServer("py", url), *COUNT)),
    )


async def main():
    """Use all servers, one after another."""
    if not PACKAGES.exists() or shutil.which("node") is None:
        sys.exit("the servers are not installed: `make servers` does that, and needs npm")
    with tempfile.TemporaryDirectory() as name, page_served() as page:
        async with environment_in(name) as environment:
            passed = [await judge(real, environment) for real in programs(Path(name), page)]
            for address, make in at_addresses():
                with address as url:
                    passed += [await judge(real, environment) for real in make(url)]
    print(f"{sum(passed)} of {len(passed)} passed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
