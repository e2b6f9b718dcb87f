import json
import os
import signal
import subprocess

import pytest

from dragoman import __version__
from tests.commands import DRAGOMAN, dragoman


def lines(*messages):
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


INITIALIZE = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def test_folder_works_like_the_agent_file_in_it(tmp_path):
    new = {"id": "new", "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    refused = dragoman("agent", "--agent", str(tmp_path), input=lines(INITIALIZE, new))
    assert (refused.returncode, "there is no dragoman.yaml in this folder" in refused.stderr) == (2, True)
    (tmp_path / "dragoman.yaml").write_text("model: anthropic:x\npermissions: {mode: plan}\n")
    done = dragoman("agent", "--agent", str(tmp_path), input=lines(INITIALIZE, new))
    initialized, answer = map(json.loads, done.stdout.splitlines()[:2])
    assert initialized["result"]["authMethods"][0]["id"] == "anthropic-key"
    assert answer["result"]["modes"]["currentModeId"] == "plan"


def test_piped_requests_are_answered_before_the_exit():
    new = {"id": "new", "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    done = dragoman("agent", input=lines(INITIALIZE, new))
    first, second, commands = map(json.loads, done.stdout.splitlines())
    assert (first["id"], first["result"]["agentInfo"]["version"]) == (0, __version__)
    assert second["result"]["sessionId"] == commands["params"]["sessionId"]
    assert commands["params"]["update"]["sessionUpdate"] == "available_commands_update"
    assert (done.returncode, done.stderr) == (0, "")


def initialize(version=1, **members):
    return {"id": 0, "method": "initialize", "params": {"protocolVersion": version, **members}}


def test_session_cancel_sent_as_a_request_is_explained():
    cancel = {"id": 1, "method": "session/cancel", "params": {"sessionId": "s"}}
    done = dragoman("agent", input=lines(INITIALIZE, cancel))
    error = json.loads(done.stdout.splitlines()[1])["error"]
    assert error["code"] == -32601
    assert error["message"] == "Method not found: session/cancel is a notification: send it without an id"


def test_misnamed_capabilities_are_explained_in_log_and_session():
    words = "The client sent its capabilities as `capabilities`, which ACP 1 calls `clientCapabilities`"
    with subprocess.Popen(
        [*DRAGOMAN, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:

        def ask(message):
            """Send a request and return the messages up to its answer."""
            process.stdin.write(lines(message))
            process.stdin.flush()
            messages = [json.loads(process.stdout.readline())]
            while messages[-1].get("id") != message["id"]:
                messages.append(json.loads(process.stdout.readline()))
            return messages

        ask(initialize(capabilities={"fs": {"readTextFile": True}}))
        new = {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
        session_id = ask(new)[-1]["result"]["sessionId"]
        prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": "hi"}]}
        first = ask({"id": 2, "method": "session/prompt", "params": prompt})
        second = ask({"id": 3, "method": "session/prompt", "params": prompt})
        process.stdin.close()
        assert process.stderr.read().startswith(f"dragoman: WARNING: {words}")
        assert words in json.dumps(first)
        assert words not in json.dumps(second)


@pytest.mark.parametrize(
    "message",
    [
        initialize(),
        initialize(clientCapabilities={}),
        initialize(clientCapabilities={}, capabilities={}),
        initialize(version=2, capabilities={}, info={"name": "x", "version": "1"}),
    ],
)
def test_correctly_named_capabilities_cause_no_warning(message):
    assert dragoman("agent", input=lines(message)).stderr == ""


def prompt_capabilities(*options, **settings):
    done = dragoman("agent", *options, input=lines(INITIALIZE), **settings)
    return json.loads(done.stdout)["result"]["agentCapabilities"]["promptCapabilities"]


TEXT_ALONE = {"embeddedContext": True}
SEEING = {"image": True, **TEXT_ALONE}
HEARING = {"audio": True, **SEEING}


@pytest.mark.parametrize(
    ("model", "capabilities"),
    [
        ("guide", TEXT_ALONE),
        ("script:s.yaml", HEARING),
        ("anthropic:claude-opus-5", SEEING),
        ("google:gemini-3-pro-preview", HEARING),
        ("deepseek:deepseek-chat", TEXT_ALONE),
    ],
)
@pytest.mark.parametrize("way", ["option", "environment", "home", "file"])
def test_content_types_of_the_configured_model_are_advertised(model, capabilities, way, tmp_path, monkeypatch):
    (tmp_path / "s.yaml").write_text("- - text: hi\n")
    options = []
    if way == "option":
        options = ["--model", model]
    elif way == "environment":
        monkeypatch.setenv("DRAGOMAN_MODEL", model)
    elif way == "home":
        monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
        (tmp_path / "dragoman.yaml").write_text(f"model: {{name: '{model}', api_key: 'secret'}}\n")
    else:
        (tmp_path / "mine.yaml").write_text(f"model: '{model}'\n")
        options = ["--agent", "mine.yaml"]
    assert prompt_capabilities(*options, cwd=tmp_path) == capabilities


def test_without_a_model_neither_images_nor_audio_are_advertised(tmp_path):
    assert prompt_capabilities(cwd=tmp_path) == TEXT_ALONE


def test_image_for_a_model_without_image_input_is_refused(tmp_path):
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    new = {"id": 1, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
    with subprocess.Popen([*DRAGOMAN, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        agent.stdin.write(lines(INITIALIZE, new))
        agent.stdin.flush()
        agent.stdout.readline()
        session_id = json.loads(agent.stdout.readline())["result"]["sessionId"]
        prompt = {"sessionId": session_id, "prompt": [image]}
        agent.stdin.write(lines({"id": 2, "method": "session/prompt", "params": prompt}))
        agent.stdin.close()
        answer = json.loads(agent.stdout.readlines()[-1])
    assert answer["error"]["code"] == -32602
    assert "guide does not accept image content; leave it out or choose another model" in str(answer["error"])


def test_session_works_over_a_pipe(tmp_path):
    script = tmp_path / "s.yaml"
    script.write_text("- - text: hi\n    repeat: 3\n")
    with subprocess.Popen(
        [*DRAGOMAN, "agent", "--model", f"script:{script}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        agent.stdin.write(
            lines(INITIALIZE, {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
        )
        agent.stdin.flush()
        agent.stdout.readline()
        session_id = json.loads(agent.stdout.readline())["result"]["sessionId"]
        agent.stdout.readline()  # the available commands
        prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": "go"}]}
        agent.stdin.write(lines({"id": 2, "method": "session/prompt", "params": prompt}))
        agent.stdin.close()
        title, *updates, answer = map(json.loads, agent.stdout)
        assert agent.wait(30) == 0
    assert title["params"]["update"]["title"] == "go"
    assert [update["params"]["update"]["content"]["text"] for update in updates] == ["hi"] * 3
    assert answer["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_agent_quietly(number):
    with subprocess.Popen(
        [*DRAGOMAN, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        agent.stdin.write(lines(INITIALIZE))
        agent.stdin.flush()
        agent.stdout.readline()
        os.kill(agent.pid, number)
        assert agent.wait(30) == 128 + number
        assert agent.stderr.read() == ""


def test_invalid_script_is_refused_at_the_start(tmp_path):
    script = tmp_path / "bad.yaml"
    script.write_text("- - text: ok\n  - txt: oops\n")
    done = dragoman("agent", "--model", f"script:{script}", input="")
    assert done.returncode == 2
    assert f"{script}:2: txt is not part of a reply" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["nonsense", "nobody:gpt"])
def test_unknown_model_is_refused_with_the_expected_form(name):
    done = dragoman("agent", "--model", name, input="")
    assert done.returncode == 2
    assert f"there is no model '{name}'; expected guide, script:FILE" in done.stderr


def test_model_may_come_from_the_environment(tmp_path):
    done = dragoman("agent", input="", env={**os.environ, "DRAGOMAN_MODEL": "nonsense"})
    assert "nonsense" in done.stderr


def test_help_version_and_unknown_commands_work():
    assert "usage: dragoman COMMAND" in dragoman("--help").stdout
    assert "usage: dragoman COMMAND" in dragoman().stdout
    assert dragoman("--version").stdout == f"dragoman {__version__}\n"
    unknown = dragoman("fly")
    assert unknown.returncode == 2
    assert "there is no command 'fly'" in unknown.stderr
