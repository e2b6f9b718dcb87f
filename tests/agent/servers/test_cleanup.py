"""However a session or its agent ends, its servers and all that they started are gone."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_DELETE
from tests.agent.servers.talking import begin, call, connected, in_file, stdio, talking, write_agent_file
from tests.mcp.servers.commands import scripted, scripted_http
from tests.proc.processes import alive, announced, eventually, pids_in, wait_until_gone

NASTY = {"ignore_sigterm": True, "ignore_eof": True, "fork": ["child", "session", "daemon"]}
FAMILY = 4
MANY = 6
"""One after the other, so many of them would take longer to stop than an agent of these tests may run."""


def nasty(folder, count):
    files = [folder / f"pids-{number}" for number in range(count)]
    return files, [stdio(file.name, pid_file=str(file), **NASTY) for file in files]


async def families(files):
    return [pid for file in files for pid in await announced(file, FAMILY)]


@pytest.mark.parametrize("way", ["close", "delete"])
async def test_many_nasty_servers_are_gone_when_their_session_is(place, tmp_path, way):
    files, servers = nasty(tmp_path, MANY)
    async with talking(place, servers=servers) as (talk, _):
        other = await begin(talk.client, place[0], stdio(pid_file=str(tmp_path / "other")))
        await other.until()
        pids = await families(files)
        if way == "close":
            await talk.close()
        else:
            await talk.client.connection.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=talk.id))
        assert not any(alive(pid) for pid in pids)
        assert all(alive(pid) for pid in await announced(tmp_path / "other", 1))


async def test_they_are_gone_when_the_connection_ends(place, tmp_path):
    write_agent_file(place[1], {"own": in_file(scripted(pid_file=str(tmp_path / "own"), **NASTY))})
    files, servers = nasty(tmp_path, MANY)
    async with talking(place, servers=servers):
        pids = await families([*files, tmp_path / "own"])
    assert not any(alive(pid) for pid in pids)


async def test_a_session_that_is_closed_while_servers_connect_leaves_nobody(place, tmp_path):
    files = [tmp_path / kind for kind in ("start", "initialize", "list")]
    servers = [stdio(file.name, hang_at=file.name, pid_file=str(file)) for file in files]
    async with talking(place, servers=servers, wait=False) as (talk, _):
        pids = [pid for file in files for pid in await announced(file, 1)]
        await talk.close()
        assert not any(alive(pid) for pid in pids)


async def test_a_server_that_has_left_a_child_to_serve_is_gone_with_it(place, tmp_path):
    async with talking(place, servers=[stdio(fork_and_exit="serve", pid_file=str(tmp_path / "pids"))]) as (talk, _):
        pids = await announced(tmp_path / "pids", 2)
        await talk.close()
        assert not any(alive(pid) for pid in pids)


async def test_a_server_at_an_address_that_no_longer_answers_holds_nothing_up(place, tmp_path):
    with scripted_http({"pid_file": str(tmp_path / "pids")}) as address:
        async with connected(place) as (client, _):
            servers = [v1.McpServerHttp(name=f"web{n}", url=f"{address}/mcp", headers=[]) for n in range(MANY)]
            talk = await begin(client, place[0], *servers)
            await talk.until("ready")
            [pid] = await announced(tmp_path / "pids", 1)
            os.kill(pid, signal.SIGSTOP)
            await talk.close()


async def test_a_call_that_runs_when_the_session_is_closed_ends_with_it(place, tmp_path):
    record = tmp_path / "record"
    server = stdio(hang_at="call", record=str(record), pid_file=str(tmp_path / "pids"))
    async with talking(place, call("one__echo"), servers=[server]) as (talk, _):
        turn = asyncio.create_task(talk.ask())
        await eventually(lambda: "tools/call" in record.read_text())
        await talk.close()
        assert (await turn).stop == "cancelled"
        assert not any(alive(pid) for pid in await announced(tmp_path / "pids", 1))


@pytest.mark.parametrize(
    ("end", "code"),
    [("eof", 0), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_nobody_stays_when_the_agent_ends(place, tmp_path, end, code):
    write_agent_file(place[1], {"own": in_file(scripted(pid_file=str(tmp_path / "own"), **NASTY))})
    files, servers = nasty(tmp_path, 3)
    command = [sys.executable, "-m", "dragoman", "agent"]
    environment = {**os.environ, "DRAGOMAN_HOME": str(place[1])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as agent:
        given = [{"name": each.name, "command": each.command, "args": each.args, "env": []} for each in servers]
        ask(agent, 1, "initialize", {"protocolVersion": 1})
        ask(agent, 2, "session/new", {"cwd": str(place[0]), "mcpServers": given})
        pids = [pid for file in [*files, tmp_path / "own"] for pid in pids_in(file, count=FAMILY)]
        if end == "eof":
            agent.stdin.close()
        else:
            agent.send_signal(end)
        wait_until_gone(pids)
        assert agent.wait(30) == code


def ask(agent, request_id, method, params):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    agent.stdin.write(json.dumps(message).encode() + b"\n")
    agent.stdin.flush()
    for line in agent.stdout:
        answer = json.loads(line)
        if answer.get("id") == request_id:
            assert "error" not in answer, answer
            return
    raise AssertionError("the agent ended before it answered")
