"""`dragoman attach` as an editor runs it: messages, credentials and exit codes."""

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
from tests.commands import DRAGOMAN, scripted, start_dragoman

LONG_S = 240
"""Time for the checker, which sends the messages of a hundred conversations, on a busy machine."""

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
def test_page_url_and_endpoint_url_name_the_agent(given, agent, address, token):
    assert read_url(given, agent) == (address, token)


def test_url_with_an_agent_rejects_the_agent_option():
    with pytest.raises(UsageError, match="names the agent 'one' already"):
        read_url("http://h/acp/one", "two")


async def test_remote_agent_uses_the_editors_files_and_terminals(tmp_path):
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


async def test_other_viewers_see_an_attached_editors_prompts(tmp_path):
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


async def test_wrong_token_is_reported_in_the_answer_and_on_stderr(tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-token-of-this-bridge")
    async with rigged(tmp_path) as rig, attached(rig.url, token_file=wrong) as editor:
        refused = await editor.initialize()
        assert "HTTP 401" in refused["error"]["message"]
        assert await editor.close() == 1
        assert b"--token-file FILE or in $DRAGOMAN_TOKEN" in editor.stderr
        assert b"not-the-token" not in editor.stderr


async def test_unknown_agent_is_reported_with_the_known_ones(tmp_path):
    async with rigged(tmp_path) as rig:
        for name, words in (
            ("nope", "there is no agent 'nope'; the bridge has python"),
            ("pyton", "did you mean python?"),
        ):
            async with attached(rig.url, "--agent-name", name, token_file=rig.bridge.token_file) as editor:
                refused = await editor.initialize()
                assert words in refused["error"]["message"]
                assert await editor.close() == 1
                assert words.encode() in editor.stderr


async def test_token_in_the_url_works_with_a_warning(tmp_path):
    async with rigged(tmp_path) as rig:
        token = rig.bridge.token_file.read_text().strip()
        async with attached(f"{rig.url}/#token={token}") as editor:
            assert "result" in await editor.initialize()
            assert await editor.close() == 0
            assert b"the URL contains the token" in editor.stderr
            assert token.encode() not in editor.stderr
        async with attached(rig.url, env={"DRAGOMAN_TOKEN": token}) as editor:
            assert "result" in await editor.initialize()
            assert await editor.close() == 0
            assert editor.stderr == b""


def test_usage_errors_are_reported_at_the_start(tmp_path):
    missing = start_dragoman("attach", "http://h", "--token-file", str(tmp_path / "none"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "cannot be read" in missing.stderr
    assert start_dragoman("attach", "host").returncode == 2
    assert start_dragoman("attach").returncode == 2


async def test_editor_waits_for_a_bridge_that_starts_later(tmp_path):
    async with rigged(tmp_path) as rig:
        await rig.bridge.kill()
        async with rig.editor() as editor:
            initialize = editor.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            await rig.bridge.start()
            assert "result" in await editor.answered(initialize)


async def test_tls_uses_the_authorities_of_the_environment(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    async with rigged(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as rig:
        url = f"https://127.0.0.1:{rig.bridge.port}"
        trusting = {"SSL_CERT_FILE": str(certificate)}
        async with attached(url, token_file=rig.bridge.token_file, env=trusting) as editor:
            assert "result" in await editor.initialize()


@pytest.mark.extended
async def test_official_sdk_works_through_attach(tmp_path):
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
@pytest.mark.extended
async def test_checker_only_reports_that_sessions_outlive_the_editor(tmp_path):
    agent = [*DRAGOMAN, "agent", "--model", "guide"]
    async with rigged(tmp_path, command=agent) as rig:
        attach = [*DRAGOMAN, "attach", rig.url, "--token-file", str(rig.bridge.token_file)]
        report = await run_to_end([*DRAGOMAN, "check", "agent", "--format", "json", "--", *attach])
    assert {each["id"] for each in report["results"] if each["verdict"] not in ("pass", "not_exercised")} == {
        "ACP-WIRE-018"  # the MCP server of a session that is still open at the bridge
    }
    assert report["summary"]["pass"] > 200
