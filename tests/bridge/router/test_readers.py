"""Who may only read, and who names a session wrongly: neither leaves a trace in what the agent is told later."""

import json

from tests.bridge.viewers import RESUMING, agent, join, serve

EVIL = [{"name": "evil", "command": "/bin/evil", "args": [], "env": []}]
NOTICES = {"session": {"notices": {}, "compaction": {}}}
LOGINS = {"_meta": {"dragoman/oauth": {}}}
"""What the bridge itself offers to the agent."""


async def leave_a_session(home, spec):
    async with serve(home, spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
    return session


async def test_what_a_reader_names_as_servers_never_reaches_the_agent(tmp_path):
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


async def test_a_session_asked_for_with_a_wrong_directory_is_not_spoilt(tmp_path):
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


async def test_a_session_that_a_reader_opened_comes_back_after_a_crash(tmp_path):
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


async def test_what_a_reader_can_do_is_not_what_the_agent_begins_with(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log)), backoff_min_s=0.01) as served:
        await join(served, read_only=True, terminal=True)
        await join(served, fs={"readTextFile": True})
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    begun = [message["params"]["clientCapabilities"] for message in sent if message["method"] == "initialize"]
    assert begun == [{**NOTICES, **LOGINS}, {"fs": {"readTextFile": True}, **NOTICES, **LOGINS}]


async def test_the_agent_is_told_what_those_can_do_who_are_there_when_it_starts(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log), login=str(tmp_path / "login")), backoff_min_s=0.01) as served:
        page = await join(served, elicitation={"form": {}}, _meta={"mine": 1})
        editor = await join(served, fs={"readTextFile": True, "writeTextFile": False}, elicitation={"url": {}})
        await join(served, fs={"readTextFile": True})
        session = await page.new()
        await join(served, terminal=True)  # not told: a life of the agent with a session is not ended for it
        await editor.viewer.close()
        await page.prompt(session, {"exit": 1})
        await page.new()
        await page.prompt(await page.new(), {"exit": 1})
        await page.ask("authenticate", {"methodId": "x"})
        await join(served, fs={"writeTextFile": True})  # nor one with which somebody has logged in
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
