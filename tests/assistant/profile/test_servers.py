"""The agent's own MCP servers, as its file has them."""

import pytest

from dragoman.assistant.profile import AgentServer, MissingVariable, ProfileError, ToolSettings
from dragoman.assistant.profile.servers import Argument
from dragoman.assistant.profile.settings import Secret
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from tests.assistant.profile.parsing import changes, parse

CANARY = "sk-canary-7391"


def one(entry):
    [server] = parse(f"mcpServers: {{s: {entry}}}").servers
    return server


@pytest.mark.parametrize(
    ("entry", "server"),
    [
        ("{command: uvx}", AgentServer("s", "uvx")),
        ("{command: ./bin/x, cwd: data}", AgentServer("s", "/p/bin/x", cwd="/p/data")),
        ("{command: /usr/bin/x, cwd: /d, type: stdio}", AgentServer("s", "/usr/bin/x", cwd="/d")),
        (
            "{command: x, args: [-t, 'env://T'], env: {A: b, C: 'env://D'}}",
            AgentServer("s", "x", (Argument("-t"), Argument("env://T")), {"A": Secret("b"), "C": Secret("env://D")}),
        ),
        ("{url: 'https://h/mcp'}", AgentServer("s", url="https://h/mcp", transport="http")),
        ("{url: 'https://h', type: streamable-http}", AgentServer("s", url="https://h", transport="http")),
        (
            "{url: 'https://h', type: sse, headers: {A: b}}",
            AgentServer("s", url="https://h", transport="sse", headers={"A": Secret("b")}),
        ),
        (
            "{command: x, include: agent, permission: allow, trust: true, tools: {t: {permission: deny}, u: }}",
            AgentServer(
                "s",
                "x",
                every_tool=ToolSettings("agent", "allow"),
                trust=True,
                tools={"t": ToolSettings(permission="deny"), "u": ToolSettings()},
            ),
        ),
    ],
)
def test_a_server_is_written_as_in_other_clients(entry, server):
    assert one(entry) == server


def test_servers_keep_the_order_of_the_file():
    servers = parse("mcpServers:\n  b: {command: x}\n  a: {command: x}\n").servers
    assert [server.name for server in servers] == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("mcpServers:\n  s:\n    include: agent", 3, "mcpServers.s.command: expected either command or url"),
        ("mcpServers:\n  s:\n    command: x\n    url: http://h", 4, "mcpServers.s.url: expected either command or url"),
        ("mcpServers:\n  s: {comand: x}", 2, "mcpServers.s.comand: unknown key; did you mean command?"),
        ("mcpServers:\n  s:\n    url: http://h\n    args: [x]", 4, "mcpServers.s.args: goes with command"),
        ("mcpServers:\n  s:\n    command: x\n    headers: {A: b}", 4, "mcpServers.s.headers: goes with url"),
        ("mcpServers:\n  s:\n    command: x\n    type: sse", 4, "mcpServers.s.type: a command is always stdio"),
        ("mcpServers:\n  s: {url: 'http://h', type: stdio}", 2, "expected http or sse for a url"),
        ("mcpServers:\n  s: {url: 'http://u:p@h'}", 2, "with no name or password in it"),
        ("mcpServers:\n  s: {url: 'ftp://h'}", 2, "expected an http or https address"),
        (
            "mcpServers:\n  s: {command: x, args: [5]}",
            2,
            "mcpServers.s.args[0]: expected text, got a whole number; put",
        ),
        ("mcpServers:\n  s: {command: x, args: ['env://']}", 2, "expected the name of an environment variable after"),
        ("mcpServers:\n  s: {command: x, args: a}", 2, "mcpServers.s.args: expected a list, got text"),
        ("mcpServers:\n  s: {command: x, env: {A=B: c}}", 2, "mcpServers.s.env: expected names of variables"),
        ("mcpServers:\n  s: {command: x, env: [A=b]}", 2, "mcpServers.s.env: expected a mapping, got a list"),
        ('mcpServers:\n  s: {command: "x\\0"}', 2, "no program takes a NUL character"),
        ("mcpServers:\n  s: {url: 'http://h', headers: {'A b': c}}", 2, "expected names of headers"),
        ('mcpServers:\n  s: {url: "http://h", headers: {A: "b\\nC: d"}}', 2, "a header has one line"),
        (
            "mcpServers:\n  s: {command: x, include: agnt}",
            2,
            "expected one of agent, always, manual, got agnt; did you",
        ),
        (
            "mcpServers:\n  s: {command: x, permission: alow}",
            2,
            "mcpServers.s.permission: expected one of allow, ask, deny or null, got alow",
        ),
        (
            "mcpServers:\n  s: {command: x, tools: {t: {permision: ask}}}",
            2,
            "mcpServers.s.tools.t.permision: unknown key",
        ),
        ("mcpServers:\n  s: {command: ~nobody-has-this-home/x}", 2, "is no path: nobody has that home"),
        ("mcpServers:\n  s: {command: x}\n  s: {command: y}", 3, "mcpServers.s: is given twice"),
        ('mcpServers:\n  "": {command: x}', 2, "expected a name that can be shown"),
        ("mcpServers: [x]", 1, "mcpServers: expected a mapping, got a list"),
        ("mcpserver: {}", 1, "mcpserver: unknown key; did you mean mcpServers?"),
    ],
)
def test_a_wrong_server_is_refused_with_line_and_words(text, line, words):
    with pytest.raises(ProfileError) as caught:
        parse(text)
    problems = [(problem.line, problem.text) for problem in caught.value.problems]
    assert any(at == line and words in problem for at, problem in problems), problems


def test_secrets_are_told_when_the_server_is_started():
    environment = {"T": "told", "D": "too"}
    stdio = one("{command: x, args: [-t, 'env://T'], env: {A: b, C: 'env://D'}, cwd: d}")
    env = (("A", "b"), ("C", "too"))
    assert stdio.definition(environment) == StdioServer("s", "x", ("-t", "told"), env, "/p/d", ("told",))
    http = one("{url: 'https://h', headers: {A: 'env://T'}}")
    assert http.definition(environment) == HttpServer("s", "https://h", (("A", "told"),))
    assert one("{url: 'https://h', type: sse}").definition(environment) == SseServer("s", "https://h")
    assert one("{command: x}").definition({}).cwd is None
    with pytest.raises(MissingVariable, match="T is not set"):
        http.definition({})


def test_what_is_said_of_a_tool_counts_before_what_is_said_of_its_server():
    server = one("{command: x, include: agent, permission: ask, tools: {t: {include: manual}, u: {permission: allow}}}")
    assert [server.include_of(tool) for tool in "tuv"] == ["manual", "agent", "agent"]
    assert [server.permission_of(tool) for tool in "tuv"] == ["ask", "allow", "ask"]
    assert (one("{command: x}").include_of("t"), one("{command: x}").permission_of("t")) == ("always", None)


@pytest.mark.parametrize(
    ("text", "instead_of", "sentences"),
    [
        ("mcpServers: {a: {command: x}}", "mcpServers: {a: {command: x}}", []),
        (
            "mcpServers: {a: {command: ./x, args: [a b, 'env://T'], cwd: d, env: {A: b, C: 'env://D'}}}",
            "",
            [
                "It reads the environment variable D.",
                "It reads the environment variable T.",
                "It would start a program, the MCP server a: /p/x 'a b' env://T, in /p/d, with the variables A, C.",
            ],
        ),
        (
            "mcpServers: {a: {url: 'https://h/mcp?key=k', headers: {A: b}}}",
            "",
            ["It would use the MCP server a at https://h/mcp and more behind it, with the headers A."],
        ),
        (
            """
mcpServers:
  a: {command: x, include: agent, permission: allow, trust: true, tools: {t: {permission: deny}, u: {include: manual}}}
""",
            "mcpServers: {a: {command: x}, b: {command: y}}",
            [
                "It would start a program, the MCP server a: x.",
                "What a says about which of its tools only read would be believed; those would not ask.",
                "The tools of a would run without asking.",
                "The tools of a would be put before the model when found by the search.",
                "The tool t of a would be refused.",
                "The tool u of a would be put before the model when added by hand.",
                "It would leave out your servers b.",
            ],
        ),
        ("search: {top_k: 50}", "", ["The search setting top_k would be 50 instead of 20."]),
    ],
)
def test_what_would_be_started_is_said_in_sentences(text, instead_of, sentences):
    assert changes(text, instead_of) == sentences


def test_a_long_command_is_shown_whole_and_plays_with_no_terminal():
    shown = "".join(changes(f'mcpServers: {{a: {{command: sh, args: [-c, "{"y" * 3000}; rm\\e[8m"]}}}}'))
    assert f"{'y' * 3000}; rm" in shown
    assert "\x1b" not in shown


def test_a_secret_is_in_no_sentence():
    started = f"{{command: x, env: {{A: {CANARY}}}}}"
    reached = f"{{url: 'http://h?{CANARY}', headers: {{A: {CANARY}}}}}"
    assert CANARY not in "".join(changes(f"mcpServers: {{a: {started}, b: {reached}}}"))
