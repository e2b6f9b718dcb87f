"""Lists of sessions on a node: pages of the same size, however many sessions there are."""

import psycopg

from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import join

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
    """Give all pages of a list."""
    pages, cursor = [], {}
    while True:
        result = (await viewer.ask("session/list", {**params, **cursor}))["result"]
        pages.append(result["sessions"])
        if "nextCursor" not in result:
            return pages
        cursor = {"cursor": result["nextCursor"]}


async def test_many_sessions_are_listed_in_pages_each_once_and_the_latest_first(address, tmp_path):
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
