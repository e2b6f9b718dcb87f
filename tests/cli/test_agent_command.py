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


def test_piped_requests_are_all_answered_before_it_ends():
    new = {"id": "new", "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    done = dragoman("agent", input=lines(INITIALIZE, new))
    first, second, commands = map(json.loads, done.stdout.splitlines())
    assert (first["id"], first["result"]["agentInfo"]["version"]) == (0, __version__)
    assert second["result"]["sessionId"] == commands["params"]["sessionId"]
    assert commands["params"]["update"]["sessionUpdate"] == "available_commands_update"
    assert (done.returncode, done.stderr) == (0, "")


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
def test_what_the_configured_model_takes_is_advertised(model, capabilities, way, tmp_path, monkeypatch):
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


def test_an_image_for_a_model_that_takes_none_is_refused_in_words(tmp_path):
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
    assert "guide cannot be given image content; leave it out, or choose a model that can" in str(answer["error"])


def test_a_session_can_be_held_over_a_pipe(tmp_path):
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
        agent.stdout.readline()  # the commands that can be asked for
        prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": "go"}]}
        agent.stdin.write(lines({"id": 2, "method": "session/prompt", "params": prompt}))
        agent.stdin.close()
        title, *updates, answer = map(json.loads, agent.stdout)
        assert agent.wait(30) == 0
    assert title["params"]["update"]["title"] == "go"
    assert [update["params"]["update"]["content"]["text"] for update in updates] == ["hi"] * 3
    assert answer["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_quietly(number):
    with subprocess.Popen(
        [*DRAGOMAN, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        agent.stdin.write(lines(INITIALIZE))
        agent.stdin.flush()
        agent.stdout.readline()
        os.kill(agent.pid, number)
        assert agent.wait(30) == 128 + number
        assert agent.stderr.read() == ""


def test_a_bad_script_is_refused_at_the_start_with_file_line_and_reason(tmp_path):
    script = tmp_path / "bad.yaml"
    script.write_text("- - text: ok\n  - txt: oops\n")
    done = dragoman("agent", "--model", f"script:{script}", input="")
    assert done.returncode == 2
    assert f"{script}:2: txt is no part of a reply" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["nonsense", "nobody:gpt"])
def test_a_model_that_is_not_there_is_refused_with_what_was_expected(name):
    done = dragoman("agent", "--model", name, input="")
    assert done.returncode == 2
    assert f"there is no model '{name}'; expected guide, script:FILE" in done.stderr


def test_the_model_may_come_from_the_environment(tmp_path):
    done = dragoman("agent", input="", env={**os.environ, "DRAGOMAN_MODEL": "nonsense"})
    assert "nonsense" in done.stderr


def test_help_version_and_unknown_commands():
    assert "usage: dragoman COMMAND" in dragoman("--help").stdout
    assert "usage: dragoman COMMAND" in dragoman().stdout
    assert dragoman("--version").stdout == f"dragoman {__version__}\n"
    unknown = dragoman("fly")
    assert unknown.returncode == 2
    assert "there is no command 'fly'" in unknown.stderr
