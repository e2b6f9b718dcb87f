"""Search finds words in the journals of all sessions, open or stored, with their places."""

from tests.bridge.viewers import RESUMING, agent, join, serve


async def search(viewer, query, number=1):
    """Search, and return the answer and the hits."""
    before = len(viewer.params_of("_dragoman/found"))
    answer = await viewer.ask("_dragoman/search", {"query": query, "searchId": number})
    found = viewer.params_of("_dragoman/found")[before:]
    return answer, [hit for news in found if news["searchId"] == number for hit in news["hits"]]


async def test_search_finds_words_across_chunks_in_open_and_stored_sessions(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store))
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        stored = await one.new()
        await one.prompt(stored, {"say": "a yellow Submar"}, {"say": "ine, <b>deep</b> below"})
    async with serve(tmp_path, spec) as served:
        one = await join(served, extensions=True)
        opened = await one.new()
        await one.prompt(opened, {"say": "no boat at all"})
        answer, [hit] = await search(one, "yellow submarine")
        assert answer["result"] == {"searched": 2, "complete": True}
        assert (hit["sessionId"], hit["role"], hit["match"]) == (stored, "agent", "yellow Submarine")
        assert (hit["before"], hit["after"]) == ("a ", ", <b>deep</b> below")
        _, hits = await search(one, "BOAT", 2)
        assert [(hit["sessionId"], hit["role"]) for hit in hits] == [(opened, "user"), (opened, "agent")]
        # All words must be in one message, and ids are not searched.
        assert (await search(one, "yellow boat", 3))[1] == []
        assert (await search(one, stored, 4))[1] == []
        for query in ("x", "", "y" * 201, "a b c d e f g h i j k"):
            assert (await search(one, query, 5))[0]["error"]["code"] == -32602


async def test_hits_per_session_are_limited_and_a_new_search_ends_the_old(tmp_path):
    async with serve(tmp_path, agent()) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        for _ in range(5):
            await one.prompt(session, {"say": "needle"})
        first = one.request("_dragoman/search", {"query": "needle", "searchId": 1})
        _, hits = await search(one, "needle", 2)
        assert len(hits) == 3
        assert [hit["seq"] for hit in hits] == sorted({hit["seq"] for hit in hits})
        assert (await one.answer(first))["result"]["complete"] is False


async def test_reader_of_one_session_searches_only_that_session(tmp_path):
    async with serve(tmp_path, agent()) as served:
        owner = await join(served)
        mine, other = await owner.new(), await owner.new()
        await owner.prompt(mine, {"say": "a needle here"})
        await owner.prompt(other, {"say": "a needle there"})
        reader = await join(served, only=mine, extensions=True)
        answer, hits = await search(reader, "needle")
        assert answer["result"] == {"searched": 1, "complete": True}
        assert {hit["sessionId"] for hit in hits} == {mine}


async def test_deleted_session_and_lost_index_do_not_change_results(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store))
    async with serve(tmp_path, spec) as served:
        one = await join(served)
        kept, deleted = await one.new(), await one.new()
        await one.prompt(kept, {"say": "a needle"})
        await one.prompt(deleted, {"say": "another needle"})
        assert {hit["sessionId"] for hit in (await search(one, "needle"))[1]} == {kept, deleted}
        await one.ask("session/delete", {"sessionId": deleted})
        assert {hit["sessionId"] for hit in (await search(one, "needle", 2))[1]} == {kept}
    [database] = tmp_path.rglob("search.db")
    database.write_bytes(b"damaged " * 1000)
    async with serve(tmp_path, spec) as served:
        one = await join(served, extensions=True)
        for number in (1, 2):
            answer, hits = await search(one, "needle", number)
            assert answer["result"] == {"searched": 1, "complete": True}
            assert {hit["sessionId"] for hit in hits} == {kept}
        assert database.read_bytes().startswith(b"SQLite format 3")


async def test_unusable_index_is_logged_once_and_journals_are_read(tmp_path, caplog):
    (tmp_path / "bridge" / "one" / "search.db").mkdir(parents=True)
    async with serve(tmp_path, agent()) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "a needle"})
        for number in (1, 2):
            answer, hits = await search(one, "needle", number)
            assert answer["result"] == {"searched": 1, "complete": True}
            assert {hit["sessionId"] for hit in hits} == {session}
    assert len([each for each in caplog.messages if "search index" in each]) == 1
