"""`dragoman attach` as an editor starts it: messages, credentials, exit codes."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.attach import read_url
from dragoman.cli.options import UsageError
from dragoman.testing import steps
from tests.attach.rig import attached, rigged
from tests.commands import DRAGOMAN, dragoman, scripted

LONG_S = 240
"""For the checker, which plays some hundred conversations' worth of messages, on a machine that is busy."""

PEERS = Path(__file__).parent.parent / "peers"


@pytest.mark.parametrize(
    ("given", "agent", "address", "token"),
    [
        ("http://h:1", None, "http://h:1/acp", None),
        ("https://h/", "two", "https://h/acp/two", None),
        ("wss://h/acp", "two", "wss://h/acp/two", None),
        ("http://h/acp/two", None, "http://h/acp/two", None),
        ("http://h/prefix/", None, "http://h/prefix/acp", None),
        ("http://h/?token=secret&a=1", None, "http://h/acp?a=1", "secret"),
        ("http://h/acp#token=secret", None, "http://h/acp", "secret"),
    ],
)
def test_the_url_of_the_page_or_of_its_endpoint_names_the_agent(given, agent, address, token):
    assert read_url(given, agent) == (address, token)


def test_a_url_that_names_an_agent_takes_no_other():
    with pytest.raises(UsageError, match="names the agent 'one' already"):
        read_url("http://h/acp/one", "two")


async def test_the_files_and_terminals_of_the_editor_serve_the_agent_behind_the_bridge(tmp_path):
    steps = [
        {"request": ["fs/read_text_file", {"path": "/buffer"}]},
        {"request": ["terminal/create", {"command": "ls"}]},
    ]
    async with rigged(tmp_path) as rig, rig.editor() as editor:
        answer = await editor.initialize(fs={"readTextFile": True}, terminal=True)
        assert "connectionId" not in json.dumps(answer)
        session = await editor.new(rig.bridge.work)
        prompt = editor.prompt(session, *steps)
        editor.answer(await editor.asked("fs/read_text_file"), {"content": "unsaved"})
        editor.answer(await editor.asked("terminal/create"), {"terminalId": "t1"})
        assert (await editor.answered(prompt))["result"] == {"stopReason": "end_turn"}
        assert [json.loads(text)["result"] for text in editor.said()] == [{"content": "unsaved"}, {"terminalId": "t1"}]
        unknown = {"a": [None], "b": "\u00e9"}
        assert (await editor.ask("_echo", unknown))["result"] == unknown
        editor.process.stdin.write(b"no json\n")
        assert (await editor.until(lambda message: message.get("id", 0) is None))["error"]["code"] == -32700
        assert await editor.close() == 0


async def test_another_viewer_sees_the_prompts_of_an_attached_editor(tmp_path):
    async with rigged(tmp_path) as rig, rig.editor() as editor, rig.direct_editor() as other:
        await editor.initialize()
        await other.initialize()
        session = await editor.new(rig.bridge.work)
        await other.load(session, rig.bridge.work)
        await editor.answered(editor.prompt(session, {"say": "hello"}))
        await other.says("hello")
        assert len(other.updates("user_message_chunk")) == 1
        assert editor.updates("user_message_chunk") == []
        assert "dragoman" not in json.dumps(other.seen[1:])


async def test_a_wrong_token_is_told_in_the_answer_and_on_stderr(tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-token-of-this-bridge")
    async with rigged(tmp_path) as rig, attached(rig.url, token_file=wrong) as editor:
        refused = await editor.initialize()
        assert "HTTP 401" in refused["error"]["message"]
        assert await editor.close() == 1
        assert b"--token-file FILE or $DRAGOMAN_TOKEN" in editor.stderr
        assert b"not-the-token" not in editor.stderr


async def test_an_agent_that_is_not_there_is_told_with_those_that_are(tmp_path):
    async with rigged(tmp_path) as rig:
        for name, words in (
            ("nope", "this bridge has no agent 'nope'; it has python"),
            ("pyton", "did you mean python?"),
        ):
            async with attached(rig.url, "--agent", name, token_file=rig.bridge.token_file) as editor:
                refused = await editor.initialize()
                assert words in refused["error"]["message"]
                assert await editor.close() == 1
                assert words.encode() in editor.stderr


async def test_a_token_in_the_url_works_with_a_warning_that_does_not_show_it(tmp_path):
    async with rigged(tmp_path) as rig:
        token = rig.bridge.token_file.read_text().strip()
        async with attached(f"{rig.url}/#token={token}") as editor:
            assert "result" in await editor.initialize()
            assert await editor.close() == 0
            assert b"the URL has the token in it" in editor.stderr
            assert token.encode() not in editor.stderr
        async with attached(rig.url, env={"DRAGOMAN_TOKEN": token}) as editor:
            assert "result" in await editor.initialize()
            assert await editor.close() == 0
            assert editor.stderr == b""


def test_usage_errors_are_told_before_anything_is_served(tmp_path):
    missing = dragoman("attach", "http://h", "--token-file", str(tmp_path / "none"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "cannot be read" in missing.stderr
    assert dragoman("attach", "host").returncode == 2
    assert dragoman("attach").returncode == 2


async def test_an_editor_that_comes_before_the_bridge_waits_for_it(tmp_path):
    async with rigged(tmp_path) as rig:
        await rig.bridge.kill()
        async with rig.editor() as editor:
            initialize = editor.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            await rig.bridge.start()
            assert "result" in await editor.answered(initialize)


async def test_tls_is_checked_against_the_authorities_of_the_environment(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    async with rigged(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as rig:
        url = f"https://127.0.0.1:{rig.bridge.port}"
        trusting = {"SSL_CERT_FILE": str(certificate)}
        async with attached(url, token_file=rig.bridge.token_file, env=trusting) as editor:
            assert "result" in await editor.initialize()


async def test_the_official_sdk_talks_through_it(tmp_path):
    turns = scripted([steps.Say("hello")], [steps.Say("again")])
    async with rigged(tmp_path, command=turns) as rig:
        attach = [*DRAGOMAN, "attach", rig.url, "--token-file", str(rig.bridge.token_file)]
        command = [sys.executable, str(PEERS / "python_client.py"), "--cwd", str(rig.bridge.work)]
        run = await run_to_end([*command, "--prompt", "one", "--prompt", "two", "--", *attach])
        assert [turn["stopReason"] for turn in run["prompts"]] == ["end_turn", "end_turn"]
        loaded = await run_to_end([*command, "--load", run["sessionId"], "--", *attach])
        kinds = [update["sessionUpdate"] for update in loaded["loaded"]]
        assert kinds.count("user_message_chunk") == 2
        assert kinds.count("agent_message_chunk") == 2


async def run_to_end(command):
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=dict(os.environ))
    async with asyncio.timeout(LONG_S):
        output, _ = await process.communicate()
    return json.loads(output)


@pytest.mark.timeout(LONG_S)
async def test_the_checker_finds_nothing_in_it_but_that_sessions_outlive_the_editor(tmp_path):
    agent = [*DRAGOMAN, "agent", "--model", "guide"]
    async with rigged(tmp_path, command=agent) as rig:
        attach = [*DRAGOMAN, "attach", rig.url, "--token-file", str(rig.bridge.token_file)]
        report = await run_to_end([*DRAGOMAN, "check", "agent", "--format", "json", "--", *attach])
    assert {each["id"] for each in report["results"] if each["verdict"] not in ("pass", "not_exercised")} == {
        "ACP-WIRE-018"  # the MCP server of a session that is still open at the bridge
    }
    assert report["summary"]["pass"] > 200
