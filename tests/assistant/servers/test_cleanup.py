"""However a session or agent ends, its servers and their children end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_DELETE
from tests.assistant.servers.talking import begin, call, connected, in_file, stdio, talking, write_agent_file
from tests.mcp.servers.commands import scripted, scripted_http
from tests.proc.processes import alive, announced, pids_in, wait_until_gone
from tests.waiting import PATIENCE_S, until

NASTY = {"ignore_sigterm": True, "ignore_eof": True, "fork": ["child", "session", "daemon"]}
FAMILY = 4
MANY = 6
"""They end one after the other. More would take longer than these tests may run."""


def nasty(folder, count):
    files = [folder / f"pids-{number}" for number in range(count)]
    return files, [stdio(file.name, pid_file=str(file), **NASTY) for file in files]


async def families(files):
    return [pid for file in files for pid in await announced(file, FAMILY)]


async def test_stubborn_servers_end_when_their_session_is_closed_or_deleted(place, tmp_path):
    (tmp_path / "deleted").mkdir()
    files, servers = nasty(tmp_path, MANY)
    more_files, more_servers = nasty(tmp_path / "deleted", MANY)
    async with talking(place, servers=servers) as (closed, _):
        client = closed.client
        deleted = await begin(client, place[0], *more_servers)
        other = await begin(client, place[0], stdio(pid_file=str(tmp_path / "other")))
        pids = await families([*files, *more_files])
        deletion = client.connection.call(SESSION_DELETE, v1.DeleteSessionRequest(session_id=deleted.id))
        await asyncio.gather(closed.close(), deletion)
        assert not any(alive(pid) for pid in pids)
        assert all(alive(pid) for pid in await announced(tmp_path / "other", 1))
        await other.until()


async def test_servers_end_with_the_connection(place, tmp_path):
    write_agent_file(place[1], {"own": in_file(scripted(pid_file=str(tmp_path / "own"), **NASTY))})
    files, servers = nasty(tmp_path, MANY)
    async with talking(place, servers=servers):
        pids = await families([*files, tmp_path / "own"])
    assert not any(alive(pid) for pid in pids)


async def test_session_closed_while_servers_connect_leaves_no_process(place, tmp_path):
    files = [tmp_path / kind for kind in ("start", "initialize", "list")]
    servers = [stdio(file.name, hang_at=file.name, pid_file=str(file)) for file in files]
    async with talking(place, servers=servers, wait=False) as (talk, _):
        pids = [pid for file in files for pid in await announced(file, 1)]
        await talk.close()
        assert not any(alive(pid) for pid in pids)


async def test_server_process_and_its_child_both_end(place, tmp_path):
    async with talking(place, servers=[stdio(fork_and_exit="serve", pid_file=str(tmp_path / "pids"))]) as (talk, _):
        pids = await announced(tmp_path / "pids", 2)
        await talk.close()
        assert not any(alive(pid) for pid in pids)


async def test_unresponsive_server_at_a_url_does_not_delay_the_close(place, tmp_path):
    with scripted_http({"pid_file": str(tmp_path / "pids")}) as address:
        async with connected(place) as (client, _):
            servers = [v1.McpServerHttp(name=f"web{n}", url=f"{address}/mcp", headers=[]) for n in range(MANY)]
            talk = await begin(client, place[0], *servers)
            await talk.until("ready")
            [pid] = await announced(tmp_path / "pids", 1)
            os.kill(pid, signal.SIGSTOP)
            await talk.close()


async def test_running_call_ends_with_its_closed_session(place, tmp_path):
    record = tmp_path / "record"
    server = stdio(hang_at="call", record=str(record), pid_file=str(tmp_path / "pids"))
    async with talking(place, call("one__echo"), servers=[server]) as (talk, _):
        turn = asyncio.create_task(talk.ask())
        await until(lambda: "tools/call" in record.read_text())
        await talk.close()
        assert (await turn).stop == "cancelled"
        assert not any(alive(pid) for pid in await announced(tmp_path / "pids", 1))


def test_no_server_survives_the_agent(tmp_path):
    with ExitStack() as stack:
        started = [started_agent(stack, tmp_path / name) for name in ("eof", "sigterm", "sigkill")]
        pids = [pid for _, files in started for file in files for pid in pids_in(file, count=FAMILY)]
        by_eof, by_sigterm, by_sigkill = agents = [agent for agent, _ in started]
        by_eof.stdin.close()
        by_sigterm.terminate()
        by_sigkill.kill()
        wait_until_gone(pids)
        codes = [agent.wait(PATIENCE_S) for agent in agents]
        assert codes == [0, 128 + signal.SIGTERM, -signal.SIGKILL]


def started_agent(stack, folder):
    """Start an agent with stubborn servers from its client and its file. Return the files with their pids."""
    folder.mkdir()
    write_agent_file(folder / "home", {"own": in_file(scripted(pid_file=str(folder / "own"), **NASTY))})
    files, servers = nasty(folder, 3)
    command = [sys.executable, "-m", "dragoman", "agent"]
    environment = {**os.environ, "DRAGOMAN_HOME": str(folder / "home")}
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    stack.enter_context(agent)
    given = [{"name": each.name, "command": each.command, "args": each.args, "env": []} for each in servers]
    ask(agent, 1, "initialize", {"protocolVersion": 1})
    ask(agent, 2, "session/new", {"cwd": str(folder), "mcpServers": given})
    return agent, [*files, folder / "own"]


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
