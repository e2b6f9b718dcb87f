"""MCP servers inside viewers: who is asked, by which id, and what becomes of it when viewers come and go."""

import json

from dragoman.errors import ErrorCode
from tests.bridge.viewers import RESUMING, agent, join, serve


def inside(server_id="srv", name="mine"):
    return {"type": "acp", "serverId": server_id, "name": name}


def asks(server_id="srv", request_id="r"):
    """Have the agent ask for a server, and say the answer."""
    params = {"serverId": server_id, "requestId": request_id, "method": "tools/list"}
    return {"request_bare": ["mcp/message", params]}


def result(words):
    return {"result": {"tools": [words]}}


def answers(viewer, session):
    """Return what the agent was answered, as it said it."""
    return [json.loads(said) for said in viewer.said(session)]


async def settled(viewer, prompt, session):
    """Wait for the end of a prompt, and return what the agent was last answered."""
    await viewer.answer(prompt)
    return answers(viewer, session)[-1]


def is_message(message):
    return message.get("method") == "mcp/message"


async def test_a_server_inside_a_viewer_is_asked_through_that_viewer(tmp_path):
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


async def test_its_notifications_reach_the_agent_and_those_of_other_viewers_do_not(tmp_path):
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


async def test_servers_of_one_id_have_two_ids_at_the_agent_and_their_own_at_their_viewers(tmp_path):
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
    told = [json.loads(line)["params"] for line in log.read_text().splitlines() if "notifications/for" in line]
    assert [(params["serverId"], params["method"]) for params in told] == [
        ("srv", "notifications/for srv"),
        ("srv~2", "notifications/for srv~2"),
    ]


async def test_one_server_in_two_sessions_of_its_viewer_keeps_its_id(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        for _ in range(2):
            session = await one.new(mcpServers=[inside()])
            prompt = one.start_prompt(session, asks("srv"))
            one.reply(await one.asked("mcp/message"), result("a"))
            assert await settled(one, prompt, session) == {"result": result("a")}
            one.forget()


async def test_a_request_waits_for_a_viewer_that_comes_back_with_another_id_for_its_server(tmp_path):
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


async def test_a_viewer_that_leaves_during_a_request_fails_it_at_once(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside()])
        await two.load(session)
        prompt = two.start_prompt(session, asks())
        await one.asked("mcp/message")
        await one.viewer.close()
        answer = await settled(two, prompt, session)
        assert answer["error"]["code"] == ErrorCode.MCP_BACKEND_FAILED
        assert "left before it answered" in answer["error"]["message"]


async def test_a_server_whose_viewer_stays_away_is_unavailable(tmp_path):
    async with serve(tmp_path, server_return_s=0.02) as served:
        one, two = await join(served), await join(served)
        session = await one.new(mcpServers=[inside()])
        await two.load(session)
        await one.viewer.close()
        answer = await settled(two, two.start_prompt(session, asks()), session)
        assert answer["error"]["code"] == ErrorCode.MCP_SERVER_UNAVAILABLE


async def test_a_server_that_nobody_gave_is_unavailable_at_once(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        answer = await settled(one, one.start_prompt(session, asks("made up")), session)
        assert answer["error"]["code"] == ErrorCode.MCP_SERVER_UNAVAILABLE


async def test_a_second_viewer_with_a_server_of_that_name_stands_in_when_the_first_leaves(tmp_path):
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


async def test_a_new_life_of_the_agent_is_given_the_ids_of_the_one_before(tmp_path):
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


async def test_a_request_that_the_agent_takes_back_is_cancelled_at_the_viewer(tmp_path):
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


async def test_an_answer_that_is_too_long_fails_its_request(tmp_path):
    async with serve(tmp_path, max_message_bytes=10_000) as served:
        one = await join(served)
        session = await one.new(mcpServers=[inside()])
        prompt = one.start_prompt(session, asks())
        one.reply(await one.asked("mcp/message"), result("x" * 20_000))
        answer = await settled(one, prompt, session)
        assert answer["error"]["code"] == ErrorCode.MCP_BACKEND_FAILED
        assert "10000" in answer["error"]["message"].replace(",", "")


async def test_a_reader_offers_no_server(tmp_path):
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
