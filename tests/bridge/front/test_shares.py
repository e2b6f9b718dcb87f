"""Attacks with a share of one session. Nothing of another session leaks over HTTP or WebSockets."""

import asyncio
import json
import time
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dragoman.bridge.front.limits import ServerLimits
from dragoman.bridge.front.render import MAX_WAITING
from dragoman.protocol import methods, methods_v2
from tests.bridge.front.client import answer_to, http_viewer
from tests.bridge.front.serving import TOKEN, open_stream, serving
from tests.bridge.viewers import A_DAY_S, agent

SECRET = "the secret of the other session"
GREETING = {"protocolVersion": 1, "clientCapabilities": {"_meta": {"dragoman": {"viewer": 1}}}}


class Reader:
    """A viewer over a WebSocket with a cookie, and everything that it received."""

    def __init__(self, socket):
        self.socket = socket
        self.received = []
        self._last = 0

    async def call(self, method, params):
        self._last += 1
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}))
        async with asyncio.timeout(20):
            while True:
                self.received.append(await self.socket.recv())
                message = json.loads(self.received[-1])
                if message.get("id") == self._last and "method" not in message:
                    return message


@asynccontextmanager
async def talk(served, **headers):
    async with connect(f"{served.url.replace('http', 'ws', 1)}/acp", additional_headers=headers) as socket:
        yield Reader(socket)


async def prompt(owner, session, text):
    words = [{"type": "text", "text": text}]
    return await owner.call("session/prompt", {"sessionId": session, "prompt": words})


@pytest.fixture
async def owner(served):
    async with talk(served, authorization=f"Bearer {TOKEN}") as one:
        await one.call("initialize", GREETING)
        yield one


@pytest.fixture
async def sessions(owner):
    """Two sessions of one agent: the shared one and another."""
    made = [(await owner.call("session/new", {"cwd": "/", "mcpServers": []}))["result"]["sessionId"] for _ in range(2)]
    await prompt(owner, made[0], json.dumps({"chunks": 1}))
    await owner.call("session/set_title", {"sessionId": made[1], "title": SECRET})
    await prompt(owner, made[1], json.dumps({"chunks": 1, "note": SECRET}))
    return made


@pytest.fixture
async def shared(served, sessions):
    """The share of the first session, and the headers of a browser that opened it."""
    async with httpx2.AsyncClient(base_url=served.url) as http:
        asked = {"hours": 1, "agent": "one", "session": sessions[0], "title": "The first"}
        share = (await http.post("/shares", json=asked, headers=served.headers)).json()
        entered = await http.get("/" + share["path"])
        assert entered.status_code == 303
    cookie = entered.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, "origin": served.url}, share


async def test_scoped_reader_sees_only_its_session_by_websocket(served, owner, sessions, shared):
    headers, _ = shared
    mine, other = sessions
    place = {"cwd": "/", "mcpServers": []}
    async with talk(served, **headers) as reader:
        told = (await reader.call("initialize", GREETING))["result"]["_meta"]["dragoman"]
        assert (told["agents"], told["cwd"], told["readOnly"]) == ([{"name": "one", "title": "The first"}], "", True)
        for method in ("session/list", "_dragoman/sessions"):
            listed = (await reader.call(method, {"archived": "include"}))["result"]["sessions"]
            assert [one["sessionId"] for one in listed] == [mine]
        assert "result" in await reader.call("session/load", {"sessionId": mine, **place})
        cursor = next(
            message["params"]["_meta"]["dragoman"]["cursor"]
            for message in map(json.loads, reader.received)
            if message.get("method") == "session/update"
        )
        attacks = [
            ("session/load", {"sessionId": other, **place}),
            ("session/load", {"sessionId": other, **place, "_meta": {"dragoman": {"after": cursor}}}),
            ("session/resume", {"sessionId": other, **place}),
            ("session/status", {"sessionId": other}),
            ("session/load", {"sessionId": "no such session", **place}),
            ("session/prompt", {"sessionId": mine, "prompt": []}),
            ("session/delete", {"sessionId": mine}),
            ("session/set_title", {"sessionId": mine, "title": "x"}),
            ("session/fork", {"sessionId": other, **place}),
            ("session/new", place),
            ("_dragoman/inspect", {"on": True}),
            ("_dragoman/inspect", {"on": True, "sessionId": mine}),
            ("_dragoman/anything", {"sessionId": mine}),
            ("authenticate", {"methodId": "x"}),
        ]
        refused = [(await reader.call(method, params))["error"] for method, params in attacks]
        # An existing and a missing session are refused with the same message.
        assert refused[0] == refused[1] == refused[4]
        await reader.socket.send(
            json.dumps({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": mine}})
        )
        await prompt(owner, other, json.dumps({"chunks": 3, "note": SECRET}))
        await prompt(owner, mine, json.dumps({"chunks": 1}))
        await reader.call("session/status", {"sessionId": mine})
        everything = "\n".join(reader.received)
    assert SECRET not in everything
    assert f'"{other}"' not in everything


async def test_scoped_reader_sees_only_its_session_by_http(served, owner, sessions, shared):
    headers, _ = shared
    mine, other = sessions
    async with http_viewer(served) as reader, http_viewer(served) as foreign:
        await foreign.initialize()
        del reader.http.headers["authorization"]
        reader.http.headers.update(headers)
        assert (await reader.initialize()).status_code == 200
        streams = {"accept": "text/event-stream", "acp-connection-id": reader.id}
        assert (await reader.http.get("/acp", headers={**streams, "acp-session-id": other})).status_code == 404
        taken_over = {**streams, "acp-connection-id": foreign.id}
        assert (await reader.http.get("/acp", headers=taken_over)).status_code == 404
        async with reader.stream() as events:
            load = {"cwd": "/", "mcpServers": []}
            answers = [
                await answer_to(await reader.call("session/load", {"sessionId": each, **load}), events)
                for each in (mine, other)
            ]
        assert ["error" in answer for answer in answers] == [False, True]
        asked = {"sessionId": other, "prompt": []}
        posted = await reader.post({"id": 9, "method": "session/prompt", "params": asked}, acp_session_id=other)
        assert posted.status_code == 404


async def test_other_paths_refuse_a_scoped_reader(served, shared):
    headers, share = shared
    async with httpx2.AsyncClient(base_url=served.url, headers=headers) as http:
        config = (await http.get("/config.json")).json()
        assert (config["role"], config["session"], config["cwd"]) == ("reader", share["session"], "")
        assert [agent["name"] for agent in config["agents"]] == ["one"]
        for path in ("/acp/two", "/shares", "/link", "/metrics", "/anything"):
            assert (await http.get(path)).status_code == 403, path
            assert (await http.post(path, json={})).status_code == 403, path
        assert (await http.delete(f"/shares/{share['id']}")).status_code == 403
    with pytest.raises(InvalidStatus, match="403"):
        async with connect(f"{served.url.replace('http', 'ws', 1)}/acp/two", additional_headers=headers):
            pass


EVERYTHING = {
    "loadSession": True,
    "sessionCapabilities": {key: {} for key in ("list", "resume", "status", "title", "archive", "close")},
}
GREETING_OF_V2 = {"protocolVersion": 2, "info": {"name": "reader", "version": "1"}, "capabilities": {}}
OURS = ("sessions", "projects", "search", "files", "revert", "inspect", "queue/change", "queue/resume", "leave", "x")


def attacks_of_a_reader(session):
    """Yield every method with params that name no session, another session or the right one."""
    evil = {"cwd": "/", "mcpServers": [{"name": "evil", "command": "/bin/evil", "args": [], "env": []}]}
    replay = {"replayFrom": {"type": "start"}, **evil}
    given = [{}, {"sessionId": None}, {"sessionId": [session]}, {"SessionId": session}, {"sessionId": "unknown"}]
    given += [{"sessionId": ""}, {"sessionId": session}]
    names = methods.METHODS.keys() | methods_v2.METHODS.keys() | {f"_dragoman/{each}" for each in OURS}
    for method in sorted(names - {"initialize"}):
        for params in given:
            yield {"method": method, "params": {**replay, **params, "cursor": "evil", "query": "evil", "searchId": 1}}
    yield {"method": "session/load", "params": [session]}
    yield {"method": "$/cancel_request", "params": {"requestId": 1}}


async def share_all(served):
    _, code = await served.guard.shares.make(3600.0, None, None)
    return {"cookie": (await served.guard.redeem_share(code)).partition(";")[0], "origin": served.url}


async def test_reader_never_causes_a_message_to_the_agent(tmp_path):
    log = tmp_path / "log"
    logging = agent("one", capabilities=EVERYTHING, log=str(log), store=str(tmp_path), results={"session/list": {}})
    async with serving(tmp_path, agents=(logging,)) as served, talk(served, **served.headers) as owner:
        await owner.call("initialize", GREETING)
        session = (await owner.call("session/new", {"cwd": "/", "mcpServers": []}))["result"]["sessionId"]
        before = log.read_text()
        for greeting in (GREETING, GREETING_OF_V2):
            async with talk(served, **await share_all(served)) as reader:
                assert "result" in await reader.call("initialize", greeting)
                for attack in attacks_of_a_reader(session):
                    await reader.socket.send(json.dumps({"jsonrpc": "2.0", **attack}))
                    await reader.call(attack["method"], attack["params"])
                await reader.socket.send(json.dumps({"jsonrpc": "2.0", "id": "r1", "result": {"evil": True}}))
                await reader.call("session/status", {"sessionId": session})
        await owner.call("_echo", {})
    sent = [json.loads(line) for line in log.read_text().removeprefix(before).splitlines()]
    assert [message["method"] for message in sent] == ["_echo"]


async def test_reader_loads_a_session_without_starting_the_agent(tmp_path):
    starts, place = tmp_path / "starts", {"cwd": "/", "mcpServers": []}
    stored = agent("one", capabilities=EVERYTHING, starts=str(starts), store=str(tmp_path))
    async with serving(tmp_path, agents=(stored,)) as served, talk(served, **served.headers) as owner:
        await owner.call("initialize", GREETING)
        session = (await owner.call("session/new", place))["result"]["sessionId"]
        await prompt(owner, session, "/steps []")
    async with serving(tmp_path, agents=(stored,)) as served, talk(served, **await share_all(served)) as reader:
        await reader.call("initialize", GREETING)
        for later_s in (0, A_DAY_S):
            await served.bridge.agent().sweep(time.monotonic() + later_s)
        assert "result" in await reader.call("session/load", {"sessionId": session, **place})
    assert len(starts.read_text()) == 2


async def test_readers_leave_room_for_the_owners_viewers(tmp_path):
    limits = {"max_viewers": 6, "max_readers": 4, "max_viewers_per_share": 3}
    async with serving(tmp_path, **limits) as served, AsyncExitStack() as stack:
        opened = []
        for headers in [await share_all(served), await share_all(served)]:
            opened.append(0)
            with pytest.raises(InvalidStatus) as refused:
                while True:
                    await stack.enter_async_context(talk(served, **headers))
                    opened[-1] += 1
            assert refused.value.response.status_code == 503
            assert "the limit" in json.loads(refused.value.response.body)["error"]
        assert opened == [3, 1]
        for _ in range(2):
            owner = await stack.enter_async_context(talk(served, **served.headers))
            assert "result" in await owner.call("initialize", GREETING)


async def test_reader_connections_make_room_for_the_owner(tmp_path):
    few = ServerLimits(max_sockets=6)
    async with (
        serving(tmp_path, limits=few) as served,
        talk(served, **served.headers) as owner,
        AsyncExitStack() as stack,
    ):
        headers = await share_all(served)
        for _ in range(2 * few.max_sockets):
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=served.url, headers=headers))
            assert (await http.get("/config.json")).status_code == 200
        async with httpx2.AsyncClient(base_url=served.url, headers=served.headers) as http:
            assert (await http.get("/config.json")).status_code == 200
        assert served.server.open_connections <= few.max_sockets
        assert "result" in await owner.call("initialize", GREETING)


async def test_reader_connections_do_not_cut_new_ones(tmp_path):
    few = ServerLimits(max_sockets=6)
    async with serving(tmp_path, limits=few) as served, AsyncExitStack() as stack:
        headers = await share_all(served)
        for _ in range(few.max_sockets):
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=served.url, headers=headers))
            assert (await http.get("/config.json")).status_code == 200
        answer, owner = await stack.enter_async_context(open_stream(served))
        for _ in range(few.max_sockets):
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=served.url, headers=headers))
            assert (await http.get("/config.json")).status_code == 200
        owner.write(f"GET /config.json HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n".encode())
        owner.write(f"authorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert (await answer.readline()).startswith(b"HTTP/1.1 200")


async def test_readers_texts_do_not_delay_the_owners(served):
    hostile = [f"{number} " + "[" * 60_000 for number in range(MAX_WAITING + 5)]
    async with (
        httpx2.AsyncClient(base_url=served.url, headers=await share_all(served), timeout=60) as reader,
        httpx2.AsyncClient(base_url=served.url, headers=served.headers, timeout=60) as owner,
    ):
        flood = [asyncio.create_task(reader.post("/render", json={"markdown": text})) for text in hostile]
        refused = await next(asyncio.as_completed(flood))
        assert refused.status_code == 429
        assert refused.headers["retry-after"]
        for word in ("a", "b", "c"):
            answer = await owner.post("/render", json={"markdown": f"*{word}*"})
            assert answer.json() == {"html": f"<p><em>{word}</em></p>\n"}
        assert sum(not task.done() for task in flood) > MAX_WAITING // 2
        for task in flood:
            task.cancel()
        await asyncio.wait(flood)


async def test_revoked_share_disconnects_its_readers(served, owner, sessions, shared):
    headers, share = shared
    async with talk(served, **headers) as reader, httpx2.AsyncClient(base_url=served.url) as http:
        await reader.call("initialize", GREETING)
        listed = (await http.get("/shares", headers=served.headers)).json()["shares"]
        assert [(one["id"], one["session"], one["opened"]) for one in listed] == [(share["id"], sessions[0], True)]
        assert (await http.delete(f"/shares/{share['id']}", headers=served.headers)).status_code == 204
        with pytest.raises(ConnectionClosed, match="revoked this link"):
            while True:
                await asyncio.wait_for(reader.socket.recv(), 20)
        assert (await http.get("/config.json", headers=headers)).status_code == 401
        assert (await http.get("/" + share["path"])).status_code == 401
        refused = await http.get("/" + share["path"], headers={"accept": "text/html"})
        assert refused.headers["location"] == "./?refused=reader"
        assert (await http.get("/shares", headers=served.headers)).json() == {"shares": []}


async def test_expired_share_disconnects_its_readers(served, sessions):
    _, code = await served.guard.shares.make(1.0, "one", sessions[0])
    cookie = (await served.guard.redeem_share(code)).partition(";")[0]
    with pytest.raises(ConnectionClosed, match="this link has expired"):
        async with talk(served, cookie=cookie, origin=served.url) as reader:
            while True:
                await asyncio.wait_for(reader.socket.recv(), 20)


async def test_invalid_share_is_refused_with_a_reason(served):
    async with httpx2.AsyncClient(base_url=served.url, headers=served.headers) as http:
        for asked, words in [
            ({"hours": 0}, "expected 1 to 720"),
            ({"hours": 1, "session": "x"}, "needs the session's agent"),
            ({"hours": 1, "session": "x", "agent": "one"}, "no such session"),
            ({"hour": 1}, "an unexpected shape"),
        ]:
            assert words in (await http.post("/shares", json=asked)).json()["error"]
