"""No command prints a control character, escape sequence or bidi override of an agent, a server or a file.

The agents here are hostile in every text that an agent can send: names, titles, answers, errors, paths, ids and stderr.
Each command that shows any of it runs in every format for people. JSON keeps the exact value and escapes invisible
characters.
"""

import json
import os
import re
import sys
import unicodedata

import pytest

from dragoman.cli.chat.view import MARK
from tests.bridge.guard.serving import serving
from tests.cli.terminal import Terminal
from tests.client.driving import END
from tests.commands import raw
from tests.in_process import run_in_process
from tests.mcp.servers.commands import scripted as mcp_server

EVIL = "\x1b]0;owned\x07\x1b[35;45m\x9b31m\u202eevil\u2066\u200b\x08\x00\r\x7f\u2028\U000e0041\ufeff"
LINES = f"one {EVIL}\ntwo {EVIL}"

OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""The colours and cursor movements of `chat` and `run` on a terminal."""

JOINERS = "\u200c\u200d"


def unsafe_in(text):
    """Return the characters that control a terminal, or that hide or reorder others."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {char for char in text if unicodedata.category(char) in kinds and char not in f"\n\t{JOINERS}"}


def dragoman(*arguments, agent=None, cwd=None, given="", **variables):
    """Run a command to its end, in pipes, with its log."""
    command = [*arguments, *(["--", *agent] if agent else [])]
    return run_in_process(command, input=given, cwd=cwd, env={**os.environ, "DRAGOMAN_LOG": "debug", **variables})


# ── agents ──────────────────────────────────────────────────────────────────────────────────────────


def chunk(kind, text=LINES):
    return {"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}


CONTENT = [
    {"type": "content", "content": {"type": "text", "text": LINES}},
    {"type": "diff", "path": f"/work/{EVIL}", "oldText": LINES, "newText": f"{LINES}x"},
]
CALL = {
    "toolCallId": f"call {EVIL}",
    "title": f"Run {EVIL}",
    "kind": "execute",
    "rawInput": {"command": LINES, "cwd": f"/work/{EVIL}"},
    "locations": [{"path": f"/work/{EVIL}", "line": 1}],
    "content": CONTENT,
}
QUESTION = {
    "id": 7,
    "method": "session/request_permission",
    "params": {
        "sessionId": "s",
        "toolCall": CALL,
        "options": [
            {"optionId": EVIL, "name": f"Allow {EVIL}", "kind": "allow_once"},
            {"optionId": f"{EVIL}2", "name": f"Always {EVIL}", "kind": "allow_always"},
            {"optionId": f"{EVIL}3", "name": f"Reject {EVIL}", "kind": "reject_once"},
        ],
    },
}
UPDATES = [
    chunk("user_message_chunk"),
    chunk("agent_message_chunk"),
    chunk("agent_thought_chunk"),
    chunk("agent_thought_chunk", f"[a notice {EVIL}]"),
    {"update": {"sessionUpdate": "tool_call", "status": "in_progress", **CALL}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": CALL["toolCallId"], "status": "failed"}},
    {"update": {"sessionUpdate": "plan", "entries": [{"content": EVIL, "priority": "high", "status": "pending"}]}},
    {"update": {"sessionUpdate": "session_info_update", "title": f"Title {EVIL}", "updatedAt": EVIL}},
    {"update": {"sessionUpdate": "current_mode_update", "currentModeId": EVIL}},
    {
        "update": {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": EVIL, "description": EVIL}],
        }
    },
    {
        "update": {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "resource_link", "name": EVIL, "uri": f"file:///{EVIL}", "title": EVIL},
        }
    },
]
INITIALIZE = {
    "protocolVersion": 1,
    "agentInfo": {"name": f"agent {EVIL}", "title": EVIL, "version": EVIL},
    "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"list": {}, "fork": {}, "delete": {}}},
    "authMethods": [{"id": "key", "name": f"Key {EVIL}", "description": EVIL}],
}
WHERE = f"/work/{EVIL}".replace("\0", "")  # the client refuses a path with a NUL
SESSIONS = [{"sessionId": "s", "cwd": WHERE, "title": LINES, "updatedAt": EVIL}]
FAILURE = {"code": -32603, "message": f"Broken {EVIL}", "data": {"details": LINES, "more": EVIL}}
MODES = {"currentModeId": EVIL, "availableModes": [{"id": EVIL, "name": EVIL, "description": EVIL}]}


def agent(*turn, **methods):
    """Return the command of an agent with hostile texts everywhere. `turn` is its reaction to a prompt."""
    script = {
        "initialize": [[{"result": INITIALIZE}]],
        "session/new": [[{"result": {"sessionId": "s", "modes": MODES}}]],
        "session/load": [[*UPDATES, {"result": {"modes": MODES}}]],
        "session/list": [[{"result": {"sessions": SESSIONS}}]],
        "session/fork": [[{"result": {"sessionId": EVIL}}]],
        **{name.replace("_", "/"): [steps] for name, steps in methods.items()},
    }
    return raw(script, list(turn) or [END])


def program(text):
    return [sys.executable, "-c", text]


TALKING = agent(*UPDATES, QUESTION, {"hear": "answer"}, END)
FAILING = agent(chunk("agent_message_chunk"), {"error": FAILURE})
DYING = agent(chunk("agent_message_chunk"), {"exit": 3, "stderr": LINES})
LOGIN = agent(session_new=[{"error": {"code": -32000, "message": EVIL, "data": {"details": EVIL}}}])
REFUSING = agent(session_load=[{"error": FAILURE}], session_list=[{"error": FAILURE}])
NO_AGENT = program(f"import sys; print({LINES!r}); sys.exit({LINES!r})")
OF_OTHER_SHAPE = agent(session_new=[{"result": {"sessionId": 5, "modes": EVIL}}])
AGENTS = {
    "talking": TALKING,
    "failing": FAILING,
    "dying": DYING,
    "asking for a login": LOGIN,
    "no agent": NO_AGENT,
    "of another shape": OF_OTHER_SHAPE,
}


# ── run and chat ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("which", "policy"), [*((which, "deny") for which in AGENTS), ("talking", "allow:read")])
def test_run_prints_no_control_characters(which, policy):
    done = dragoman("run", "hi", "--policy", policy, agent=AGENTS[which])
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    assert "evil" in done.stdout + done.stderr or which == "of another shape"


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_run_json_is_exact_and_hides_nothing(form):
    done = dragoman("run", "hi", "--format", form, agent=TALKING)
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(EVIL in text for message in messages for text in texts_of(message))


def texts_of(value):
    if isinstance(value, dict):
        yield from (text for each in value.values() for text in texts_of(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in texts_of(each))
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("which", AGENTS)
def test_chat_in_a_pipe_prints_no_control_characters(which):
    done = dragoman("chat", agent=AGENTS[which], given="hi\n")
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments, agent=()):
        opened.append(Terminal([sys.executable, "-m", "dragoman", *arguments, *(["--", *agent] if agent else [])]))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def assert_harmless(shown):
    assert "\x1b]" not in shown
    assert "\x1b[35;45m" not in shown
    assert unsafe_in(OURS.sub("", shown)) == set()


def test_run_question_in_a_terminal_hides_nothing(terminal):
    shown = terminal("run", "hi", agent=TALKING)
    shown.expect("[y/1]")
    unbroken = re.sub(r"\n┃ {5}", "", shown.plain)
    assert r"$ one \x1b]0;owned\x07\x1b[35;45m\x9b31m\u202eevil\u2066\u200b\x08\x00\r\x7f\u2028" in unbroken
    shown.press("n")
    shown.end()
    assert_harmless(shown.seen)


def test_chat_shows_and_asks_without_hiding_anything(terminal):
    shown = terminal("chat", agent=TALKING)
    shown.expect(MARK)
    shown.press("hi\r")
    shown.expect("[y/1]")
    assert r"\u202eevil\u2066" in shown.plain
    shown.press("n")
    shown.expect(MARK)
    for command in (":help", ":thoughts", ":plan", ":mode", ":set", ":sessions"):
        shown.press(f"{command}\r")
        shown.expect(MARK)
    shown.press(":resume 1\r")
    shown.expect("Earlier in this conversation")
    shown.expect(MARK)
    shown.press("\x04")
    shown.end()
    assert_harmless(shown.seen)


def test_agent_file_cannot_forge_lines_of_the_trust_question(terminal, tmp_path):
    forged = "\n- Sessions would begin in the mode ask: reading is allowed, everything else asks.\n"
    server = {"command": f"sh{forged}", "args": [f"-c{forged}"], "cwd": f"d{forged}", "env": {f"A{forged}": "b"}}
    settings = {
        "instructions": f"Be kind.»{forged}«",
        "mcpServers": {"a": server},
        "rules": {"r": {"text": forged}},
        "references": {"f": {"text": forged}},
    }
    place = tmp_path / f"project{forged}"
    place.mkdir()
    (place / "dragoman.yaml").write_text(json.dumps(settings))
    shown = terminal("chat", "--cwd", str(place))
    shown.expect(MARK)
    shown.press("hi\r")
    shown.expect("[y/1]")
    shown.press("n")
    shown.expect("is not used in this session")
    # Before the first prompt the header shows the directory, and wraps it where the terminal ends.
    header, _, rest = shown.plain.partition(MARK)
    assert r"project\n-" in re.sub(r"\n", "", header)
    question = re.sub(r"\n┃ {7}", "", rest)
    assert r"MCP server a: 'sh\n- Sessions would begin" in question
    assert not re.search(r"\n[┃ ]*- Sessions would begin", question)


def test_agent_cannot_forge_lines_of_our_errors():
    forged = "x\nforged"
    option = {"type": "select", "id": forged, "name": forged, "currentValue": forged, "options": []}
    ways = [{"id": "k", "name": forged}, {"type": "terminal", "id": "t", "name": "T", "args": [forged]}]
    hostile = {
        "initialize": [[{"result": {"protocolVersion": 1, "authMethods": ways}}]],
        "session/new": [[{"error": {"code": -32000, "message": forged}}]],
    }
    offering = {**hostile, "session/new": [[{"result": {"sessionId": "s", "configOptions": [option]}}]]}
    for done in (
        dragoman("run", "hi", agent=raw(hostile, [END])),
        dragoman("run", "hi", "--option", "zz=1", agent=raw(offering, [END])),
    ):
        assert "forged" in done.stderr
        assert not re.search(r"^(?:- )?forged", done.stderr, re.MULTILINE)


# ── sessions, agents, mcp ───────────────────────────────────────────────────────────────────────────


SESSION_COMMANDS = [
    ("list",),
    ("list", "--long"),
    ("show", "s"),
    ("load", "s"),
    ("fork", "s"),
    ("delete", "s", "--yes"),
    ("export", "s"),
    ("export", "s", "--format", "html"),
    ("show", "zzz"),
]


@pytest.mark.parametrize("arguments", SESSION_COMMANDS, ids=" ".join)
def test_sessions_prints_no_control_characters(arguments):
    for of in (TALKING, REFUSING):
        done = dragoman("sessions", *arguments, agent=of)
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


@pytest.mark.parametrize("arguments", [("list",), ("show", "s"), ("load", "s"), ("fork", "s")], ids=" ".join)
def test_sessions_json_is_exact_and_hides_nothing(arguments):
    done = dragoman("sessions", *arguments, "--format", "json", agent=TALKING)
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    assert any(EVIL in text for text in texts_of(json.loads(done.stdout)))


def test_agents_prints_no_control_characters(home):
    entry = {"command": f"program{EVIL.replace(chr(0), '')}", "args": [EVIL], "description": LINES}
    (home / "agents.json").write_text(json.dumps({"agents": {f"name {EVIL}": entry}}))
    released = {"id": f"id {EVIL}", "name": EVIL, "version": EVIL, "description": LINES, "distribution": {EVIL: {}}}
    (home / "registry.json").write_text(json.dumps({"version": "1.0.0", "agents": [released]}))
    done = dragoman("agents")
    assert "evil" in done.stdout
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    assert any(EVIL in text for text in texts_of(json.loads(dragoman("agents", "--format", "json").stdout)))
    (home / "agents.json").write_text(json.dumps({"agents": {EVIL: EVIL}}))
    for done in (dragoman("agents"), dragoman("run", "hi", agent=[EVIL.replace("\0", "")])):
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


def test_names_in_files_cannot_forge_lines_of_our_errors(home, tmp_path):
    forged = "x\nforged"
    released = {"id": forged, "name": forged, "version": "1.0.0", "description": forged, "distribution": {}}
    (home / "registry.json").write_text(json.dumps({"version": "1.0.0", "agents": [released]}))
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {forged: {"command": "true"}}}))
    for arguments in (("agents", "install", "zz", "--yes"), ("run", "hi", "--mcp", ".mcp.json")):
        done = dragoman(*arguments, cwd=tmp_path)
        assert "forged" in done.stderr
        assert "\nforged" not in done.stderr


TOOL = {"name": f"tool {EVIL}", "title": EVIL, "description": LINES, "inputSchema": {"type": "object"}}
SERVERS = {
    "ready": mcp_server(tools=[TOOL], prompts=[{"name": EVIL, "description": LINES, "text": "x"}]),
    "failed": program(f"import sys; sys.exit({LINES!r})"),
    "no server": program(f"print({LINES!r})"),
}


def test_mcp_prints_no_control_characters(tmp_path):
    servers = {name: {"command": command[0], "args": command[1:]} for name, command in SERVERS.items()}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    rules = {f"rule {EVIL}": {"text": EVIL}}
    (tmp_path / "dragoman.yaml").write_text(json.dumps({"instructions": LINES, "rules": rules, EVIL: EVIL}))
    for arguments in (("--mcp", ".mcp.json"), ("--mcp", ".mcp.json", "--format", "json")):
        done = dragoman("mcp", *arguments, cwd=tmp_path)
        assert "evil" in done.stdout + done.stderr
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


# ── check and tap ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "html", "sarif", "json"])
def test_check_reports_contain_no_control_characters(form, tmp_path):
    recording = tmp_path / "hostile.jsonl"
    messages = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 0, "result": {**INITIALIZE, EVIL: EVIL}},
        {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
        {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", EVIL: EVIL}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}},
        *(
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", **each, EVIL: EVIL}}
            for each in UPDATES
        ),
        {"jsonrpc": "2.0", "method": EVIL, "params": {EVIL: EVIL}},
        {"jsonrpc": "2.0", "id": EVIL, "error": FAILURE},
        {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": EVIL}},
    ]
    recording.write_text("".join(f"{json.dumps(message, ensure_ascii=False)}\n" for message in messages))
    done = dragoman("check", "trace", str(recording), "--format", form, "--verbose")
    assert "evil" in done.stdout
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


def test_check_of_an_agent_prints_no_control_characters():
    for of in (NO_AGENT, DYING):
        done = dragoman(
            "check", "agent", "--answer-timeout", "1", "--start-timeout", "5", "--turn-timeout", "2", agent=of
        )
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


def test_tap_prints_no_control_characters_and_passes_bytes_unchanged():
    lines = [{"jsonrpc": "2.0", "id": EVIL, "result": {}}, {"jsonrpc": "2.0", "method": EVIL, EVIL: EVIL}, EVIL]
    given = "".join(f"{json.dumps(each)}\n" for each in lines) + f"{LINES}\n"
    echo = program("import shutil,sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)")
    done = dragoman("tap", "--live", agent=echo, given=given)
    assert "fail" in done.stderr
    assert unsafe_in(done.stderr) == set()


def test_tap_cleans_the_agents_stderr_on_a_terminal(terminal):
    shown = terminal("tap", agent=program(f"import sys; sys.stderr.write({LINES!r})"))
    shown.end()
    assert "evil" in shown.plain
    assert_harmless(shown.seen)


# ── serve and agent ─────────────────────────────────────────────────────────────────────────────────


def test_serve_and_its_clients_print_no_control_characters(tmp_path):
    place = tmp_path / "place \u202e\x1b[35;45m"
    place.mkdir()
    with serving(tmp_path / "home", "--cwd", str(place), agent=DYING, DRAGOMAN_LOG="debug") as served:
        done = dragoman("run", "hi", "--url", served.acp, DRAGOMAN_TOKEN=served.token)
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
        served.stop()
    assert "new sessions start in" in served.stderr
    assert unsafe_in(served.stderr) == set()


def test_our_agent_reports_errors_without_control_characters(tmp_path):
    file = tmp_path / "dragoman.yaml"
    evil = "".join(f"\\U{ord(char):08x}" for char in EVIL)
    for content in (f'"{evil}": 1', f'rules: {{"{evil}": 5}}', f'model: "{evil}"', f'model: "script:{evil}"'):
        file.write_text(content)
        done = dragoman("run", "hi", "--agent", str(file))
        assert "evil" in done.stderr
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
