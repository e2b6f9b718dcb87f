"""Lists of sessions are the same on every node, in full pages for any number of sessions."""

import asyncio

import psycopg
import pytest

from dragoman.bridge.nodes import node
from dragoman.bridge.nodes.labels import DatabaseLabels
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.label_table import LabelTable
from tests.bridge.nodes.database_proxy import DatabaseProxy
from tests.bridge.nodes.test_node import FULL, LONG_LEASE_S, execute
from tests.bridge.nodes.test_two_nodes import keeping, node_of
from tests.bridge.viewers import join
from tests.waiting import PATIENCE_S, PAUSE_S, until

COPIES = 250
COPY = """
WITH made AS (
    INSERT INTO dragoman_session (scope, id, header, cwd, title, prompted, updated)
    SELECT s.scope, n.id, convert_to(replace(convert_from(s.header, 'UTF8'), s.id, n.id), 'UTF8'), s.cwd, n.id, true,
        s.updated - 1000 * (number / 2)
    FROM dragoman_session s, (SELECT number, 'copy' || number AS id FROM generate_series(1, %s) AS number) AS n
    RETURNING key)
INSERT INTO dragoman_end (session, last, checksum) SELECT key, 0, 0 FROM made
"""


async def walk(viewer, **params):
    """Return all pages of a list."""
    pages, cursor = [], {}
    while True:
        result = (await viewer.ask("session/list", {**params, **cursor}))["result"]
        pages.append(result["sessions"])
        if "nextCursor" not in result:
            return pages
        cursor = {"cursor": result["nextCursor"]}


@pytest.mark.basic
async def test_many_sessions_are_listed_once_in_pages_latest_first(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        here = await join(one, extensions=True)
        session = await here.new()
        await here.prompt(session, {"say": "hello"})
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(COPY, (COPIES,))
        async with node_of(address, tmp_path, "two") as two:
            there = await join(two, extensions=True)
            assert "error" not in await there.ask("session/archive", {"sessionId": "copy7"})
            pages = await walk(there)
            assert [len(page) for page in pages] == [100, 100, COPIES - 200]
            listed = [each for page in pages for each in page]
            expected = {session, *(f"copy{number}" for number in range(1, COPIES + 1))} - {"copy7"}
            assert {each["sessionId"] for each in listed} == expected
            assert len(listed) == len(expected)
            times = [each["updatedAt"] for each in listed]
            assert times == sorted(times, reverse=True)
            assert [each["sessionId"] for each in (await walk(there, archived="only"))[0]] == ["copy7"]
            assert await walk(there, cwd="/elsewhere") == [[]]
            assert sum(map(len, await walk(there, cwd="/work/."))) == COPIES
            first = (await there.ask("session/list"))["result"]["nextCursor"]
            for wrong in ({"cursor": "x"}, {"cursor": first, "cwd": "/elsewhere"}, {"cursor": "WzEsMl0="}):
                refused = await there.ask("session/list", wrong)
                assert refused["error"]["data"]["path"] == "params.cursor", refused


async def listed(viewer, ids):
    """Request the list until a node has these sessions, which it learns of a moment after their owner."""
    async with asyncio.timeout(PATIENCE_S):
        for method in ("session/list", "_dragoman/sessions"):
            while {each["sessionId"] for each in (await viewer.ask(method))["result"]["sessions"]} != ids:
                await asyncio.sleep(PAUSE_S)


async def test_nodes_list_a_session_while_viewed_or_once_prompted(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session, prompted = await here.new(), await here.new()
        await here.prompt(prompted, {"say": "hi"})
        await listed(there, {session, prompted})
        await here.viewer.close()
        await listed(there, {prompted})


async def test_nodes_discover_each_other_without_polling(address, tmp_path, monkeypatch):
    monkeypatch.setattr(node, "POLL_S", 600)
    async with node_of(address, tmp_path, "one") as one:
        here = await join(one)
        sessions = {await here.new()}
        await here.prompt(*sessions, {"say": "hi"})
        async with node_of(address, tmp_path, "two") as two:
            sessions.add(session := await here.new())
            await here.prompt(session, {"say": "hi"})
            await listed(await join(two), sessions)


async def test_session_is_listed_elsewhere_once_the_agent_opened_it(address, tmp_path):
    gate = tmp_path / "gate"
    spec = keeping(tmp_path, load_waits=str(gate))
    (tmp_path / "sessions" / "old").touch()
    async with node_of(address, tmp_path, "one", spec) as one, node_of(address, tmp_path, "two", spec) as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        other = await here.new()
        loading = [
            here.request("session/load", {"sessionId": session, "cwd": "/work", "mcpServers": []})
            for session in ("old", "nowhere")
        ]
        await until(lambda: {"old", "nowhere"} <= one.sessions.by_id.keys())
        for title in ("A", "B", "C"):  # announcements of the others would have arrived by then
            await here.ask("session/set_title", {"sessionId": other, "title": title})
            await there.announced(other, lambda news, title=title: news["title"] == title)
        await listed(there, {other})
        gate.touch()
        old, nowhere = [await here.answer(each) for each in loading]
        assert ("result" in old, "error" in nowhere) == (True, True)
        await listed(there, {"old", other})
        assert not any(news["sessionId"] == "nowhere" for news in there.params_of("_dragoman/session"))


async def test_disconnected_node_catches_up_with_the_others(address, tmp_path):
    async with node_of(address, tmp_path, "before") as before:
        viewer = await join(before)
        asleep = await viewer.new()
        await viewer.prompt(asleep, {"say": "hi"})
    async with (
        DatabaseProxy(address) as proxy,
        node_of(address, tmp_path, "one") as one,
        node_of(proxy.address, tmp_path, "two", lease_s=4) as two,
    ):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        kept, deleted = await here.new(), await here.new()
        for session in (kept, deleted):
            await here.prompt(session, {"say": "hi"})
        await listed(there, {asleep, kept, deleted})
        await there.load(kept)
        await here.announced(kept, lambda news: news["viewers"] == 2)
        here.forget()
        proxy.cut()
        await here.announced(kept, lambda news: news["viewers"] == 1)  # the other node is regarded as dead
        await here.ask("session/delete", {"sessionId": deleted})
        for session, title in ((kept, "Ours"), (asleep, "Quiet")):
            await here.ask("session/set_title", {"sessionId": session, "title": title})
        new = await here.new()
        await here.prompt(new, {"say": "hi"})
        proxy.mend()
        await there.announced(deleted, lambda news: news.get("deleted"))
        for session, title in ((kept, "Ours"), (asleep, "Quiet")):
            await there.announced(session, lambda news, title=title: news["title"] == title)
        await listed(there, {asleep, kept, new})


async def test_settings_and_viewers_do_not_update_the_session_time(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        here = await join(one, extensions=True)
        old, new = await here.new(), await here.new()
        await here.prompt(old, {"say": "first"})
        before = one.sessions.by_id[old].describe()["updatedAt"]
        other = await join(one, extensions=True)
        await other.load(old)
        options = {"sessionUpdate": "config_option_update", "configOptions": []}
        notify = {"notify": ["session/update", {"sessionId": old, "update": options}]}
        await here.prompt(new, notify, {"say": "second"})
        await here.until(lambda message: message.get("params", {}).get("update") == options)
        assert one.sessions.by_id[old].describe()["updatedAt"] == before
    async with node_of(address, tmp_path, "two") as two:
        [listed] = await walk(await join(two, extensions=True))
        assert [each["sessionId"] for each in listed] == [new, old]
        assert listed[1]["updatedAt"] == before


def label_of(served, session):
    label = served.sessions.labels.of(session)
    return label.title, label.archived


async def test_concurrent_changes_of_a_label_at_two_nodes_are_both_kept(address, tmp_path):
    async with node_of(address, tmp_path, "before") as before:
        viewer = await join(before)
        sessions = [await viewer.new() for _ in range(10)]
        for session in sessions:
            await viewer.prompt(session, {"say": "hi"})
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        for session in sessions:
            answers = await asyncio.gather(
                here.ask("session/set_title", {"sessionId": session, "title": "Ours"}),
                there.ask("session/archive", {"sessionId": session}),
            )
            assert all("result" in answer for answer in answers)
        for session in sessions:
            for served in (one, two):
                await until(lambda served=served, session=session: label_of(served, session) == ("Ours", True))


async def test_node_that_missed_messages_catches_up(address, tmp_path, caplog):
    async with (
        node_of(address, tmp_path, "one", lease_s=4) as one,
        node_of(address, tmp_path, "two", lease_s=LONG_LEASE_S) as two,
    ):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        known = await here.new()
        await here.prompt(known, {"say": "hi"})
        await listed(there, {known})
        execute(address, FULL)
        await here.ask("session/set_title", {"sessionId": known, "title": "Ours"})
        new = await here.new()
        await here.prompt(new, {"say": "hi"})
        await until(lambda: one.sessions.labels.of(known).title == "Ours")
        await until(lambda: "are dropped" in caplog.text)
        execute(address, "DROP TRIGGER full_disk ON dragoman_message")
        await listed(there, {known, new})
        await there.announced(known, lambda news: news["title"] == "Ours")


async def test_opening_a_session_keeps_its_time_in_the_database(address, tmp_path):
    async with node_of(address, tmp_path, "two") as two:
        async with node_of(address, tmp_path, "one") as one:
            here = await join(one)
            session = await here.new()
            await here.prompt(session, {"say": "hi"})
        execute(address, "UPDATE dragoman_session SET updated = 1000")
        there = await join(two)
        await there.load(session)
        await there.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        (found,) = (await walk(there))[0]
        assert found["updatedAt"].startswith("1970-01-01T00:00:01")


class GatedLabels(LabelTable):
    """A table that returns labels once the gate is open, and records the requests."""

    def __init__(self, database):
        super().__init__(database, "journal:one")
        self.asked = []
        self.gate = asyncio.Event()

    async def get(self, session_ids):
        self.asked.append(set(session_ids))
        await self.gate.wait()
        return await super().get(session_ids)


async def test_labels_changed_by_another_node_are_read_in_one_query(address):
    database = Database(address)
    table = GatedLabels(database)
    labels = DatabaseLabels(table, lambda _: None)
    names = [f"session{number}" for number in range(100)]
    for name in names:
        await table.replace(name, None, b'{"archived":true}')
    reading = [asyncio.create_task(labels.read_unread()) for name in names[:1] if labels.record_unread(name)]
    await until(lambda: table.asked)
    reading += [asyncio.create_task(labels.read_unread()) for name in names[1:] if labels.record_unread(name)]
    table.gate.set()
    await asyncio.gather(*reading)
    assert table.asked == [{names[0]}, set(names[1:])]
    assert all(labels.of(name).archived for name in names)
    await database.close()
