"""The formats of `dragoman run` for programs, and what is sent to the agent besides the prompt."""

import json
import sys

import pytest

from dragoman.testing import steps
from tests.commands import dragoman, raw, scripted


def dragoman_run(*arguments, **settings):
    return dragoman("run", *arguments, **settings)


def run(*turns, options=()):
    return dragoman_run("go", *options, "--", *scripted(*turns))


def capable(**capabilities):
    return [[{"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}]]


# ── json ────────────────────────────────────────────────────────────────────────────────────────────


def test_json_is_one_object_with_everything(tmp_path):
    (tmp_path / "s.yaml").write_text(json.dumps([[{"text": "yes"}, {"usage": {"input": 12, "output": 3}}]]))
    done = dragoman_run("go", "--format", "json", "--model", f"script:{tmp_path}/s.yaml")
    answer = json.loads(done.stdout)
    assert done.stderr == ""
    assert answer.pop("session_id")
    assert answer == {
        "text": "yes",
        "stop_reason": "end_turn",
        "usage": {"total_tokens": 15, "input_tokens": 12, "output_tokens": 3},
        "tool_calls": [],
        "denied": [],
        "notices": [],
        "subagents": [],
        "error": None,
        "error_code": None,
        "exit_code": 0,
    }


def test_json_has_an_error_and_the_text_before_it():
    done = run([steps.Say("so far"), steps.Fail(-32602, "no")], options=["--format", "json"])
    answer = json.loads(done.stdout)
    assert done.returncode == answer["exit_code"] == 1
    assert (answer["text"], answer["stop_reason"]) == ("so far", None)
    assert answer["error"] in done.stderr
    assert (answer["error"], answer["error_code"]) == ("the agent answered with an error: no", -32602)


def test_json_reports_a_missing_agent():
    done = dragoman_run("go", "--format", "json", "--", "true")
    assert "not an ACP agent" in json.loads(done.stdout)["error"]
    assert json.loads(done.stdout)["session_id"] is None


# ── ndjson ──────────────────────────────────────────────────────────────────────────────────────────


def test_ndjson_is_the_conversation_in_both_directions():
    unknown = {"sessionUpdate": "weather", "sun": True}
    done = run([steps.Say("hm"), steps.Update(unknown), steps.AskPermission()], options=["--format", "ndjson"])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    asked = [line["method"] for line in lines if "method" in line and "id" in line]
    assert asked == ["initialize", "session/new", "session/prompt", "session/request_permission"]
    updates = [line["params"]["update"] for line in lines if line.get("method") == "session/update"]
    assert updates[0]["content"] == {"type": "text", "text": "hm"}
    assert updates[1] == unknown
    assert {"outcome": {"outcome": "selected", "optionId": "no"}} in [line.get("result") for line in lines]
    assert lines[-1]["result"]["stopReason"] == "end_turn"
    assert done.returncode == 6


def test_ndjson_redacts_mcp_server_secrets(tmp_path):
    servers = tmp_path / "mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"one": {"command": "true", "env": {"KEY": "canary-key"}}}}))
    done = run([steps.Say("hm")], options=["--format", "ndjson", "--mcp", str(servers)])
    assert '"KEY"' in done.stdout
    assert "canary-key" not in done.stdout + done.stderr


def test_errors_are_printed_next_to_ndjson():
    done = run([steps.Say("so far"), steps.Exit(7, "boom")], options=["--format", "ndjson"])
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines())
    assert "exited with code 7" in done.stderr
    assert done.returncode == 1


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def prompt_of(tmp_path, *options, **prompt_capabilities):
    """Return the blocks that an agent receives. It returns the request in its answer."""
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import json, sys\n"
        f"CAPABILITIES = {{'promptCapabilities': {prompt_capabilities!r}}}\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    answer = {'protocolVersion': 1, 'agentCapabilities': CAPABILITIES, 'sessionId': 's'}\n"
        "    if message['method'] == 'session/prompt':\n"
        "        content = {'type': 'text', 'text': json.dumps(message['params']['prompt'])}\n"
        "        update = {'sessionUpdate': 'agent_message_chunk', 'content': content}\n"
        "        params = {'sessionId': 's', 'update': update}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'method': 'session/update', 'params': params}))\n"
        "        answer = {'stopReason': 'end_turn'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': answer}), flush=True)\n"
    )
    done = dragoman_run("look", *options, "--", sys.executable, str(agent), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text, *files = json.loads(done.stdout)
    assert text == {"type": "text", "text": "look"}
    return files


def test_file_is_a_link_for_an_agent_without_other_support(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    [link] = prompt_of(tmp_path, "--file", "a.txt")
    assert link == {
        "type": "resource_link",
        "name": "a.txt",
        "uri": (tmp_path / "a.txt").as_uri(),
        "mimeType": "text/plain",
    }


def test_text_is_embedded_if_the_agent_supports_it(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "b.bin").write_bytes(b"\xff\x00")
    text, binary, folder = prompt_of(
        tmp_path, "--file", "a.txt", "--file", "b.bin", "--file", str(tmp_path), embeddedContext=True
    )
    assert text["resource"]["text"] == "hello"
    assert (binary["type"], folder["type"]) == ("resource_link", "resource_link")


def test_image_is_sent_if_the_agent_supports_it(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    [image] = prompt_of(tmp_path, "--file", "a.png", image=True)
    assert (image["type"], image["mimeType"], image["data"]) == ("image", "image/png", "iVBORw==")


# ── MCP servers ─────────────────────────────────────────────────────────────────────────────────────


def test_agent_gets_the_mcp_servers_of_a_file(tmp_path):
    servers = {"mcpServers": {"web": {"type": "http", "url": "http://localhost:9/mcp"}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers))
    done = dragoman_run("go", "--mcp", "mcp.json", "--", *raw({}), cwd=tmp_path)
    assert done.returncode == 2
    assert "the MCP server web over HTTP needs agentCapabilities.mcpCapabilities.http" in done.stderr
    able = raw({"initialize": capable(mcpCapabilities={"http": True})})
    assert dragoman_run("go", "--mcp", "mcp.json", "--", *able, cwd=tmp_path).returncode == 0


def test_missing_server_file_is_reported():
    done = dragoman_run("go", "--mcp", "/no/such.json")
    assert done.returncode == 2
    assert "/no/such.json cannot be read" in done.stderr


# ── sessions ────────────────────────────────────────────────────────────────────────────────────────


def test_session_continues_where_it_was(tmp_path):
    def say(prompt, *options):
        return json.loads(dragoman_run(prompt, "--format", "json", *options, cwd=tmp_path).stdout)["session_id"]

    first = say("hi")
    second = say("hi")
    assert first != second
    assert say("hi again", "--session", first) == first
    assert say("hi once more", "--continue") == first


def test_load_only_agent_loads_and_its_replay_is_not_printed():
    replay = {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "before"}}}
    answer = {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "now"}}}
    agent = raw(
        {
            "initialize": capable(loadSession=True),
            "session/load": [[replay, {"result": {}}]],
            "session/prompt": [[answer, {"result": {"stopReason": "end_turn"}}]],
        }
    )
    done = dragoman_run("go", "--session", "s", "--", *agent)
    assert (done.stdout, done.returncode) == ("now\n", 0)


@pytest.mark.parametrize("option", [["--session", "s"], ["--continue"]])
def test_unrouted_resume_falls_back_to_load(option, tmp_path):
    answer = {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "now"}}}
    agent = raw(
        {
            "initialize": capable(loadSession=True, sessionCapabilities={"resume": {}, "list": {}}),
            "session/list": [[{"result": {"sessions": [{"sessionId": "s", "cwd": str(tmp_path)}]}}]],
            "session/resume": [[{"error": {"code": -32601, "message": "Method not found"}}]],
            "session/prompt": [[answer, {"result": {"stopReason": "end_turn"}}]],
        }
    )
    done = dragoman_run("go", *option, "--", *agent, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("now\n", "", 0)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--session", "s"], "cannot open earlier sessions, only new ones"),
        (["--continue"], "cannot list its sessions, so its last session is unknown; use --session ID"),
    ],
)
def test_agent_without_stored_sessions_is_named(option, words):
    done = dragoman_run("go", *option, "--", *raw({}))
    assert done.returncode == 2
    assert words in done.stderr


def test_nothing_to_continue_is_reported(tmp_path):
    done = dragoman_run("go", "--continue", cwd=tmp_path)
    assert done.returncode == 2
    assert f"no session in {tmp_path} to continue" in done.stderr
