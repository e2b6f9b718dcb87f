"""Readers and wrong requests do not affect later messages to the agent."""

import json
import time

from tests.bridge.viewers import RESUMING, agent, join, serve

EVIL = [{"name": "evil", "command": "/bin/evil", "args": [], "env": []}]
NOTICES = {"session": {"notices": {}, "compaction": {}}}
LOGINS = {"_meta": {"dragoman/oauth": {}}}
"""Capabilities of the bridge itself."""


async def leave_a_session(home, spec):
    async with serve(home, spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
    return session


async def test_mcp_servers_of_a_reader_never_reach_the_agent(tmp_path):
    log, store = tmp_path / "log", tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store), log=str(log))
    session = await leave_a_session(tmp_path, spec)
    async with serve(tmp_path, spec) as served:
        reader, owner = await join(served, read_only=True), await join(served)
        await reader.load(session, mcpServers=EVIL, additionalDirectories=["/etc"])
        await owner.prompt(session, {"say": "after"})
        assert owner.said() == ["after"]
    assert "evil" not in log.read_text()
    assert "/etc" not in log.read_text()


async def test_request_with_a_wrong_directory_does_not_affect_the_session(tmp_path):
    log, store = tmp_path / "log", tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store), log=str(log))
    session = await leave_a_session(tmp_path, spec)
    log.unlink()
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        assert "error" in await one.load(session, cwd="/elsewhere", mcpServers=EVIL)
        assert "result" in await one.load(session)
        await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "after"]
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    (resumed,) = [message["params"] for message in sent if message["method"] == "session/resume"]
    assert resumed["cwd"] == "/work"
    assert resumed["mcpServers"] == []


async def test_session_opened_by_a_reader_is_reopened_after_a_crash(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store))
    session = await leave_a_session(tmp_path, spec)
    async with serve(tmp_path, spec, backoff_min_s=0.01) as served:
        reader, owner = await join(served, read_only=True), await join(served, extensions=True)
        await reader.load(session)
        await owner.prompt(session, {"say": "after"})
        await owner.prompt(session, {"exit": 1})
        owner.forget()
        await owner.announced(session, lambda news: news["state"] == "idle")


async def test_sessions_opened_by_readers_leave_room_for_owners(tmp_path):
    spec = agent(capabilities=RESUMING)
    sessions = [await leave_a_session(tmp_path, spec) for _ in range(3)]
    async with serve(tmp_path, spec, max_sessions=4) as served:
        reader, owner = await join(served, read_only=True), await join(served)
        opened = [await reader.load(session) for session in sessions]
        assert ["result" in answer for answer in opened] == [True, True, False]
        assert "2 sessions are open" in opened[-1]["error"]["message"]
        for _ in range(2):
            await owner.new()
        await reader.viewer.close()
        await served.sweep(time.monotonic())
        later = await join(served, read_only=True)
        assert "error" in await later.load(sessions[-1])  # sessions of owners count as well
        assert "result" in await owner.load(sessions[-1])


async def test_capabilities_of_a_reader_are_not_sent_to_the_agent(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log)), backoff_min_s=0.01) as served:
        await join(served, read_only=True, terminal=True)
        await join(served, fs={"readTextFile": True})
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    begun = [message["params"]["clientCapabilities"] for message in sent if message["method"] == "initialize"]
    assert begun == [{**NOTICES, **LOGINS}, {"fs": {"readTextFile": True}, **NOTICES, **LOGINS}]


async def test_agent_gets_capabilities_of_viewers_present_at_its_start(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log), login=str(tmp_path / "login")), backoff_min_s=0.01) as served:
        page = await join(served, elicitation={"form": {}}, _meta={"mine": 1})
        editor = await join(served, fs={"readTextFile": True, "writeTextFile": False}, elicitation={"url": {}})
        await join(served, fs={"readTextFile": True})
        session = await page.new()
        await join(served, terminal=True)  # not sent, because an agent with a session is not restarted for it
        await editor.viewer.close()
        await page.prompt(session, {"exit": 1})
        await page.new()
        await page.prompt(await page.new(), {"exit": 1})
        await page.ask("authenticate", {"methodId": "x"})
        await join(served, fs={"writeTextFile": True})  # nor an agent at which a user has logged in
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    begun = [message["params"]["clientCapabilities"] for message in sent if message["method"] == "initialize"]
    both = {"form": {}, "url": {}}
    own = {"_meta": {"mine": 1, **LOGINS["_meta"]}, **NOTICES}
    later = {"elicitation": {"form": {}}, "fs": {"readTextFile": True}, "terminal": True, **own}
    assert begun == [
        {"elicitation": {"form": {}}, **own},
        {"elicitation": both, "fs": {"readTextFile": True, "writeTextFile": False}, **own},
        later,
        later,
    ]
