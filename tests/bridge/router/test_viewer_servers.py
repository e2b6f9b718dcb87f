"""MCP servers inside viewers: which viewer receives a request, with which id, while viewers join and leave."""

import json

from dragoman.errors import ErrorCode
from tests.bridge.viewers import RESUMING, agent, join, serve


def inside(server_id="srv", name="mine"):
    return {"type": "acp", "serverId": server_id, "name": name}


def asks(server_id="srv", request_id="r"):
    """Return a step that sends a request to a server and repeats the answer."""
    params = {"serverId": server_id, "requestId": request_id, "method": "tools/list"}
    return {"request_bare": ["mcp/message", params]}


def result(words):
    return {"result": {"tools": [words]}}


def answers(viewer, session):
    """Return the answers that the agent received, which it repeated as text."""
    return [json.loads(said) for said in viewer.said(session)]


async def settled(viewer, prompt, session):
    """Wait for the end of a prompt, and return the agent's last answer."""
    await viewer.answer(prompt)
    return answers(viewer, session)[-1]


def is_message(message):
    return message.get("method") == "mcp/message"


async def test_server_inside_a_viewer_is_reached_through_it(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside()])
        await two.load(session)
        prompt = two.start_prompt(session, asks())
        asked = await one.asked("mcp/message")
        assert asked["params"] == {"serverId": "srv", "requestId": "r", "method": "tools/list"}
        one.reply(asked, result("a"))
        assert await settled(two, prompt, session) == {"result": result("a")}
        assert not any(map(is_message, two.seen))


async def test_only_the_server_owners_notifications_reach_the_agent(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log))) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside()])
        await two.load(session)
        prompt = two.start_prompt(session, asks())
        asked = await one.asked("mcp/message")
        for viewer, method in ((two, "notifications/false"), (one, "notifications/true")):
            params = {"serverId": "srv", "requestId": "r", "method": method}
            viewer.send({"method": "mcp/message", "params": params})
        one.reply(asked, result("a"))
        await settled(two, prompt, session)
    assert "notifications/true" in log.read_text()
    assert "notifications/false" not in log.read_text()


async def test_servers_with_equal_ids_get_distinct_ids_at_the_agent(tmp_path):
    log = tmp_path / "log"
    async with serve(tmp_path, agent(log=str(log))) as served:
        one, two = await join(served), await join(served)
        first, second = await one.new(mcpServers=[inside()]), await two.new(mcpServers=[inside()])
        given = [json.loads(line)["params"] for line in log.read_text().splitlines() if "session/new" in line]
        assert [params["mcpServers"] for params in given] == [[inside("srv")], [inside("srv~2")]]
        for viewer, session, known in ((one, first, "srv"), (two, second, "srv~2")):
            prompt = viewer.start_prompt(session, asks(known))
            asked = await viewer.asked("mcp/message")
            assert asked["params"]["serverId"] == "srv"
            notice = {"serverId": "srv", "requestId": "r", "method": f"notifications/for {known}"}
            viewer.send({"method": "mcp/message", "params": notice})
            viewer.reply(asked, result(known))
            assert await settled(viewer, prompt, session) == {"result": result(known)}
    forwarded = [json.loads(line)["params"] for line in log.read_text().splitlines() if "notifications/for" in line]
    assert [(params["serverId"], params["method"]) for params in forwarded] == [
        ("srv", "notifications/for srv"),
        ("srv~2", "notifications/for srv~2"),
    ]


async def test_server_in_two_sessions_of_a_viewer_keeps_its_id(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        for _ in range(2):
            session = await one.new(mcpServers=[inside()])
            prompt = one.start_prompt(session, asks("srv"))
            one.reply(await one.asked("mcp/message"), result("a"))
            assert await settled(one, prompt, session) == {"result": result("a")}
            one.forget()


async def test_request_waits_for_a_reconnecting_viewer_with_a_new_server_id(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside("before")])
        await two.load(session)
        await one.viewer.close()
        prompt = two.start_prompt(session, asks("before"))
        back = await join(served)
        await back.load(session, mcpServers=[inside("after")])
        asked = await back.asked("mcp/message")
        assert asked["params"]["serverId"] == "after"
        back.reply(asked, result("again"))
        assert await settled(two, prompt, session) == {"result": result("again")}


async def test_viewer_that_leaves_during_a_request_fails_it(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside()])
        await two.load(session)
        prompt = two.start_prompt(session, asks())
        await one.asked("mcp/message")
        await one.viewer.close()
        answer = await settled(two, prompt, session)
        assert answer["error"]["code"] == ErrorCode.MCP_BACKEND_FAILED
        assert "disconnected before it answered" in answer["error"]["message"]


async def test_server_of_a_departed_viewer_is_unavailable(tmp_path):
    async with serve(tmp_path, server_return_s=0.02) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside()])
        await two.load(session)
        await one.viewer.close()
        answer = await settled(two, two.start_prompt(session, asks()), session)
        assert answer["error"]["code"] == ErrorCode.MCP_SERVER_UNAVAILABLE


async def test_unknown_server_is_unavailable_at_once(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        answer = await settled(one, one.start_prompt(session, asks("made up")), session)
        assert answer["error"]["code"] == ErrorCode.MCP_SERVER_UNAVAILABLE


async def test_second_viewers_server_with_that_name_replaces_the_first(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside("first")])
        await two.load(session, mcpServers=[inside("second")])
        prompt = two.start_prompt(session, asks("first"))
        one.reply(await one.asked("mcp/message"), result("of one"))
        assert await settled(two, prompt, session) == {"result": result("of one")}
        await one.viewer.close()
        prompt = two.start_prompt(session, asks("first"))
        asked = await two.asked("mcp/message")
        assert asked["params"]["serverId"] == "second"
        two.reply(asked, result("of two"))
        assert await settled(two, prompt, session) == {"result": result("of two")}


async def test_restarted_agent_gets_the_same_server_ids(tmp_path):
    log, store = tmp_path / "log", tmp_path / "store"
    store.mkdir()
    spec = agent(log=str(log), store=str(store), capabilities=RESUMING)
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one, two = await join(served), await join(served)
        await one.new(mcpServers=[inside()])
        session = await two.new(mcpServers=[inside()])
        await two.prompt(session, {"exit": 1})
        prompt = two.start_prompt(session, asks("srv~2"))
        asked = await two.asked("mcp/message")
        assert asked["params"]["serverId"] == "srv"
        two.reply(asked, result("a"))
        assert await settled(two, prompt, session) == {"result": result("a")}
    resumed = [json.loads(line)["params"] for line in log.read_text().splitlines() if "session/resume" in line]
    assert [inside("srv~2")] in [params["mcpServers"] for params in resumed]


async def test_request_cancelled_by_the_agent_is_cancelled_at_the_viewer(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new(mcpServers=[inside()])
        cancel = {"notify": ["$/cancel_request", {"requestId": "own"}]}
        params = {"serverId": "srv", "requestId": "r", "method": "tools/call"}
        line = {"jsonrpc": "2.0", "id": "own", "method": "mcp/message", "params": params}
        await one.prompt(session, {"line": json.dumps(line)}, cancel)
        asked = await one.asked("mcp/message")
        cancelled = await one.until(lambda message: message.get("method") == "$/cancel_request")
        assert cancelled["params"]["requestId"] == asked["id"]


async def test_answer_that_is_too_long_fails_its_request(tmp_path):
    async with serve(tmp_path, max_message_bytes=10_000) as served:
        one = await join(served)
        session = await one.new(mcpServers=[inside()])
        prompt = one.start_prompt(session, asks())
        one.reply(await one.asked("mcp/message"), result("x" * 20_000))
        answer = await settled(one, prompt, session)
        assert answer["error"]["code"] == ErrorCode.MCP_BACKEND_FAILED
        assert "10000" in answer["error"]["message"].replace(",", "")


async def test_reader_offers_no_server(tmp_path):
    async with serve(tmp_path, server_return_s=0.02) as served:
        one = await join(served)
        session = await one.new(mcpServers=[inside()])
        reader = await join(served, read_only=True)
        await reader.load(session, mcpServers=[inside("theirs")])
        two = await join(served)
        await two.load(session)
        await one.viewer.close()
        answer = await settled(two, two.start_prompt(session, asks()), session)
        assert answer["error"]["code"] == ErrorCode.MCP_SERVER_UNAVAILABLE
        assert not any(map(is_message, reader.seen))
