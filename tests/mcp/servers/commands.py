"""Commands of the test servers: the scripted ones with their options, and the real ones."""

import json
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port

HERE = Path(__file__).parent
NODE_MODULES = HERE.parent.parent / "peers" / "node_modules" / "@modelcontextprotocol"
SCRIPTS = Path(sys.executable).parent

needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is not here: the MCP servers written in TypeScript were not tried"
)

TIME = [str(SCRIPTS / "mcp-server-time"), "--local-timezone", "Europe/Zurich"]
EVERYTHING = ["node", str(NODE_MODULES / "server-everything" / "dist" / "index.js")]


def scripted(**options):
    """Return the command of a scripted server over stdio."""
    return [sys.executable, "-I", "-S", str(HERE / "scripted.py"), json.dumps(options)]


def modern(**options):
    """Return the command of a modern server over stdio."""
    return [sys.executable, "-I", "-S", str(HERE / "modern.py"), json.dumps(options)]


SDK_SERVER = [sys.executable, "-P", str(HERE / "sdk_server.py")]


@contextmanager
def sdk_http():
    """Run the Python SDK's server over HTTP and yield its full URL."""
    port = free_port()
    with subprocess.Popen(
        [*SDK_SERVER, "http", str(port)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            assert any(b"running on" in line for line in process.stderr), "the server ended before it listened"
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def git(repository):
    """Return the command of the git server for a repository."""
    return [str(SCRIPTS / "mcp-server-git"), "--repository", str(repository)]


def filesystem(*folders):
    """Return the command of the filesystem server for directories."""
    return ["node", str(NODE_MODULES / "server-filesystem" / "dist" / "index.js"), *map(str, folders)]


@contextmanager
def scripted_http(options=None, **way):
    """Run a scripted server over HTTP and yield its URL without a path. `/mcp` and `/sse` exist."""
    command = [sys.executable, "-I", "-S", str(HERE / "http.py"), json.dumps(options or {}), json.dumps(way)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            word, _, port = process.stdout.readline().decode().partition(" ")
            assert word == "PORT", "the server did not start; its stderr says why"
            yield f"http://127.0.0.1:{int(port)}"
        finally:
            process.kill()


@contextmanager
def everything_http(kind):
    """Run the everything server over HTTP, by `streamableHttp` or `sse`, and yield its full URL."""
    port = free_port()
    environment = {"PATH": str(Path(shutil.which("node")).parent), "PORT": str(port)}
    with subprocess.Popen(
        [*EVERYTHING, kind], env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            assert any(b"on port" in line for line in process.stderr), "the server ended before it listened"
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
        finally:
            process.kill()
