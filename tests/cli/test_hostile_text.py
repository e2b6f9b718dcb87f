"""No command prints a control character, an escape sequence or a bidi override of an agent, a server or a file.

The agents here are hostile in every text that an agent can send: names, titles, answers, errors, paths, ids, and what
they write to stderr. Each command that shows any of it is run in every format that a person reads. JSON keeps the exact
value, and escapes what cannot be seen.
"""

import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest

from dragoman.cli.chat.view import MARK
from tests.bridge.guard.serving import serving
from tests.cli.terminal import Terminal
from tests.client.driving import END
from tests.commands import raw
from tests.mcp.servers.commands import scripted as mcp_server

EVIL = "\x1b]0;owned\x07\x1b[35;45m\x9b31m\u202eevil\u2066\u200b\x08\x00\r\x7f\u2028\U000e0041\ufeff"
LINES = f"one {EVIL}\ntwo {EVIL}"
TIMEOUT_S = 60

OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""The colours and cursor movements of `chat` and `run` on a terminal."""

JOINERS = "\u200c\u200d"


def unsafe_in(text):
    """Return the characters of a text that a terminal obeys, or that hide or turn others."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {char for char in text if unicodedata.category(char) in kinds and char not in f"\n\t{JOINERS}"}


def dragoman(*arguments, agent=None, cwd=None, given="", **variables):
    """Run a command to its end, in pipes, with its log."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments, *(["--", *agent] if agent else [])],
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=cwd,
        env={**os.environ, "DRAGOMAN_LOG": "debug", **variables},
    )


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
    """Return the command of an agent that is hostile in all that it says; `turn` is what it does with a prompt."""
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
def test_run_prints_nothing_that_a_terminal_obeys(which, policy):
    done = dragoman("run", "hi", "--policy", policy, agent=AGENTS[which])
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    assert "evil" in done.stdout + done.stderr or which == "of another shape"


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_run_prints_exact_json_in_which_nothing_hides(form):
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
def test_chat_in_a_pipe_prints_nothing_that_a_terminal_obeys(which):
    done = dragoman("chat", agent=AGENTS[which], given="hi\n")
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments, agent):
        opened.append(Terminal([sys.executable, "-m", "dragoman", *arguments, "--", *agent]))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def assert_harmless(shown):
    assert "\x1b]" not in shown
    assert "\x1b[35;45m" not in shown
    assert unsafe_in(OURS.sub("", shown)) == set()


def test_run_asks_in_a_terminal_with_nothing_hidden(terminal):
    shown = terminal("run", "hi", agent=TALKING)
    shown.expect("[y/1]")
    unbroken = re.sub(r"\n┃ {5}", "", shown.plain)
    assert r"$ one \x1b]0;owned\x07\x1b[35;45m\x9b31m\u202eevil\u2066\u200b\x08\x00\r\x7f\u2028" in unbroken
    shown.press("n")
    shown.end()
    assert_harmless(shown.seen)


def test_chat_shows_and_asks_with_nothing_hidden(terminal):
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
    shown.expect("This was said before")
    shown.expect(MARK)
    shown.press("\x04")
    shown.end()
    assert_harmless(shown.seen)


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
def test_sessions_prints_nothing_that_a_terminal_obeys(arguments):
    for of in (TALKING, REFUSING):
        done = dragoman("sessions", *arguments, agent=of)
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


@pytest.mark.parametrize("arguments", [("list",), ("show", "s"), ("load", "s"), ("fork", "s")], ids=" ".join)
def test_sessions_prints_exact_json_in_which_nothing_hides(arguments):
    done = dragoman("sessions", *arguments, "--json", agent=TALKING)
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    assert any(EVIL in text for text in texts_of(json.loads(done.stdout)))


def test_agents_prints_nothing_that_a_terminal_obeys(home):
    entry = {"command": f"program{EVIL.replace(chr(0), '')}", "args": [EVIL], "description": LINES}
    (home / "agents.json").write_text(json.dumps({"agents": {f"name {EVIL}": entry}}))
    released = {"id": f"id {EVIL}", "name": EVIL, "version": EVIL, "description": LINES, "distribution": {EVIL: {}}}
    (home / "registry.json").write_text(json.dumps({"version": "1.0.0", "agents": [released]}))
    done = dragoman("agents")
    assert "evil" in done.stdout
    assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
    assert any(EVIL in text for text in texts_of(json.loads(dragoman("agents", "--json").stdout)))
    (home / "agents.json").write_text(json.dumps({"agents": {EVIL: EVIL}}))
    for done in (dragoman("agents"), dragoman("run", "hi", agent=[EVIL.replace("\0", "")])):
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


TOOL = {"name": f"tool {EVIL}", "title": EVIL, "description": LINES, "inputSchema": {"type": "object"}}
SERVERS = {
    "ready": mcp_server(tools=[TOOL], prompts=[{"name": EVIL, "description": LINES, "text": "x"}]),
    "failed": program(f"import sys; sys.exit({LINES!r})"),
    "no server": program(f"print({LINES!r})"),
}


def test_mcp_prints_nothing_that_a_terminal_obeys(tmp_path):
    servers = {name: {"command": command[0], "args": command[1:]} for name, command in SERVERS.items()}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    rules = {f"rule {EVIL}": {"text": EVIL}}
    (tmp_path / "dragoman.yaml").write_text(json.dumps({"instructions": LINES, "rules": rules, EVIL: EVIL}))
    for arguments in (("--mcp", ".mcp.json"), ("--mcp", ".mcp.json", "--json")):
        done = dragoman("mcp", *arguments, cwd=tmp_path)
        assert "evil" in done.stdout + done.stderr
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


# ── check and tap ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["terminal", "markdown", "junit", "html", "sarif", "json"])
def test_check_reports_nothing_that_a_terminal_obeys(form, tmp_path):
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


def test_check_of_an_agent_prints_nothing_that_a_terminal_obeys():
    for of in (NO_AGENT, DYING):
        done = dragoman("check", "agent", "--timeout", "1", "--start-timeout", "5", "--turn-timeout", "2", agent=of)
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()


def test_tap_says_nothing_that_a_terminal_obeys_and_passes_what_it_is_given():
    lines = [{"jsonrpc": "2.0", "id": EVIL, "result": {}}, {"jsonrpc": "2.0", "method": EVIL, EVIL: EVIL}, EVIL]
    given = "".join(f"{json.dumps(each)}\n" for each in lines) + f"{LINES}\n"
    echo = program("import shutil,sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)")
    done = dragoman("tap", "--live", agent=echo, given=given)
    assert "fail" in done.stderr
    assert unsafe_in(done.stderr) == set()


def test_tap_on_a_terminal_shows_an_agents_stderr_without_what_the_terminal_obeys(terminal):
    shown = terminal("tap", agent=program(f"import sys; sys.stderr.write({LINES!r})"))
    shown.end()
    assert "evil" in shown.plain
    assert_harmless(shown.seen)


# ── serve and agent ─────────────────────────────────────────────────────────────────────────────────


def test_serve_and_who_asks_it_print_nothing_that_a_terminal_obeys(tmp_path):
    place = tmp_path / "place \u202e\x1b[35;45m"
    place.mkdir()
    with serving(tmp_path / "home", "--cwd", str(place), agent=DYING, DRAGOMAN_LOG="debug") as served:
        done = dragoman("run", "hi", "--url", served.acp, DRAGOMAN_TOKEN=served.token)
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
        served.stop()
    assert "new sessions begin in" in served.stderr
    assert unsafe_in(served.stderr) == set()


def test_our_agent_complains_of_nothing_that_a_terminal_obeys(tmp_path):
    file = tmp_path / "dragoman.yaml"
    evil = "".join(f"\\U{ord(char):08x}" for char in EVIL)
    for content in (f'"{evil}": 1', f'rules: {{"{evil}": 5}}', f'model: "{evil}"', f'model: "script:{evil}"'):
        file.write_text(content)
        done = dragoman("run", "hi", "--agent", str(file))
        assert "evil" in done.stderr
        assert unsafe_in(done.stdout) == unsafe_in(done.stderr) == set()
