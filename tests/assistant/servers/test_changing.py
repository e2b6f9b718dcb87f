"""Servers added and removed during a session, by load, resume and extension requests."""

import pytest

from tests.assistant.servers.talking import (
    SERVERS,
    begin,
    call,
    connected,
    in_file,
    said,
    stdio,
    talking,
    text,
    write_agent_file,
)
from tests.errors import refused
from tests.mcp.servers.commands import scripted
from tests.proc.processes import alive, announced
from tests.waiting import until


async def add(talk, server):
    """Add a server as a client does, and return its name."""
    params = {"sessionId": talk.id, "server": as_json(server)}
    answer = await talk.client.connection.call_extension("_dragoman/mcp/add", params)
    talk.apply_meta(answer["_meta"])
    return answer["name"]


async def remove(talk, name):
    params = {"sessionId": talk.id, "name": name}
    answer = await talk.client.connection.call_extension("_dragoman/mcp/remove", params)
    talk.apply_meta(answer["_meta"])


def as_json(server):
    env = [{"name": variable.name, "value": variable.value} for variable in server.env]
    plain = {"name": server.name, "command": server.command, "args": server.args, "env": env}
    return plain if server.meta is None else {**plain, "_meta": server.meta}


def pid_of(file):
    [pid] = file.read_text().split()
    return int(pid)


@pytest.mark.parametrize("way", ["load", "resume"])
async def test_only_changed_servers_are_restarted(place, tmp_path, way):
    files = {name: tmp_path / name for name in ("kept", "dropped", "changed", "changed-now", "new")}
    servers = {name: stdio(name.partition("-")[0], pid_file=str(file)) for name, file in files.items()}
    begun = [servers["kept"], servers["dropped"], servers["changed"]]
    async with talking(place, text(), call("new__echo", text="hi"), text(), servers=begun) as (talk, model):
        await talk.ask()
        before = {name: pid_of(files[name]) for name in ("kept", "dropped", "changed")}
        come_back = talk.load if way == "load" else talk.resume
        await come_back(servers["new"], servers["changed-now"], servers["kept"])
        await talk.until("ready", "kept", "changed", "new")
        assert list(talk.statuses()) == ["new", "changed", "kept"]
        await until(lambda: not alive(before["dropped"]) and not alive(before["changed"]))
        assert pid_of(files["kept"]) == before["kept"]
        assert alive(before["kept"])
        assert said((await talk.ask()).call) == "hi"
        assert model.tools()[-1] == ["new__echo", "changed__echo", "kept__echo"]


async def test_new_server_does_not_take_the_name_of_a_running_one(place, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    first, second = stdio("twin", pid_file=str(old)), stdio("twin", pid_file=str(new))
    async with talking(place, servers=[first]) as (talk, _):
        await talk.resume(second, first)
        await talk.until("ready", "twin", "twin-2")
        pids = [pid_of(old), pid_of(new)]
        await talk.close()
        await until(lambda: not any(alive(pid) for pid in pids))


async def test_client_adds_and_removes_servers(place, tmp_path):
    pids = tmp_path / "pids"
    async with talking(place, text(), call("more__echo", text="hi"), text(), text(), servers=[stdio()]) as (
        talk,
        model,
    ):
        await talk.ask()
        assert await add(talk, stdio("more", pid_file=str(pids))) == "more"
        assert talk.statuses()["more"]["state"] == "connecting"
        await talk.until("ready", "more")
        assert said((await talk.ask()).call) == "hi"
        await remove(talk, "more")
        assert list(talk.statuses()) == ["one"]
        assert not alive(pid_of(pids))
        await talk.ask()
        assert model.tools()[-1] == ["one__echo"]


async def test_removing_the_last_server_leaves_an_empty_list(place):
    async with talking(place, servers=[stdio()]) as (talk, _):
        await remove(talk, "one")
        assert talk.meta == {SERVERS: []}


async def test_server_requests_are_advertised(place):
    async with connected(place) as (client, _):
        capabilities = (await client.initialize()).agent_capabilities
        names = ("add", "remove", "list", "restart")
        assert capabilities.meta[SERVERS] == {name: f"_dragoman/mcp/{name}" for name in names}
        assert (capabilities.mcp_capabilities.http, capabilities.mcp_capabilities.sse) == (True, True)


async def test_invalid_addition_or_removal_is_refused_with_a_message(place):
    write_agent_file(place[1], {"own": in_file(scripted())})
    async with talking(place, servers=[stdio()]) as (talk, _):
        ask = talk.client.connection.call_extension
        error = await refused(ask("_dragoman/mcp/add", {"sessionId": talk.id, "server": {"name": "x"}}))
        assert error.code == -32602
        error = await refused(ask("_dragoman/mcp/add", {"sessionId": "nobody", "server": as_json(stdio())}))
        assert error.code == -32002
        error = await refused(ask("_dragoman/mcp/remove", {"sessionId": talk.id, "name": "two"}))
        assert "there is no MCP server 'two' in this session; expected one of: one, own" in str(error.data)
        error = await refused(ask("_dragoman/mcp/remove", {"sessionId": talk.id, "name": "own"}))
        assert "`dragoman mcp remove own`" in str(error.data)


async def test_session_of_another_connection_has_its_own_servers(place, tmp_path):
    pids = tmp_path / "pids"
    async with connected(place, text()) as (client, _):
        talk = await begin(client, place[0], stdio(pid_file=str(pids)))
        await talk.ask()
        session_id = talk.id
    assert not alive(pid_of(pids))
    async with connected(place, text()) as (client, model):
        talk = await begin(client, place[0])
        talk.id = session_id
        await talk.load(stdio(pid_file=str(pids)))
        await talk.ask()
        assert model.tools() == [["one__echo"]]
        assert len(await announced(pids, 2)) == 2


async def test_client_lists_servers_with_tools_and_restarts_one(place, tmp_path):
    unset = in_file(["x"], env={"KEY": "env://NOT_SET_1"})
    write_agent_file(place[1], {"own": in_file(scripted()), "unset": unset})
    pids = tmp_path / "pids"
    async with talking(place, servers=[stdio("given", pid_file=str(pids))], wait=False) as (talk, _):
        await talk.until("ready", "given", "own")
        ask = talk.client.connection.call_extension
        listed = (await ask("_dragoman/mcp/list", {"sessionId": talk.id}))["servers"]
        assert [(one["name"], one["state"], one["canRestart"], one["wantsLogin"]) for one in listed] == [
            ("given", "ready", True, False),
            ("own", "ready", True, False),
            ("unset", "failed", False, False),
        ]
        assert [tool["name"] for tool in listed[0]["tools"]] == ["echo"]
        assert [one["origin"] == "client" for one in listed] == [True, False, False]
        before = pid_of(pids)
        await ask("_dragoman/mcp/restart", {"sessionId": talk.id, "name": "given"})
        assert (await announced(pids, 2))[0] == before
        await until(lambda: not alive(before))
        error = await refused(ask("_dragoman/mcp/restart", {"sessionId": talk.id, "name": "unset"}))
        assert (error.code, "NOT_SET_1" in str(error.data)) == (-32602, True)
