"""The lists of every store: a part of `StoreContract`."""

import pytest

from dragoman.errors import InvalidCursorError
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
    async def test_a_list_shows_the_facts_of_a_session(self, store, another_store):
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

    async def test_lists_start_with_the_last_written_session(self, store):
        headers = [await write_session(store) for _ in range(3)]
        for header in headers:
            await self.touch(store, header)
        assert await list_ids(store) == [header.id for header in reversed(headers)]

    async def test_a_directory_is_listed_in_any_spelling(self, store):
        mine = await write_session(store, new_header("/work/a"))
        await write_session(store, new_header("/work/a/b"))
        await write_session(store, new_header("/work-a"))
        assert await list_ids(store, "/work/a") == [mine.id]
        assert await list_ids(store, "/work/./b/../a/") == [mine.id]

    async def test_directories_with_equal_encoding_do_not_mix(self, store):
        one = await write_session(store, new_header("/work/a-b"))
        two = await write_session(store, new_header("/work/a/b"))
        assert await list_ids(store, "/work/a-b") == [one.id]
        assert await list_ids(store, "/work/a/b") == [two.id]

    async def test_pages_have_no_gaps_while_sessions_come_and_go(self, store):
        for _ in range(PAGE_SESSIONS + 5):
            await write_session(store)
        # The order of sessions that were written in the same millisecond is the store's own.
        expected = await list_ids(store)
        assert len(set(expected)) == PAGE_SESSIONS + 5
        first = await store.page()
        assert [session.id for session in first.sessions] == expected[:PAGE_SESSIONS]
        await write_session(store)
        await store.delete(expected[0])
        await store.delete(expected[PAGE_SESSIONS])
        second = await store.page(None, first.next_cursor)
        assert [session.id for session in second.sessions] == expected[PAGE_SESSIONS + 1 :]
        assert second.next_cursor is None

    async def test_an_exactly_full_page_can_be_the_last(self, store):
        for _ in range(PAGE_SESSIONS):
            await write_session(store)
        page = await store.page()
        assert len(page.sessions) == PAGE_SESSIONS
        assert page.next_cursor is None

    @pytest.mark.parametrize("cursor", ["", "x", "MS4x", "1", "🐎", "A" * 10_000, "MS4xLjIuMw=="])
    async def test_malformed_cursors_are_refused(self, store, cursor):
        with pytest.raises(InvalidCursorError, match="without a cursor"):
            await store.page(None, cursor)

    async def test_lists_show_a_sync_of_an_open_session(self, store, another_store):
        log = await store.create(new_header())
        log.record("turn", turn_end())
        log.facts.title, log.facts.message_count = "Live", 1
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
