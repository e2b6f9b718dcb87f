"""Shares, sign-in codes and approval links behind a load balancer that sends each request to another node."""

import asyncio
import json
import time
import uuid
from contextlib import asynccontextmanager

import httpx2
import psycopg
import pytest
from websockets.exceptions import ConnectionClosed

from dragoman.bridge.guard import AccessUnavailableError, CredentialStores, Token
from dragoman.bridge.guard.credentials import hash_code
from dragoman.bridge.nodes import access, code_directory
from dragoman.bridge.nodes.access import UNSURE, DatabaseShares
from dragoman.bridge.nodes.code_directory import CodeDirectory, Lookups, NodeGoneError
from dragoman.bridge.nodes.messages import OpenQuestion
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.share_table import ShareTable
from tests.bridge.front.serving import TOKEN, make_guard, serving
from tests.bridge.front.sockets import INITIALIZE, call, dial, open_session, order, until_answer
from tests.bridge.front.test_login_return import LOGIN_AGENT, STATE, come_back, texts_of
from tests.bridge.front.test_shares import GREETING, talk
from tests.bridge.guard.asking import ask, cookie_of, status_of
from tests.bridge.nodes.test_two_nodes import keeping
from tests.bridge.router.test_answer_links import ALWAYS, NO, ONCE, SHOWN
from tests.bridge.viewers import PATIENCE_S, agent, join
from tests.waiting import until

PUBLIC_URL = "http://agents.example.org"
HOUR_S = 3600


@asynccontextmanager
async def node_of(address, tmp_path, name, **changes):
    specs = {"agents": (keeping(tmp_path),), "store": address, "public_url": PUBLIC_URL, **changes}
    async with (
        asyncio.timeout(40),
        serving(tmp_path / name, **specs) as node,
        httpx2.AsyncClient(base_url=node.url, timeout=PATIENCE_S) as http,
    ):
        yield node, http


def execute(address, *statements):
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def query(address, statement):
    with psycopg.connect(address) as connection:
        return connection.execute(statement).fetchall()


async def until_closed(reader, reason):
    with pytest.raises(ConnectionClosed, match=reason):
        while True:
            await asyncio.wait_for(reader.socket.recv(), 20)


@pytest.mark.basic
async def test_share_is_valid_at_every_node_and_ends_at_all(address, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "READ_S", HOUR_S)  # so that only a wake informs a node of a withdrawal
    async with (
        node_of(address, tmp_path, "one", lease_s=HOUR_S) as (one, http_one),
        node_of(address, tmp_path, "two", lease_s=HOUR_S) as (two, http),
    ):
        owner = await join(one.bridge.agent(), extensions=True)
        session = await owner.new()
        await owner.prompt(session, {"say": "shared"})
        wanted = {"hours": 1, "agent": "one", "session": session}
        share = (await http.post("/shares", json=wanted, headers=two.headers)).json()
        entered = await http_one.get("/" + share["path"])
        assert entered.status_code == 303
        assert (await http.get("/" + share["path"])).status_code == 401, "a code was good twice"
        headers = {"cookie": entered.headers["set-cookie"].partition(";")[0], "origin": PUBLIC_URL}
        listed = (await http_one.get("/shares", headers=one.headers)).json()["shares"]
        assert [(each["id"], each["opened"]) for each in listed] == [(share["id"], True)]
        async with talk(two, **headers) as reader:
            await reader.call("initialize", GREETING)
            await reader.call("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
            assert '"shared"' in "\n".join(reader.received)
            assert (await http_one.delete(f"/shares/{share['id']}", headers=one.headers)).status_code == 204
            await until_closed(reader, "revoked")
        for client in (http_one, http):
            assert (await client.get("/config.json", headers=headers)).status_code == 401
            assert (await client.get("/shares", headers=one.headers)).json() == {"shares": []}


async def test_removed_share_ends_with_the_next_read(address, tmp_path):
    async with node_of(address, tmp_path, "one") as (one, _):
        _, code = await one.guard.shares.make(HOUR_S, None, None)
        cookie = cookie_of(await one.guard.redeem_share(code))
        async with talk(one, cookie=cookie, origin=one.url) as reader:
            execute(address, "DELETE FROM dragoman_share")
            await until_closed(reader, "revoked")


async def test_sign_in_link_works_once_across_all_nodes(address, tmp_path):
    async with node_of(address, tmp_path, "one") as (one, http), node_of(address, tmp_path, "two") as (two, http_two):
        made = (await http.post("/link", headers=one.headers)).json()["path"]
        entered = await http_two.get("/" + made)
        assert entered.status_code == 303
        assert [(await client.get("/" + made)).status_code for client in (http, http_two)] == [401, 401]
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
        assert (await http.get("/config.json", headers=cookie)).json()["role"] == "owner"
        code = await one.guard.new_link_code()
        tried = await asyncio.gather(*(node.guard.redeem_code(code) for node in (one, two, one, two)))
        assert sum(each is not None for each in tried) == 1
        others = two.bridge.credential_stores(Token("o" * 43)).codes
        assert not await others.redeem(await one.guard.new_link_code()), "bridges of another token took the code"
        late = await one.guard.new_link_code()
        execute(address, "UPDATE dragoman_code SET expires = clock_timestamp()")
        assert await two.guard.redeem_code(late) is None
        _, shared = await one.guard.shares.make(HOUR_S, None, None)
        rows = query(address, "SELECT c::text FROM dragoman_code c UNION ALL SELECT s::text FROM dragoman_share s")
        shown = [code if form == "text" else code.encode().hex() for code in (late, shared) for form in ("text", "hex")]
        assert not any(each in row for each in shown for (row,) in rows)
        assert any(hash_code(late).hex() in row for (row,) in rows)
        execute(address, "ALTER TABLE dragoman_code RENAME TO hidden")
        away = await http.get("/" + made)
        assert (away.status_code, away.json()["error"]) == (
            503,
            "the bridge cannot use its database at the moment; try again soon",
        )


async def test_approval_link_works_at_every_node(address, tmp_path):
    async with node_of(address, tmp_path, "two") as (two, http_two):
        async with (
            node_of(address, tmp_path, "one") as (one, http_one),
            node_of(address, tmp_path, "three", agents=(agent("another"),)) as (_, http_three),
        ):
            here, there = [await join(node.bridge.agent(), extensions=True) for node in (one, two)]
            session = await here.new()
            await there.load(session)
            prompt = here.start_prompt(session, {"ask": [ONCE, ALWAYS, NO]})
            asked = await there.asked()
            params = {"sessionId": session, "requestId": asked["id"], "shown": SHOWN}
            made = (await there.ask("_dragoman/question/link", params))["result"]

            async def post(http, **chosen):
                return await http.post("/answer", json={"code": made["path"].removeprefix("answer#"), **chosen})

            for http in (http_two, http_one, http_three):
                shown = (await post(http)).json()
                assert (shown["state"], shown["shown"], shown["agent"]) == ("open", SHOWN, "one")
                assert [option["optionId"] for option in shown["options"]] == ["yes", "no"]
            assert (await post(http_two, option="always")).status_code == 400
            assert (await http_two.post("/answer", json={"code": "x" * 32})).status_code == 404
            used = {"agent": "one", "state": "answered", "by": "link", "choice": "No"}
            assert (await post(http_two, option="no")).json() == used
            assert (await post(http_one, option="yes")).json() == used
            await here.answer(prompt)
            assert json.loads(here.said(session)[-1])["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
            await there.until(lambda message: message.get("method") == "_dragoman/settled")
        assert (await post(http_two)).json() == {"state": "gone"}


async def test_browser_returns_from_a_login_at_any_node(address, tmp_path):
    agents = {"agents": (LOGIN_AGENT,)}
    async with (
        node_of(address, tmp_path, "one", **agents) as (one, http_one),
        node_of(address, tmp_path, "two", **agents) as (two, http_two),
        dial(one) as here,
        dial(two) as there,
    ):
        session = await open_session(here)
        await call(there, **INITIALIZE)
        await call(there, id=1, method="session/load", params={"sessionId": session, "cwd": "/", "mcpServers": []})
        await there.send(order(session, state=STATE))
        received = await until_answer(there, 2)
        while not texts_of(received):
            received.append(json.loads(await there.recv()))
        assert texts_of(received) == [{"redirectUri": f"{two.url}/oauth/callback"}], (
            "a viewer of another node was asked"
        )
        await until(lambda: query(address, "SELECT 1 FROM dragoman_code"))
        back = await come_back(http_two, code="a-code", other="x")
        assert (back.status_code, "You are logged in" in back.text) == (200, True), back.text
        while len(texts_of(received)) < 2:
            received.append(json.loads(await there.recv()))
        assert texts_of(received)[1] == {"sessionId": session, "state": STATE, "code": "a-code"}
        assert [(await come_back(http)).status_code for http in (http_one, http_two)] == [400, 400]


async def test_cookies_and_shares_use_the_database_clock(address, tmp_path):
    """The clock of this machine is ten hours behind the database."""
    execute(
        address,
        "CREATE SCHEMA ahead",
        "CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
        "$$ SELECT pg_catalog.clock_timestamp() + interval '10 hours' $$",
        f"ALTER DATABASE {address.rpartition('/')[2]} SET search_path = ahead, pg_catalog, public",
    )
    async with node_of(address, tmp_path, "one") as (one, _):
        _, issued, *_ = one.guard.redeem_token(TOKEN).split(".")
        assert int(issued) > time.time() + 9 * HOUR_S
        share, _ = await one.guard.shares.make(HOUR_S, None, None)
        assert 0.9 * HOUR_S < one.guard.shares.left_s(share) < 1.1 * HOUR_S


@pytest.fixture
async def database(address):
    made = Database(address)
    yield made
    await made.close()


async def test_silent_node_is_distinguished_from_a_stopped_one(address, database, monkeypatch):
    here, there, asked = uuid.uuid4(), uuid.uuid4(), []
    execute(address, f"INSERT INTO dragoman_node (id, name, pid, lease) VALUES ('{there}', 'there', 1, '1 hour')")
    lookups = Lookups()
    other = CodeDirectory(database, there, lambda *_: None, lookups)
    for code in (b"older", b"code"):
        await other.publish("question", code, "one", life_s=60, limit=1)
    directory = CodeDirectory(database, here, lambda node, message: asked.append((node, message)), lookups)

    def open_link(code=b"code"):
        return directory.ask("question", code, lambda agent, id_: OpenQuestion(agent, id_, code))

    assert await open_link(b"older") is None, "there are more codes than the limit"
    waiting = asyncio.create_task(open_link())
    await until(lambda: asked)
    assert (asked[0][0], asked[0][1].agent) == (there, "one")
    directory.drop_nodes({there})
    with pytest.raises(NodeGoneError):
        await waiting
    monkeypatch.setattr(code_directory, "ANSWER_TIMEOUT_S", 0.01)
    with pytest.raises(AccessUnavailableError, match="does not answer"):
        await open_link()
    execute(address, "UPDATE dragoman_node SET beat = beat - lease")
    with pytest.raises(NodeGoneError):
        await open_link()


async def test_limit_of_codes_is_per_node(address, database):
    lookups = Lookups()
    one, two = (CodeDirectory(database, uuid.uuid4(), lambda *_: None, lookups) for _ in range(2))
    await one.publish("login", b"kept", "agent", life_s=60, limit=2)
    for code in (b"a", b"b", b"c"):
        await two.publish("login", code, "agent", life_s=60, limit=2)
    assert {code for (code,) in query(address, "SELECT hash FROM dragoman_code")} == {b"kept", b"b", b"c"}


async def test_wait_for_a_code_lookup_is_bounded(monkeypatch):
    monkeypatch.setattr(code_directory, "SLOT_TIMEOUT_S", 0.05)
    lookups, gate = Lookups(), asyncio.Event()

    async def look_up():
        async with lookups.slot():
            await gate.wait()

    strangers = [asyncio.create_task(look_up()) for _ in range(code_directory.MAX_LOOKUPS)]
    await asyncio.sleep(0)
    with pytest.raises(AccessUnavailableError, match="try again soon"):
        await look_up()
    gate.set()
    await asyncio.gather(*strangers)
    await look_up()


async def test_readers_are_refused_while_withdrawals_are_unknown(address, database):
    name = address.rpartition("/")[2]
    node = Node(database, lease_s=HOUR_S)
    shares = DatabaseShares(ShareTable(database, "realm"), node, Lookups())
    guard = make_guard(1, CredentialStores(shares))
    ended = []
    shares.on_ended = lambda *arguments: ended.append(arguments)
    share, code = await shares.make(HOUR_S, None, None)
    request = ask(host="127.0.0.1:1", cookie=cookie_of(await guard.redeem_share(code)))
    assert (await guard.authorize(request)).share_id == share.id, "a share of another node was not looked up"
    node.lease_s = 0.1
    await shares.refresh()
    server = address.rpartition("/")[0] + "/postgres"
    execute(
        server,
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'",
    )
    await until(lambda: ended)
    assert ended == [(share.id, UNSURE)]
    refused = await guard.authorize(request)
    assert (status_of(refused), refused.reason) == (503, UNSURE)
    execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    node.lease_s = HOUR_S
    assert (await guard.authorize(request)).share_id == share.id
    await shares.withdraw(share.id)
    assert status_of(await guard.authorize(request)) == 401
    shares.close()


class SlowTable(ShareTable):
    """A table whose rows arrive late, so that they may be out of date."""

    def __init__(self, database):
        super().__init__(database, "realm")
        self.is_read = asyncio.Event()
        self.gate = asyncio.Event()

    async def read(self):
        rows = await super().read()
        self.is_read.set()
        await self.gate.wait()
        return rows


async def test_share_created_during_a_read_is_kept(database):
    table = SlowTable(database)
    shares = DatabaseShares(table, Node(database, lease_s=600), Lookups())
    ended = []
    shares.on_ended = lambda *arguments: ended.append(arguments)
    reading = asyncio.create_task(shares.refresh())
    await table.is_read.wait()
    share, _ = await shares.make(HOUR_S, None, None)
    table.gate.set()
    await reading
    assert (shares.find(share.id), ended) == (share, [])
    shares.close()
