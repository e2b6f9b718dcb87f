"""The files in which other programs keep their servers are read as they are; one bad entry costs no other."""

import json

import pytest

from dragoman.client.servers import to_protocol
from dragoman.mcp.config_files import ServerProblem, ServersFile, read_servers
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer, describe, from_protocol

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
    return problem.words


@pytest.mark.parametrize("shape", ["mcpServers", "context_servers", "servers"])
def test_a_program_is_read_in_every_shape(shape):
    entry = {"command": "uvx", "args": ["mcp-server-time", "--port", 8080], "env": {"TZ": "UTC", "PORT": 1, "NO": None}}
    expected = StdioServer("it", "uvx", ("mcp-server-time", "--port", "8080"), (("TZ", "UTC"), ("PORT", "1")))
    assert one(entry, shape) == expected


def test_the_older_shape_of_zed_is_read():
    entry = {"source": "custom", "command": {"path": "node", "args": ["x.js"], "env": {"A": "b"}}, "settings": {}}
    assert one(entry, "context_servers") == StdioServer("it", "node", ("x.js",), (("A", "b"),))


def test_the_settings_of_vs_code_are_read():
    server = {"type": "stdio", "command": "x"}
    assert read({"editor.tabSize": 2, "mcp": {"servers": {"it": server}}}).servers == (StdioServer("it", "x"),)


@pytest.mark.parametrize(
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
def test_an_address_is_read_with_its_kind(entry, kind):
    headers = {"Authorization": "Bearer x"}
    assert one({**entry, "headers": headers}) == kind("it", "https://a/mcp", (("Authorization", "Bearer x"),))


@pytest.mark.parametrize("entry", [{"command": "x"}, {"url": "https://a/mcp"}, {"type": "sse", "url": "https://a/"}])
def test_a_server_may_be_told_no_roots(entry):
    server = one({**entry, "roots": False})
    assert not server.roots
    assert from_protocol(to_protocol(server)) == server
    assert "roots: expected true or false, got text" in refusal({**entry, "roots": "no"})


def test_comments_and_last_commas_are_no_mistake():
    reading = read("""// mine
    {"mcpServers": { /* two
      lines */ "it": {"command": "x", "args": ["a // b", "/* c */", "d,]",],},  // last
    },}""")
    assert reading == ServersFile((StdioServer("it", "x", ("a // b", "/* c */", "d,]")),))


def test_a_byte_order_mark_is_no_mistake():
    assert read('\ufeff{"servers": {"it": {"command": "x"}}}').servers == (StdioServer("it", "x"),)


def test_variables_come_from_the_environment():
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


def test_an_argument_that_comes_from_the_environment_is_hidden():
    server = one(
        {"command": "x", "args": ["--key=${KEY}", "${workspaceFolder}", "${HOME}"]}, KEY="geheim", HOME="/h/me"
    )
    assert describe(server) == "x [hidden] /srv/here /h/me"


def test_the_folder_of_the_workspace_is_that_of_the_session():
    server = one({"command": "x", "args": ["${workspaceFolder}/src"], "cwd": "${workspaceFolder}"})
    assert (server.args, server.cwd) == (("/srv/here/src",), FOLDER)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x", "expected an object with command or url, got text"),
        ({}, "expected a command or a url"),
        ({"settings": {}}, "an extension of Zed starts it, which is not here; expected a command or a url"),
        ({"command": "x", "url": "https://a"}, "it has both a command and a url; expected one of them"),
        ({"command": ""}, "command: expected the program to start, got an empty text"),
        ({"command": 3}, "command: expected text, got a number"),
        ({"command": {"args": []}}, "command: expected text, got null"),
        ({"command": "x", "args": "y"}, "args: expected a list of texts, got text"),
        ({"command": "x", "args": [True]}, "args[0]: expected text, got true or false"),
        ({"command": "x", "args": ["a", {}]}, "args[1]: expected text, got an object"),
        ({"command": "x", "env": ["A=b"]}, "env: expected an object of texts by name, got a list"),
        ({"command": "x", "env": {"A=": "b"}}, "env: expected names of variables, without ="),
        ({"command": "x\0y"}, "command: it has a character that no program takes"),
        ({"command": "x", "args": ["\ud800"]}, "args[0]: it has a character that no program takes"),
        ({"command": "x", "type": "sse"}, "its type is sse, which goes with a url; a command is stdio"),
        ({"url": "https://a", "type": "stdio"}, "its type is stdio, which goes with a command; a url is http or sse"),
        ({"url": "https://a", "type": "carrier pigeon"}, "type: expected stdio, http or sse"),
        ({"url": "ftp://a"}, "url: expected an http or https address"),
        (
            {"url": "https://a", "headers": {"a b": "c"}},
            "headers: expected names of headers, without blanks and colons",
        ),
        ({"url": "https://a", "headers": {"A": "b\r\nC: d"}}, "headers.A: a header has one line"),
        ({"command": "${NONE}"}, "command: the environment variable NONE is not set; set it and try again"),
        (
            {"command": "x", "env": {"A": "${input:key}"}},
            "env.A: only the editor can fill in its input 'key'; write ${env:NAME} in its place and set that variable",
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_in_words(entry, words):
    assert refusal(entry) == words


def test_a_name_that_cannot_be_shown_is_refused():
    reading = read({"mcpServers": {"a\x1b[2J": {"command": "x"}}})
    assert [problem.words for problem in reading.problems] == ["expected a name that can be shown"]


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_what_is_turned_off_is_left_out_and_said(off):
    reading = read({"mcpServers": {"it": {"command": "x", **off}}})
    assert reading == ServersFile(notes=("it is turned off in the file",))


def test_a_file_of_variables_is_not_read_and_that_is_said():
    reading = read({"servers": {"it": {"command": "x", "envFile": "${workspaceFolder}/.env"}}})
    assert reading.servers == (StdioServer("it", "x"),)
    assert reading.notes == ("the envFile of it is not read; put what is needed of it into env",)


def test_a_name_that_is_there_twice_is_said():
    reading = read('{"mcpServers": {"it": {"command": "x"}, "it": {"command": "y"}}}')
    assert reading == ServersFile((StdioServer("it", "y"),), notes=("'it' is there twice; the last one counts",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"mcpServers":\n  {it}}', "line 2, column 4: this is no JSON"),
        ("", "line 1, column 1: this is no JSON"),
        ("/* never ends", "this is no JSON"),
        ('{"a": "never ends', "this is no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, "a number too long"),
        ("[]", "it has no MCP servers: expected an object with mcpServers, context_servers or servers in it"),
        ('{"mcpServers": []}', "it has no MCP servers"),
        ('{"agent_servers": {}}', "it has no MCP servers"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_problem_without_a_server(text, words):
    reading = read(text)
    [problem] = reading.problems
    assert isinstance(problem, ServerProblem)
    assert problem.server is None
    assert words in problem.words
    assert reading.servers == ()


@pytest.mark.parametrize("piece", ["/*", '"', "//", "\\", ",", '"\\', "/*/"])
def test_a_file_of_nonsense_is_read_in_one_go(piece):
    assert read(piece * 200_000).servers == ()
