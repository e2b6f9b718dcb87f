"""The lists of every store: a part of `StoreContract`."""

import pytest

from dragoman.errors import BadCursor
from dragoman.store import PAGE_SESSIONS
from tests.store.making import new_header, read_all, turn_end, write_session


async def list_ids(store, cwd=None):
    ids, cursor = [], None
    while True:
        page = await store.page(cwd, cursor)
        ids += [session.id for session in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            return ids


class ListContract:
    async def test_a_list_says_what_is_known_of_a_session(self, store, another_store):
        header = new_header("/work/a", additional_directories=["/more"])
        await write_session(store, header, title="Häppy", messages=6)
        for lister in (store, another_store()):
            (session,) = (await lister.page()).sessions
            assert (session.id, session.cwd, session.additional_directories) == (header.id, "/work/a", ["/more"])
            assert (session.title, session.message_count) == ("Häppy", 6)
            assert session.updated_at.startswith("2")
            assert session.updated_at.endswith("Z")

    async def test_a_list_without_sessions_is_empty(self, store):
        page = await store.page()
        assert (page.sessions, page.next_cursor) == ([], None)

    async def test_lists_begin_with_the_session_that_was_written_last(self, store):
        headers = [await write_session(store) for _ in range(3)]
        await self.touch(store, headers[0])
        assert await list_ids(store) == [headers[0].id, headers[2].id, headers[1].id]

    async def test_a_list_of_one_directory_has_its_sessions_however_it_is_written(self, store):
        mine = await write_session(store, new_header("/work/a"))
        await write_session(store, new_header("/work/a/b"))
        await write_session(store, new_header("/work-a"))
        assert await list_ids(store, "/work/a") == [mine.id]
        assert await list_ids(store, "/work/./b/../a/") == [mine.id]

    async def test_directories_of_one_encoding_do_not_mix(self, store):
        one = await write_session(store, new_header("/work/a-b"))
        two = await write_session(store, new_header("/work/a/b"))
        assert await list_ids(store, "/work/a-b") == [one.id]
        assert await list_ids(store, "/work/a/b") == [two.id]

    async def test_pages_follow_each_other_without_a_gap_while_sessions_come_and_go(self, store):
        headers = [await write_session(store) for _ in range(PAGE_SESSIONS + 5)]
        expected = [header.id for header in reversed(headers)]
        first = await store.page()
        assert [session.id for session in first.sessions] == expected[:PAGE_SESSIONS]
        await write_session(store)
        await store.delete(expected[0])
        await store.delete(expected[PAGE_SESSIONS])
        second = await store.page(None, first.next_cursor)
        assert [session.id for session in second.sessions] == expected[PAGE_SESSIONS + 1 :]
        assert second.next_cursor is None

    async def test_a_page_that_is_exactly_full_is_the_last_one(self, store):
        for _ in range(PAGE_SESSIONS):
            await write_session(store)
        page = await store.page()
        assert len(page.sessions) == PAGE_SESSIONS
        assert page.next_cursor is None

    @pytest.mark.parametrize("cursor", ["", "x", "MS4x", "1", "🐎", "A" * 10_000, "MS4xLjIuMw=="])
    async def test_a_cursor_that_is_none_is_refused(self, store, cursor):
        with pytest.raises(BadCursor, match="without a cursor"):
            await store.page(None, cursor)

    async def test_a_sync_shows_in_lists_while_the_session_lives(self, store, another_store):
        log = await store.create(new_header())
        log.record("turn", turn_end())
        log.title, log.message_count = "Live", 1
        await log.sync()
        (session,) = (await another_store().page()).sessions
        assert (session.title, session.message_count) == ("Live", 1)
        await log.close()

    @staticmethod
    async def touch(store, header):
        before = (await store.page()).sessions[0].updated_at
        while (await store.page()).sessions[0].updated_at <= before:
            log = await store.open(header.id)
            await read_all(log)
            log.record("turn", turn_end())
            await log.close()
