"""A share of one session, attacked: nothing of another session comes out, by HTTP or by a WebSocket."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.bridge.front.client import answer_to, http_viewer
from tests.bridge.front.serving import TOKEN

SECRET = "the secret of the other session"
GREETING = {"protocolVersion": 1, "clientCapabilities": {"_meta": {"dragoman": {"viewer": 1}}}}


class Reader:
    """A viewer over a WebSocket with a cookie, and everything that it was ever sent."""

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
    """Two sessions of one agent: the one that is shared, and the other."""
    made = [(await owner.call("session/new", {"cwd": "/", "mcpServers": []}))["result"]["sessionId"] for _ in range(2)]
    await prompt(owner, made[0], json.dumps({"chunks": 1}))
    await owner.call("session/set_title", {"sessionId": made[1], "title": SECRET})
    await prompt(owner, made[1], json.dumps({"chunks": 1, "note": SECRET}))
    return made


@pytest.fixture
async def shared(served, sessions):
    """The headers of a browser that opened the share of the first session, and the share."""
    async with httpx2.AsyncClient(base_url=served.url) as http:
        asked = {"hours": 1, "agent": "one", "session": sessions[0], "title": "The first"}
        share = (await http.post("/shares", json=asked, headers=served.headers)).json()
        entered = await http.get("/" + share["path"])
        assert entered.status_code == 303
    cookie = entered.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, "origin": served.url}, share


async def test_a_reader_of_one_session_sees_it_and_nothing_of_another_over_a_socket(served, owner, sessions, shared):
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
        # A session that there is and one that there is not are refused in the same words.
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


async def test_a_reader_of_one_session_sees_nothing_of_another_over_http(served, owner, sessions, shared):
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


async def test_every_other_address_refuses_a_reader_of_one_session(served, shared):
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


async def test_a_withdrawn_share_ends_at_once_for_those_who_are_there(served, owner, sessions, shared):
    headers, share = shared
    async with talk(served, **headers) as reader, httpx2.AsyncClient(base_url=served.url) as http:
        await reader.call("initialize", GREETING)
        listed = (await http.get("/shares", headers=served.headers)).json()["shares"]
        assert [(one["id"], one["session"], one["opened"]) for one in listed] == [(share["id"], sessions[0], True)]
        assert (await http.delete(f"/shares/{share['id']}", headers=served.headers)).status_code == 204
        with pytest.raises(ConnectionClosed, match="withdrawn"):
            while True:
                await asyncio.wait_for(reader.socket.recv(), 20)
        assert (await http.get("/config.json", headers=headers)).status_code == 401
        assert (await http.get("/" + share["path"])).status_code == 401
        refused = await http.get("/" + share["path"], headers={"accept": "text/html"})
        assert refused.headers["location"] == "./?refused=reader"
        assert (await http.get("/shares", headers=served.headers)).json() == {"shares": []}


async def test_a_share_is_over_for_those_who_are_there_when_its_time_is(served, sessions):
    _, code = await served.guard.shares.make(1.0, "one", sessions[0])
    cookie = (await served.guard.redeem_share(code)).partition(";")[0]
    with pytest.raises(ConnectionClosed, match="time of this link"):
        async with talk(served, cookie=cookie, origin=served.url) as reader:
            while True:
                await asyncio.wait_for(reader.socket.recv(), 20)


async def test_a_share_that_cannot_be_is_refused_in_words(served):
    async with httpx2.AsyncClient(base_url=served.url, headers=served.headers) as http:
        for asked, words in [
            ({"hours": 0}, "expected 1 to 720"),
            ({"hours": 1, "session": "x"}, "names its agent"),
            ({"hours": 1, "session": "x", "agent": "one"}, "no such session"),
            ({"hour": 1}, "another shape"),
        ]:
            assert words in (await http.post("/shares", json=asked)).json()["error"]
