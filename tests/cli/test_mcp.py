"""`dragoman mcp` shows what a session would get, whatever its servers do."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.assistant.profile import TrustStore
from dragoman.assistant.profile.profile import parse_profile
from dragoman.cli import main as run_command
from dragoman.mcp.config_files import read_servers
from tests.assistant.profile.finding import first_profile
from tests.mcp.servers.commands import TIME, everything_http, needs_node, scripted, scripted_http
from tests.proc.processes import alive, wait_until_gone


def main(arguments):
    """Run the command in this process."""
    return run_command(["mcp", *arguments])


DRAGOMAN = [sys.executable, "-m", "dragoman", "mcp"]
PAGE = Path(__file__).parents[2] / "docs/mcp.md"
CANARY = "canary-4711"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entry(command, **more):
    return {"command": command[0], "args": command[1:], **more}


def write_agent_file(directory, **servers):
    (directory / "dragoman.yaml").write_text(json.dumps({"mcpServers": servers}))


def write_client_file(directory, **servers):
    (directory / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return ["--mcp", str(directory / ".mcp.json")]


def look(capsys, *arguments):
    """Return the exit code and the printed object."""
    code = main([*arguments, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def states(report):
    return {server["name"]: server["state"] for server in report["servers"]}


# ── servers of a session ────────────────────────────────────────────────────────────────────────────


def test_several_client_files_are_combined(here, capsys):
    for name in ("one", "two"):
        (here / f"{name}.json").write_text(json.dumps({"mcpServers": {name: entry(scripted())}}))
    code, report = look(capsys, "--mcp", "one.json", "--mcp", "two.json")
    assert (code, states(report)) == (0, {"one": "ready", "two": "ready"})


def test_without_servers_the_output_says_how_to_add_some(here, capsys):
    assert main([]) == 0
    assert "`dragoman mcp add NAME -- COMMAND`" in capsys.readouterr().out


def test_report_is_available_as_json(here, capsys):
    tool = {"name": "look", "description": "Look.", "inputSchema": {"type": "object"}}
    reads = {"annotations": {"readOnlyHint": True}}
    prompt = {"name": "greet", "arguments": [{"name": "who", "required": True}], "text": "Hello {who}"}
    command = scripted(tools=[tool, {**tool, "name": "read", **reads}], prompts=[prompt])
    assert look(capsys, *write_client_file(here, one=entry(command))) == (
        0,
        {
            "servers": [
                {
                    "name": "one",
                    "origin": "client",
                    "transport": "stdio",
                    "state": "ready",
                    "reason": None,
                    "what": " ".join(command),
                    "tools": [
                        {
                            "name": "look",
                            "model_name": "one__look",
                            "include": "always",
                            "permission": None,
                            "reads_only": False,
                            "description": "Look.",
                            "parameters": {"type": "object"},
                        },
                        {
                            "name": "read",
                            "model_name": "one__read",
                            "include": "always",
                            "permission": None,
                            "reads_only": True,
                            "description": "Look.",
                            "parameters": {"type": "object"},
                        },
                    ],
                    "prompts": [
                        {
                            "name": "greet",
                            "title": "",
                            "description": "",
                            "arguments": [{"name": "who", "description": "", "required": True}],
                        }
                    ],
                }
            ],
            "shadowed": [],
            "notices": [],
            "agent_file": None,
            "understood": [],
        },
    )


def test_agent_files_settings_of_each_tool_are_shown(here, home, capsys):
    settings = {"include": "agent", "permission": "ask"}
    tools = {"tool_00001": {"include": "manual", "permission": "deny"}}
    write_agent_file(home, one=entry(scripted(tools=[], tool_count=2), **settings, tools=tools))
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert f"agent file: {home / 'dragoman.yaml'}" in shown
    assert "one (stdio, from the agent file): ready, 2 tools" in shown
    assert re.search(r"^  tool_00000  agent   permission: ask ", shown, re.MULTILINE)
    assert re.search(r"^  tool_00001  manual  permission: deny ", shown, re.MULTILINE)


def test_tool_with_another_name_for_the_model_shows_both(here, capsys):
    tool = {"name": "look/here", "inputSchema": {"type": "object"}}
    main(write_client_file(here, one=entry(scripted(tools=[tool]))))
    assert "look/here (as one__look_here)" in capsys.readouterr().out


def test_real_server_is_shown(here, capsys):
    assert main(write_client_file(here, time=entry(TIME))) == 0
    shown = capsys.readouterr().out
    assert "time (stdio, from the client): ready, 2 tools" in shown
    assert "Get current time in a specific timezone" in shown


@needs_node
@pytest.mark.parametrize(("kind", "transport"), [("streamableHttp", "http"), ("sse", "sse")])
def test_real_server_at_a_url_is_shown(kind, transport, here, capsys):
    with everything_http(kind) as address:
        code, report = look(capsys, *write_client_file(here, all={"type": transport, "url": address}))
    [server] = report["servers"]
    assert (code, server["transport"], server["what"]) == (0, transport, address)
    assert "echo" in [tool["name"] for tool in server["tools"]]
    assert "simple-prompt" in [prompt["name"] for prompt in server["prompts"]]


def test_servers_start_in_the_session_directory(here, capsys):
    (here / "project").mkdir()
    command = ["sh", "-c", "pwd >&2; exit 3"]
    code, report = look(capsys, "--cwd", str(here / "project"), *write_client_file(here, one=entry(command)))
    assert code == 1
    assert str(here / "project") in report["servers"][0]["reason"]


def test_client_server_shadows_the_agents_of_the_same_name(here, home, capsys):
    write_agent_file(home, one=entry(scripted(pid_file=str(here / "started"))))
    code, report = look(capsys, *write_client_file(here, one=entry(scripted())))
    assert (code, report["shadowed"]) == (0, ["one"])
    assert [(server["name"], server["origin"]) for server in report["servers"]] == [("one", "client")]
    assert report["notices"] == ["The client's MCP server one replaces the agent's server of the same name."]
    assert not (here / "started").exists()


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────


def test_failing_server_shows_its_reason_and_affects_no_other(here, capsys):
    servers = {
        "good": entry(scripted()),
        "crashed": entry(scripted(crash_at="initialize", crash_stderr="no licence")),
        "missing": {"command": "no-such-program-here"},
        "wrong": {"command": "x", "args": "y"},
    }
    code, report = look(capsys, *write_client_file(here, **servers))
    assert code == 1
    assert states(report) == {"good": "ready", "crashed": "failed", "missing": "failed", "wrong": "failed"}
    reasons = {server["name"]: server["reason"] for server in report["servers"]}
    assert "exited with code 3" in reasons["crashed"]
    assert "no licence" in reasons["crashed"]
    assert "no such command" in reasons["missing"]
    assert reasons["wrong"] == "args: expected a list of strings, got text"


def test_url_with_wrong_credentials_says_so(here, capsys):
    with scripted_http(authorization="Bearer right") as address:
        server = {"url": f"{address}/mcp", "headers": {"Authorization": "Bearer wrong"}}
        code, report = look(capsys, *write_client_file(here, one=server))
    assert code == 1
    assert "check the headers configured for it" in report["servers"][0]["reason"]


def test_unset_variable_fails_its_server_and_is_reported_once(here, home, capsys, monkeypatch):
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    write_agent_file(home, one=entry(scripted(), env={"TOKEN": "env://NO_SUCH_TOKEN"}), two=entry(scripted()))
    assert main([]) == 1
    shown = capsys.readouterr().out
    assert "two (stdio, from the agent file): ready, 1 tool\n" in shown
    assert shown.count("the environment variable NO_SUCH_TOKEN is not set") == 1


def test_hanging_server_times_out_as_requested(here, capsys):
    hung = entry(scripted(hang_at="initialize", pid_file=str(here / "pids")))
    code, report = look(capsys, "--start-timeout", "3", *write_client_file(here, hung=hung, good=entry(scripted())))
    assert (code, states(report)["hung"]) == (1, "connecting")
    assert report["servers"][0]["reason"] == "it was not ready within 3 s"
    assert not any(alive(int(pid)) for pid in (here / "pids").read_text().split())


def test_interrupt_leaves_no_process(here):
    pids = here / "pids"
    os.mkfifo(here / "ready")
    hung = scripted(hang_at="start", pid_file=str(pids))
    ready = ["sh", "-c", f"{shlex.join(hung)} & echo $! >{pids}; echo up >{here / 'ready'}; wait"]
    command = [*DRAGOMAN, *write_client_file(here, hung=entry(ready))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert (here / "ready").read_text() == "up\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 130
    wait_until_gone([int(pid) for pid in pids.read_text().split()])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cwd", "nowhere"], "is not a directory"),
        (["--mcp", "nowhere"], "nowhere cannot be read: No such file or directory"),
        (["--mcp", "."], "cannot be read: it is not a regular file"),
        (["--mcp", "bad.json"], "bad.json: line 1, column 1: not valid JSON"),
        (["--mcp", "other.json"], "other.json: it has no MCP servers"),
        (["--agent", "nowhere"], "nowhere: there is no such agent file; `dragoman init` writes one"),
        (["--agent", "wrong.yaml"], "wrong.yaml:1: mcpServer: unknown key; did you mean mcpServers?"),
    ],
)
def test_bad_input_is_reported_in_words(arguments, words, here, capsys):
    (here / "bad.json").write_text("nonsense")
    (here / "other.json").write_text("{}")
    (here / "wrong.yaml").write_text("mcpServer: {}")
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("arguments", [["--start-timeout", "0"], ["--start-timeout", "inf"], ["--force"], ["restart"]])
def test_invalid_command_line_is_refused(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_no_secret_is_shown(here, home, capsys, monkeypatch):
    monkeypatch.setenv("SECRET", CANARY)
    failing = ["sh", "-c", 'echo "$TOKEN $1" >&2; exit 3', "failing"]
    write_agent_file(
        home,
        in_file=entry(failing, env={"TOKEN": CANARY}),
        in_environment=entry([*failing, "env://SECRET"], env={"TOKEN": "env://SECRET"}),
        in_header={"url": f"http://127.0.0.1:9/mcp?key={CANARY}", "headers": {"Authorization": f"Bearer {CANARY}"}},
    )
    brought = write_client_file(
        here,
        brought=entry([*failing, "${SECRET}"], env={"TOKEN": "${SECRET}"}),
        refused=entry(failing, env={"TOKEN": f"{CANARY}\0"}),
    )
    for output in ([], ["--format", "json"]):
        assert main([*brought, *output]) == 1
        printed = capsys.readouterr()
        assert "brought" in printed.out
        assert "exited with code 3" in printed.out
        assert CANARY not in printed.out + printed.err


# ── choice of the agent file ────────────────────────────────────────────────────────────────────────


def test_untrusted_project_file_starts_nothing(here, home, capsys):
    write_agent_file(here, one=entry(scripted(pid_file=str(here / "started"))))
    code, report = look(capsys)
    assert (code, report["servers"], report["agent_file"]) == (0, [], None)
    [notice] = report["notices"]
    assert "is ignored until you agree to its changes" in notice
    assert f"`--agent {here / 'dragoman.yaml'}` uses it now" in notice
    assert "It would start a program, the MCP server one:" in notice
    assert not (here / "started").exists()
    TrustStore(home).remember(here / "dragoman.yaml", first_profile(None, str(here), home).digest, allowed=True)
    assert states(look(capsys)[1]) == {"one": "ready"}


def test_explicitly_named_project_file_is_used(here, capsys):
    write_agent_file(here, one=entry(scripted()))
    code, report = look(capsys, "--agent", "dragoman.yaml")
    assert (code, states(report), report["notices"]) == (0, {"one": "ready"}, [])


def test_invalid_project_file_is_reported_and_the_own_one_used(here, home, capsys):
    (here / "dragoman.yaml").write_text("nonsense: true")
    write_agent_file(home, one=entry(scripted()))
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "The agent file of this project is ignored, because it is not valid:" in shown
    assert "one (stdio, from the agent file): ready" in shown


def test_tsagent_file_is_shown_with_the_meaning_of_its_keys(here, home, capsys):
    settings = {"model": "claude:claude-sonnet-4-5", "theme": "dark"}
    content = {"metadata": {"name": "x"}, "settings": settings, "mcpServers": {"one": entry(scripted())}}
    (home / "tsagent.json").write_text(json.dumps(content))
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^  settings.model +used +the model anthropic:claude-sonnet-4-5$", shown, re.MULTILINE)
    assert re.search(r"^  settings.theme +ignored +dragoman has no theme", shown, re.MULTILINE)
    assert "one (stdio, from the agent file): ready" in shown
    understood = {row["key"]: row["used"] for row in look(capsys)[1]["understood"]}
    assert (understood["mcpServers.one"], understood["settings.theme"]) == (True, False)


# ── on a terminal ───────────────────────────────────────────────────────────────────────────────────


def in_a_terminal(*arguments, **environment):
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*DRAGOMAN, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **environment}
    ):
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # every process on the other side has ended
            pass
    os.close(ours)
    return shown.decode()


def test_terminal_shows_progress_and_colours(here):
    shown = in_a_terminal(*write_client_file(here, one=entry(scripted()), two=entry(scripted())))
    assert "0 of 2 MCP servers done; waiting for one, two" in shown
    progress, _, report = shown.rpartition("\r\x1b[2K")
    assert "2 of 2 MCP servers done" in progress
    assert "\x1b[1mone\x1b[0m (stdio, from the client): \x1b[32mready, 1 tool\x1b[0m" in report


def test_no_color_disables_colours(here):
    shown = in_a_terminal(*write_client_file(here, one=entry(scripted())), NO_COLOR="1")
    assert "one (stdio, from the client): ready, 1 tool" in shown.rpartition("\r\x1b[2K")[2]


def test_long_description_is_cut_to_the_terminal(here):
    tool = {"name": "look", "description": "long " * 100, "inputSchema": {"type": "object"}}
    shown = in_a_terminal(*write_client_file(here, one=entry(scripted(tools=[tool]))), NO_COLOR="1", COLUMNS="60")
    [line] = [line for line in shown.splitlines() if line.startswith("  look")]
    assert len(line) == 60
    assert line.endswith("…")


def test_pipe_gets_neither_progress_nor_colours(here):
    command = [*DRAGOMAN, *write_client_file(here, one=entry(scripted()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert "ready, 1 tool" in done.stdout
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_server_text_does_nothing_to_a_terminal(here, capsys):
    tool = {"name": "lo\x1b[2Jok", "description": "a\r\nb\x1b]0;title\x07", "inputSchema": {"type": "object"}}
    main(write_client_file(here, one=entry(scripted(tools=[tool]))))
    shown = capsys.readouterr().out
    assert r"lo\x1b[2Jok" in shown
    assert r"a b\x1b]0;title\x07" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)


# ── the documentation ───────────────────────────────────────────────────────────────────────────────


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_files_in_the_documentation_are_valid(here):
    assert [parse_profile(text, here / "dragoman.yaml").servers for text in blocks("yaml")]
    assert read_servers(blocks("json")[0], str(here), {}).servers
    assert [json.loads(text) for text in blocks("json")]
