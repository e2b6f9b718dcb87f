"""Server files of other programs are read unchanged, and one bad entry does not affect the others."""

import json

import pytest

from dragoman.client.services.servers import to_protocol
from dragoman.mcp.config_files import ServerProblem, ServersFile, read_servers
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer, describe, from_protocol
from tests.table import each_row

FOLDER = "/srv/here"


def read(content, **environment):
    text = content if isinstance(content, str) else json.dumps(content)
    return read_servers(text, FOLDER, environment)


def one(entry, shape="mcpServers", **environment):
    reading = read({shape: {"it": entry}}, **environment)
    assert reading.problems == ()
    [server] = reading.servers
    return server


def refusal(entry, **environment):
    reading = read({"mcpServers": {"it": entry, "other": {"command": "true"}}}, **environment)
    assert reading.servers == (StdioServer("other", "true"),)
    [problem] = reading.problems
    assert problem.server == "it"
    return problem.message


@pytest.mark.parametrize("shape", ["mcpServers", "context_servers", "servers"])
def test_program_entry_is_read_in_every_shape(shape):
    entry = {"command": "uvx", "args": ["mcp-server-time", "--port", 8080], "env": {"TZ": "UTC", "PORT": 1, "NO": None}}
    expected = StdioServer("it", "uvx", ("mcp-server-time", "--port", "8080"), (("TZ", "UTC"), ("PORT", "1")))
    assert one(entry, shape) == expected


def test_older_zed_shape_is_read():
    entry = {"source": "custom", "command": {"path": "node", "args": ["x.js"], "env": {"A": "b"}}, "settings": {}}
    assert one(entry, "context_servers") == StdioServer("it", "node", ("x.js",), (("A", "b"),))


def test_vs_code_settings_are_read():
    server = {"type": "stdio", "command": "x"}
    assert read({"editor.tabSize": 2, "mcp": {"servers": {"it": server}}}).servers == (StdioServer("it", "x"),)


@each_row(
    ("entry", "kind"),
    [
        ({"url": "https://a/mcp"}, HttpServer),
        ({"type": "http", "url": "https://a/mcp"}, HttpServer),
        ({"type": "streamable-http", "url": "https://a/mcp"}, HttpServer),
        ({"type": "streamableHttp", "url": "https://a/mcp"}, HttpServer),
        ({"serverUrl": "https://a/mcp"}, HttpServer),
        ({"httpUrl": "https://a/mcp"}, HttpServer),
        ({"type": "sse", "url": "https://a/mcp"}, SseServer),
        ({"transport": "sse", "url": "https://a/mcp"}, SseServer),
    ],
)
def test_url_entry_is_read_with_its_transport(entry, kind):
    headers = {"Authorization": "Bearer x"}
    assert one({**entry, "headers": headers}) == kind("it", "https://a/mcp", (("Authorization", "Bearer x"),))


@pytest.mark.parametrize("entry", [{"command": "x"}, {"url": "https://a/mcp"}, {"type": "sse", "url": "https://a/"}])
def test_server_can_be_excluded_from_roots(entry):
    server = one({**entry, "roots": False})
    assert not server.roots
    assert from_protocol(to_protocol(server)) == server
    assert "roots: expected true or false, got text" in refusal({**entry, "roots": "no"})


def test_comments_and_trailing_commas_are_accepted():
    reading = read("""// mine
    {"mcpServers": { /* two
      lines */ "it": {"command": "x", "args": ["a // b", "/* c */", "d,]",],},  // last
    },}""")
    assert reading == ServersFile((StdioServer("it", "x", ("a // b", "/* c */", "d,]")),))


def test_byte_order_mark_is_accepted():
    assert read('\ufeff{"servers": {"it": {"command": "x"}}}').servers == (StdioServer("it", "x"),)


def test_variables_are_read_from_the_environment():
    entry = {
        "command": "${HOME}/bin/x",
        "args": ["--key=${KEY}", "${env:KEY}", "${NONE:-plain}", "${EMPTY:-}", "env://KEY", "$KEY", "${x%.*}"],
        "env": {"TOKEN": "${KEY}"},
        "cwd": "sub",
    }
    server = one(entry, HOME="/home/me", KEY="geheim")
    assert server.command == "/home/me/bin/x"
    assert server.args == ("--key=geheim", "geheim", "plain", "", "geheim", "$KEY", "${x%.*}")
    assert server.env == (("TOKEN", "geheim"),)
    assert server.cwd == "/srv/here/sub"


def test_argument_from_a_secret_variable_is_redacted():
    args = ["-k=${KEY}", "${workspaceFolder}", "${HOME}", "${REGION}"]
    server = one({"command": "x", "args": args}, KEY="geheim-7f3", HOME="/h/me", REGION="eu-1")
    assert describe(server) == "x -k=[hidden] /srv/here /h/me eu-1"


def test_workspace_folder_is_the_session_directory():
    server = one({"command": "x", "args": ["${workspaceFolder}/src"], "cwd": "${workspaceFolder}"})
    assert (server.args, server.cwd) == (("/srv/here/src",), FOLDER)


@each_row(
    ("entry", "words"),
    [
        ("x", "expected an object with command or url, got text"),
        ({}, "expected a command or a url"),
        ({"settings": {}}, "a Zed extension starts it, which only works in Zed; expected a command or a url"),
        ({"command": "x", "url": "https://a"}, "it has both a command and a url; expected one of them"),
        ({"command": ""}, "command: expected the program to start, got an empty string"),
        ({"command": 3}, "command: expected a string, got a number"),
        ({"command": {"args": []}}, "command: expected a string, got null"),
        ({"command": "x", "args": "y"}, "args: expected a list of strings, got text"),
        ({"command": "x", "args": [True]}, "args[0]: expected a string, got true or false"),
        ({"command": "x", "args": ["a", {}]}, "args[1]: expected a string, got an object"),
        ({"command": "x", "env": ["A=b"]}, "env: expected an object that maps names to strings, got a list"),
        ({"command": "x", "env": {"A=": "b"}}, "env: expected variable names without ="),
        ({"command": "x\0y"}, "command: it contains a character that programs cannot receive"),
        ({"command": "x", "args": ["\ud800"]}, "args[0]: it contains a character that programs cannot receive"),
        ({"command": "x", "type": "sse"}, "its type is sse, which needs a url; a command uses stdio"),
        ({"url": "https://a", "type": "stdio"}, "its type is stdio, which needs a command; a url uses http or sse"),
        ({"url": "https://a", "type": "carrier pigeon"}, "type: expected stdio, http or sse"),
        ({"url": "ftp://a"}, "url: expected an http or https address"),
        (
            {"url": "https://a", "headers": {"a b": "c"}},
            "headers: expected header names without spaces or colons",
        ),
        ({"url": "https://a", "headers": {"A": "b\r\nC: d"}}, "headers.A: a header must be one line"),
        ({"command": "${NONE}"}, "command: the environment variable NONE is not set; set it and try again"),
        (
            {"command": "x", "env": {"A": "${input:key}"}},
            "env.A: only the editor can fill in its input 'key'; use ${env:NAME} instead and set that variable",
        ),
    ],
)
def test_unusable_entry_is_refused_with_a_reason(entry, words):
    assert refusal(entry) == words


def test_unprintable_name_is_refused():
    reading = read({"mcpServers": {"a\x1b[2J": {"command": "x"}}})
    assert [problem.message for problem in reading.problems] == ["expected a name of printable characters"]


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_disabled_server_is_left_out_with_a_note(off):
    reading = read({"mcpServers": {"it": {"command": "x", **off}}})
    assert reading == ServersFile(notes=("it is turned off in the file",))


def test_env_file_is_not_read_and_a_note_says_so():
    reading = read({"servers": {"it": {"command": "x", "envFile": "${workspaceFolder}/.env"}}})
    assert reading.servers == (StdioServer("it", "x"),)
    assert reading.notes == ("the envFile of it is not read; put the needed variables into env",)


def test_duplicate_name_is_reported():
    reading = read('{"mcpServers": {"it": {"command": "x"}, "it": {"command": "y"}}}')
    assert reading == ServersFile((StdioServer("it", "y"),), notes=("'it' occurs twice; the last one is used",))


@each_row(
    ("text", "words"),
    [
        ('{"mcpServers":\n  {it}}', "line 2, column 4: not valid JSON"),
        ("", "line 1, column 1: not valid JSON"),
        ("/* never ends", "not valid JSON"),
        ('{"a": "never ends', "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, "a number that is too long"),
        ("[]", "it has no MCP servers: expected an object with mcpServers, context_servers or servers"),
        ('{"mcpServers": []}', "it has no MCP servers"),
        ('{"agent_servers": {}}', "it has no MCP servers"),
    ],
)
def test_unusable_file_is_a_problem_without_a_server(text, words):
    reading = read(text)
    [problem] = reading.problems
    assert isinstance(problem, ServerProblem)
    assert problem.server is None
    assert words in problem.message
    assert reading.servers == ()


@pytest.mark.parametrize("piece", ["/*", '"', "//", "\\", ",", '"\\', "/*/"])
def test_file_of_nonsense_is_read_in_linear_time(piece):
    assert read(piece * 200_000).servers == ()
