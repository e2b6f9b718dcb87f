"""Secrets of servers appear in no file, log, error or message."""

import json
import logging
import os
import subprocess
import sys

from dragoman.protocol import v1
from tests.assistant.running import answer_with
from tests.assistant.servers.talking import begin, call, connected, in_file, stdio, write_agent_file
from tests.mcp.servers.commands import scripted, scripted_http

CANARY = "canary-7f3a91"


def bearer(name, url):
    headers = [v1.HttpHeader(name="Authorization", value=f"Bearer {CANARY}"), v1.HttpHeader(name="X-Key", value=CANARY)]
    return v1.McpServerHttp(name=name, url=f"{url}?key={CANARY}", headers=headers)


def files_with_canary(*folders):
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes() and path.name != "dragoman.yaml"
    ]


def sick_servers(address):
    """Return servers that fail in every way that could reveal their secrets."""
    env = {"TOKEN": CANARY}
    loud = {"crash_stderr": f"cannot log in with {CANARY}", "env": env}
    return [
        stdio("crashes", crash_at="start", **loud),
        stdio("stops", crash_at="initialize", **loud),
        stdio("old", protocol_version=CANARY, env=env),
        v1.McpServerStdio(
            name="missing", command="no-such-program", args=[], env=[v1.EnvVariable(name="T", value=CANARY)]
        ),
        v1.McpServerStdio(
            name="impossible", command="echo", args=[], env=[v1.EnvVariable(name="T", value=CANARY + "\0")]
        ),
        bearer("refused", f"{address}/status/mcp"),
        bearer("nowhere", "http://127.0.0.1:1/mcp"),
        bearer("nonsense", f"not-a-scheme://{CANARY}@host/"),
        bearer("broken", f"http://[{CANARY}/"),
        v1.McpServerSse(name="older", url=f"http://{CANARY}:{CANARY}@127.0.0.1:1/sse?{CANARY}", headers=[]),
        v1.McpServerHttp(
            name="twolines", url=f"{address}/mcp", headers=[v1.HttpHeader(name="X", value=f"{CANARY}\r\nX: {CANARY}")]
        ),
        v1.McpServerHttp(
            name="letters", url=f"{address}/mcp", headers=[v1.HttpHeader(name="X", value=f"{CANARY}\u20ac")]
        ),
        v1.McpServerSse(name="lines", url=f"{address}/sse", headers=[v1.HttpHeader(name="X", value=f"{CANARY}\n")]),
    ]


async def test_no_failure_reveals_a_secret(place, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with scripted_http(status=500) as address:
        async with connected(place) as (client, _):
            servers = sick_servers(address)
            talk = await begin(client, place[0], *servers)
            await talk.until("failed")
            assert len(talk.statuses()) == len(servers)
            turns = [await talk.ask(words) for words in ("go", "/mcp", "/context", "/mcp restart crashes")]
            for server in servers:
                assert f"The MCP server {server.name} failed" in str(turns[0].notices)
            assert CANARY not in str(client.updates)
            assert CANARY not in json.dumps(talk.statuses())
            for name in ("twolines", "letters", "lines"):
                assert "its header 'X' cannot be sent" in talk.statuses()[name]["reason"]
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())
    assert files_with_canary(*place) == []


async def test_no_call_reveals_a_secret(place, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SECRET_ARGUMENT", CANARY)
    monkeypatch.setenv("SECRET_VARIABLE", CANARY)
    command = scripted(crash_at="call", crash_stderr=f"lost {CANARY}", log=[{"level": "error", "data": CANARY}])
    own = in_file([*command, "env://SECRET_ARGUMENT"], env={"TOKEN": "env://SECRET_VARIABLE"})
    write_agent_file(place[1], {"own": own, "bare": in_file([sys.executable, "env://SECRET_ARGUMENT"])})
    one = stdio(crash_at="call", crash_stderr=f"lost {CANARY}", log=[{"data": CANARY}], env={"TOKEN": CANARY})
    with scripted_http({"log": [{"data": CANARY}]}) as address:
        replies = [call("one__echo") + call("own__echo") + call("web__echo"), [{"text": "done"}]]
        async with connected(place, *replies) as (client, _):
            talk = await begin(client, place[0], one, bearer("web", f"{address}/mcp"))
            await talk.until("failed", "bare")
            await talk.until("ready", "one", "own", "web")
            for words in ("go", "/mcp", "/context"):
                await talk.ask(words)
            assert "[hidden]" in client.text()
            assert CANARY not in str(client.updates)
    assert CANARY not in caplog.text
    assert files_with_canary(*place) == []


async def test_permanent_answer_stores_no_secret(place):
    async with connected(place, call("one__echo"), [{"text": "done"}]) as (client, _):
        talk = await begin(client, place[0], stdio(env={"TOKEN": CANARY}))
        answer_with(client, "allow_always", remember="project")
        await talk.ask()
    assert list((place[1] / "permissions").iterdir())
    assert files_with_canary(*place) == []


def test_agent_log_contains_no_secret(place):
    command = [sys.executable, "-m", "dragoman", "agent"]
    environment = {**os.environ, "DRAGOMAN_HOME": str(place[1]), "DRAGOMAN_LOG": "debug"}
    with scripted_http(status=401) as address:
        env = [{"name": "TOKEN", "value": CANARY}]
        crashing, talking = scripted(crash_at="start", crash_stderr=f"no {CANARY}"), scripted(stderr=f"I have {CANARY}")
        servers = [
            {"name": "crashing", "command": crashing[0], "args": crashing[1:], "env": env},
            {"name": "talking", "command": talking[0], "args": talking[1:], "env": env},
            {"type": "http", "name": "web", "url": f"{address}/mcp?{CANARY}", "headers": env},
            {"type": "nonsense", "name": "odd", "url": CANARY, "headers": env},
        ]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        ) as agent:
            lines = [
                request(1, "initialize", protocolVersion=1),
                request(2, "session/new", cwd=str(place[0]), mcpServers=servers),
                request(3, "session/new", cwd=str(place[0]), mcpServers=servers[:3]),
            ]
            agent.stdin.write("".join(lines).encode())
            agent.stdin.flush()
            answers = [agent.stdout.readline()]
            while answers[-1].count(b'"failed"') < 2:
                answers.append(agent.stdout.readline())
                assert answers[-1], "the agent ended"
            out, log = agent.communicate(timeout=30)
    assert CANARY.encode() not in b"".join(answers) + out
    assert CANARY.encode() not in log
    assert files_with_canary(*place) == []


def request(request_id, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + "\n"
