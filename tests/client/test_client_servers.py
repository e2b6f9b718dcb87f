"""MCP servers in all accepted forms are converted, and others are refused with a reason."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.client.problem import MissingCapabilityError
from dragoman.client.services.servers import InvalidServerError, as_servers
from dragoman.mcp.definition import AcpServer, HttpServer, SseServer, StdioServer
from dragoman.protocol import v1

ALL = v1.AgentCapabilities(mcp_capabilities=v1.McpCapabilities(http=True, sse=True, acp=True))
NONE = v1.AgentCapabilities()
SH = shutil.which("sh")


def only(given, **options):
    [server] = as_servers(given, ALL, **options)
    return server


def http(name, url, **headers):
    given = [v1.HttpHeader(name=key, value=value) for key, value in headers.items()]
    return v1.McpServerHttp(name=name, url=url, headers=given)


def stdio(name, command, *args, **env):
    variables = [v1.EnvVariable(name=key, value=value) for key, value in env.items()]
    return v1.McpServerStdio(name=name, command=command, args=list(args), env=variables)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["sh", "-c", "x y"], stdio("sh", SH, "-c", "x y")),
        (("sh", "-c"), stdio("sh", SH, "-c")),
        ("sh -c 'x y'", stdio("sh", SH, "-c", "x y")),
        ("not-installed --flag", stdio("not-installed", "not-installed", "--flag")),
        ("/opt/tools/server.py", stdio("server", "/opt/tools/server.py")),
        ("./server run", stdio("server", "/project/server", "run")),
        ("../server", stdio("server", "/server")),
        ("https://tickets.example/mcp?x=1", http("tickets.example", "https://tickets.example/mcp?x=1")),
        ("http://me:secret@localhost:80/", http("localhost:80", "http://me:secret@localhost:80/")),
        (StdioServer("one", "sh", ("-c",), (("A", "b"),)), stdio("one", SH, "-c", A="b")),
        (HttpServer("one", "http://x", (("A", "b"),)), http("one", "http://x", A="b")),
        (SseServer("one", "http://x"), v1.McpServerSse(name="one", url="http://x", headers=[])),
        (AcpServer("one", "id"), v1.McpServerAcp(name="one", server_id="id")),
        (stdio("one", "as-it-is"), stdio("one", "as-it-is")),
    ],
    ids=lambda value: str(value) if isinstance(value, str | list | tuple) else type(value).__name__,
)
def test_each_form_is_accepted(given, expected):
    assert only([given], cwd="/project") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sh -c x", stdio("mine", SH, "-c", "x")),
        (["sh", "-c"], stdio("mine", SH, "-c")),
        (StdioServer("other", "sh"), stdio("mine", SH)),
        (stdio("other", "x"), stdio("mine", "x")),
        ("http://x", http("mine", "http://x")),
    ],
    ids=repr,
)
def test_mapping_names_the_servers(given, expected):
    assert only({"mine": given}) == expected


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uvx mcp-server-time --local-timezone Europe/Zurich", "mcp-server-time"),
        ("uvx mcp-server-time@1.2", "mcp-server-time"),
        ("npx -y @scope/server-files@2 /tmp", "server-files"),
        ("python -m mcp_server_git", "mcp_server_git"),
        ("/usr/bin/node build/index.js", "index"),
        ("uvx", "uvx"),
        ("docker run -i image", "docker"),
    ],
)
def test_command_is_named_after_its_program(command, name):
    assert only([command]).name == name


def test_generated_names_are_unique():
    servers = as_servers(["sh -c a", "sh -c b", StdioServer("sh-3", "x"), "sh -c c"], ALL)
    assert [server.name for server in servers] == ["sh", "sh-2", "sh-3", "sh-4"]


FILES = {
    ".mcp.json": {"mcpServers": {"one": {"command": "sh", "args": ["-c", "${HELLO}"], "env": {"A": "b"}}}},
    "settings.json": {"context_servers": {"one": {"command": {"path": "sh", "args": ["-c", "hi"], "env": {"A": "b"}}}}},
    "mcp.json": {"servers": {"one": {"type": "stdio", "command": "sh", "args": ["-c", "hi"], "env": {"A": "b"}}}},
}


@pytest.mark.parametrize("name", FILES)
def test_config_files_of_other_programs_are_read(tmp_path, name):
    (tmp_path / name).write_text(json.dumps(FILES[name]))
    environment = {**os.environ, "HELLO": "hi"}
    expected = stdio("one", SH, "-c", "hi", A="b")
    for given in (tmp_path / name, [tmp_path / name], [str(tmp_path / name)], [Path(name)], [name]):
        assert only(given, cwd=str(tmp_path), environment=environment) == expected


def test_servers_of_a_file_are_added_to_the_others(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"mcpServers": {"a": {"command": "sh"}, "b": {"url": "http://b"}}}))
    servers = as_servers(["sh", tmp_path / "x.json"], ALL)
    assert [server.name for server in servers] == ["sh", "a", "b"]


def test_unusable_file_is_refused_with_all_its_problems(tmp_path):
    entries = {"a": {"command": "sh"}, "b": {}, "c": {"command": "sh", "env": {"KEY": "${SURELY_NOT_SET}"}}}
    (tmp_path / "x.json").write_text(json.dumps({"mcpServers": entries}))
    with pytest.raises(InvalidServerError) as caught:
        as_servers(tmp_path / "x.json", ALL)
    words = str(caught.value)
    assert f"the MCP servers in {tmp_path / 'x.json'} cannot be used: b: expected a command or a url" in words
    assert "c: env.KEY: the environment variable SURELY_NOT_SET is not set" in words


def test_missing_or_binary_file_is_refused(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(InvalidServerError, match="not UTF-8 text"):
        as_servers(tmp_path / "x.json", ALL)
    with pytest.raises(InvalidServerError, match="No such file"):
        as_servers(tmp_path / "y.json", ALL)


def test_server_is_started_in_its_configured_directory(tmp_path):
    there = tmp_path / "it's $HOME"
    there.mkdir()
    definition = StdioServer("one", sys.executable, ("-c", "import os, sys; print(os.getcwd(), sys.argv[1:])", "a b"))
    server = only([StdioServer("one", definition.command, definition.args, cwd=str(there))], cwd=str(tmp_path))
    done = subprocess.run([server.command, *server.args], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"{there} ['a b']\n"
    same = only([StdioServer("one", "sh", cwd=str(tmp_path))], cwd=str(tmp_path))
    assert same == stdio("one", SH)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("uvx mcp-server-time", "expected MCP servers as a list, a mapping by name or the Path of a file, got str"),
        (3, "expected MCP servers as a list"),
        ([""], "got an empty command"),
        ([[]], "got an empty command"),
        ([["sh", 3]], "got list"),
        ([3], "got int"),
        (["sh 'unfinished"], "No closing quotation; pass it as a list of words"),
        (["ws://secret.example"], "must start with http:// or https://"),
        (["http://with a blank"], "must start with http:// or https://"),
        ({"one": Path("x.json")}, "got PosixPath"),
    ],
    ids=repr,
)
def test_invalid_server_is_refused_with_a_reason(given, words):
    with pytest.raises(InvalidServerError) as caught:
        as_servers(given, ALL)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "capability"),
    [
        ("https://x", "agentCapabilities.mcpCapabilities.http"),
        (SseServer("x", "https://x"), "agentCapabilities.mcpCapabilities.sse"),
        (AcpServer("x", "id"), "agentCapabilities.mcpCapabilities.acp"),
    ],
    ids=["http", "sse", "acp"],
)
def test_unsupported_transport_is_refused_with_its_capability(given, capability):
    with pytest.raises(MissingCapabilityError) as caught:
        as_servers(["sh", given], NONE, agent="tiny 1.0")
    assert caught.value.capability == capability
    assert "tiny 1.0" in str(caught.value)


def test_stdio_servers_need_no_capability():
    assert only(["sh"]) in as_servers(["sh"], NONE)
