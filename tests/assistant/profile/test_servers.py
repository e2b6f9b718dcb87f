"""The agent's own MCP servers in its file."""

import pytest

from dragoman.assistant.profile import AgentServer, MissingVariableError, ProfileError
from dragoman.assistant.profile.servers import Argument, ToolSettings
from dragoman.assistant.profile.settings import Secret
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer
from tests.assistant.profile.parsing import changes, parse
from tests.table import each_row

CANARY = "sk-canary-7391"


def one(entry):
    [server] = parse(f"mcpServers: {{s: {entry}}}").servers
    return server


@each_row(
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
def test_server_format_matches_other_clients(entry, server):
    assert one(entry) == server


def test_servers_keep_the_order_of_the_file():
    servers = parse("mcpServers:\n  b: {command: x}\n  a: {command: x}\n").servers
    assert [server.name for server in servers] == ["b", "a"]


@each_row(
    ("text", "line", "words"),
    [
        ("mcpServers:\n  s:\n    include: agent", 3, "mcpServers.s.command: expected either command or url"),
        ("mcpServers:\n  s:\n    command: x\n    url: http://h", 4, "mcpServers.s.url: expected either command or url"),
        ("mcpServers:\n  s: {comand: x}", 2, "mcpServers.s.comand: unknown key; did you mean command?"),
        ("mcpServers:\n  s:\n    url: http://h\n    args: [x]", 4, "mcpServers.s.args: can be used only with command"),
        (
            "mcpServers:\n  s:\n    command: x\n    headers: {A: b}",
            4,
            "mcpServers.s.headers: can be used only with url",
        ),
        (
            "mcpServers:\n  s:\n    command: x\n    type: sse",
            4,
            "mcpServers.s.type: can be used only with url; a command always uses stdio",
        ),
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
        ("mcpServers:\n  s: {command: x, env: {A=B: c}}", 2, "mcpServers.s.env: expected variable names"),
        ("mcpServers:\n  s: {command: x, env: [A=b]}", 2, "mcpServers.s.env: expected a mapping, got a list"),
        ('mcpServers:\n  s: {command: "x\\0"}', 2, "must not contain a NUL character"),
        ("mcpServers:\n  s: {url: 'http://h', headers: {'A b': c}}", 2, "expected header names"),
        ('mcpServers:\n  s: {url: "http://h", headers: {A: "b\\nC: d"}}', 2, "a header must be one line"),
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
        ("mcpServers:\n  s: {command: ~nobody-has-this-home/x}", 2, "is not a valid path: the user does not exist"),
        ("mcpServers:\n  s: {command: x}\n  s: {command: y}", 3, "mcpServers.s: is given twice"),
        ('mcpServers:\n  "": {command: x}', 2, "expected a name of printable characters"),
        ("mcpServers: [x]", 1, "mcpServers: expected a mapping, got a list"),
        ("mcpserver: {}", 1, "mcpserver: unknown key; did you mean mcpServers?"),
    ],
)
def test_invalid_server_is_refused_with_line_and_message(text, line, words):
    with pytest.raises(ProfileError) as caught:
        parse(text)
    problems = [(problem.line, problem.text) for problem in caught.value.problems]
    assert any(at == line and words in problem for at, problem in problems), problems


def test_secrets_are_revealed_when_the_server_starts():
    environment = {"T": "told", "D_TOKEN": "too"}
    stdio = one("{command: x, args: [-t, 'env://T'], env: {A: b, C: 'env://D_TOKEN'}, cwd: d}")
    env = (("A", "b"), ("C", "too"))
    assert stdio.definition(environment) == StdioServer("s", "x", ("-t", "told"), env, "/p/d", ("too",))
    http = one("{url: 'https://h', headers: {A: 'env://T'}}")
    assert http.definition(environment) == HttpServer("s", "https://h", (("A", "told"),))
    assert one("{url: 'https://h', type: sse}").definition(environment) == SseServer("s", "https://h")
    assert one("{command: x}").definition({}).cwd is None
    with pytest.raises(MissingVariableError, match="the environment variable T is not set"):
        http.definition({})


def test_tool_settings_override_the_servers():
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
            ["It would use the MCP server a at https://h/mcp and a query that is not shown, with the headers A."],
        ),
        (
            """
mcpServers:
  a: {command: x, include: agent, permission: allow, trust: true, tools: {t: {permission: deny}, u: {include: manual}}}
""",
            "mcpServers: {a: {command: x}, b: {command: y}}",
            [
                "It would start a program, the MCP server a: x.",
                "The tools that a marks as read-only would run without asking.",
                "The tools of a would run without asking.",
                "The tools of a would be sent to the model when found by the search.",
                "The tool t of a would be refused.",
                "The tool u of a would be sent to the model when added manually.",
                "It would remove your servers b.",
            ],
        ),
        ("search: {top_k: 50}", "", ["The search setting top_k would be 50 instead of 20."]),
    ],
)
def test_started_programs_are_described_in_sentences(text, instead_of, sentences):
    assert changes(text, instead_of) == sentences


def test_long_command_is_shown_in_full_without_control_characters():
    shown = "".join(changes(f'mcpServers: {{a: {{command: sh, args: [-c, "{"y" * 3000}; rm\\e[8m"]}}}}'))
    assert f"{'y' * 3000}; rm" in shown
    assert "\x1b" not in shown


def test_sentences_contain_no_secrets():
    started = f"{{command: x, env: {{A: {CANARY}}}}}"
    reached = f"{{url: 'http://h?{CANARY}', headers: {{A: {CANARY}}}}}"
    assert CANARY not in "".join(changes(f"mcpServers: {{a: {started}, b: {reached}}}"))
