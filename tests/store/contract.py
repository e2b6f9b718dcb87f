"""The tests that every store must pass.

The tests of an implementation subclass `StoreContract` and define the fixture `another_store`. It makes stores with the
given options at the same place. Two stores represent two processes.
"""

import asyncio
import json
import uuid
from contextlib import aclosing

import pytest

from dragoman.errors import SessionBusyError, SessionNotFoundError
from dragoman.store import KINDS
from tests.store.list_contract import ListContract, list_ids
from tests.store.making import fork, new_header, read_all, reread, turn_end, update, write_session


async def cancel_early(call):
    """Cancel a call immediately after it started."""
    task = asyncio.create_task(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


async def flushed(log):
    """Write the appended lines, and wait until they are written."""
    writing = log.flush()
    if writing is not None:
        await writing


async def until_free(call):
    """Repeat a call until the session is no longer busy."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await call()
            except SessionBusyError:
                await asyncio.sleep(0)


async def sessions_in_lines(store, session_id):
    """Return the session ids in the lines that a client receives from a log."""
    log = await store.open(session_id)
    sent = b"".join([run async for blocks in log.blocks() for block in blocks for run in block.updates()])
    await log.close()
    return {json.loads(line)["params"]["sessionId"] for line in sent.split(b"\n")[:-1]}


class StoreContract(ListContract):
    @pytest.fixture
    def another_store(self):
        raise NotImplementedError

    @pytest.fixture
    async def store(self, another_store):
        return another_store()

    async def test_records_are_read_back_unchanged_and_in_order(self, store):
        header = new_header()
        log = await store.create(header)
        payloads = [b'{ "a" : 1.0 }', '{"text":"žluťoučký 🐎"}'.encode(), b'{"crc":"89abcdef"}', b"null", b'"\\n"']
        for payload in payloads:
            log.append(update(payload))
            log.flush()
        await log.close()
        records, _ = await reread(store, header.id)
        assert records == [(seq, "update", payload) for seq, payload in enumerate(payloads, 1)]

    async def test_every_kind_of_record_is_kept(self, store):
        header = new_header()
        log = await store.create(header)
        for kind in sorted(KINDS):
            log.record(kind, b"{}")
        await log.close()
        records, _ = await reread(store, header.id)
        assert [kind for _, kind, _ in records] == sorted(KINDS)

    async def test_blocks_have_the_time_of_their_write(self, store):
        log = await store.create(new_header())
        log.append(update(b"{}"))
        times = [block.time async for blocks in log.blocks() for block in blocks]
        assert all(1_700_000_000_000 < time < 10_000_000_000_000 for time in times)
        await log.close()

    async def test_a_reopened_session_continues_after_its_last_record(self, store, another_store):
        header = await write_session(store)
        log = await another_store().open(header.id)
        before = await read_all(log)
        log.append(update(b'{"n":2}'))
        await log.close()
        records, _ = await reread(store, header.id)
        assert records == [*before, (len(before) + 1, "update", b'{"n":2}')]

    async def test_many_records_come_in_batches_without_a_gap(self, store):
        header = new_header()
        log = await store.create(header)
        payload = b'{"text":"%b"}' % (b"x" * 200)
        for number in range(10_000):
            log.append(update(payload))
            if number % 7 == 0:
                log.flush()
        await log.close()
        log = await store.open(header.id)
        batches = [[line[0] for block in blocks for line in block.numbered_lines()] async for blocks in log.blocks()]
        assert len(batches) > 1
        assert [seq for batch in batches for seq in batch] == list(range(1, 10_001))
        await log.close()

    async def test_one_record_can_be_many_megabytes(self, store):
        header = new_header()
        log = await store.create(header)
        big = b'{"data":"%b"}' % (b"A" * 5_000_000)
        for payload in (b"1", big, b"2", big):
            log.append(update(payload))
        await log.close()
        records, _ = await reread(store, header.id)
        assert [data for _, _, data in records] == [b"1", big, b"2", big]

    async def test_reading_a_live_session_stops_where_it_ended_at_the_start(self, store):
        log = await store.create(new_header())
        log.append(update(b"1"))
        reading = log.blocks()
        log.append(update(b"2"))
        log.flush()
        assert [block.lines async for blocks in reading for block in blocks] == [update(b"1")]
        assert [data for _, _, data in await read_all(log)] == [b"1", b"2"]
        await log.close()

    async def test_reading_can_be_aborted_and_started_again(self, store):
        header = await write_session(store)
        log = await store.open(header.id)
        async with aclosing(log.blocks()) as reading:
            await anext(reading)
        assert len(await read_all(log)) == 2
        log.append(update(b"{}"))
        await log.close()

    async def test_appending_requires_reading_the_log_first(self, store):
        header = await write_session(store)
        log = await store.open(header.id)
        with pytest.raises(RuntimeError, match="read to its end"):
            log.append(update(b"{}"))
        await read_all(log)
        log.append(update(b"{}"))
        await log.close()

    async def test_a_closed_log_refuses_lines_and_can_be_closed_again(self, store):
        log = await store.create(new_header())
        await log.close()
        await log.close()
        with pytest.raises(RuntimeError, match="is closed"):
            log.append(update(b"{}"))

    async def test_a_payload_with_a_newline_is_refused(self, store):
        log = await store.create(new_header())
        with pytest.raises(ValueError, match="newline"):
            log.append(update(b"{\n}"))
        with pytest.raises(ValueError, match="newline"):
            log.record("turn", b"{\n}")
        await log.close()

    @pytest.mark.parametrize(
        "lines",
        [
            b"",
            b"\n",
            b"{}\n",
            update(b"1")[:-1],
            update(b"1") + b"\n",
            update(b"1") + b'{"seal":{}}\n',
            b'{"turn":{}}\n',
        ],
    )
    async def test_malformed_wire_lines_are_refused(self, store, lines):
        log = await store.create(new_header())
        with pytest.raises(ValueError, match="each line of the wire must start with"):
            log.append(lines)
        await log.close()
        assert (await reread(store, log.header.id))[0] == []

    async def test_an_unknown_kind_is_refused(self, store):
        log = await store.create(new_header())
        with pytest.raises(ValueError, match="only one of client, config, model, permission"):
            log.record("mcp", b"{}")
        await log.close()

    async def test_the_whole_header_is_stored(self, store):
        header = new_header(additional_directories=["/a", "/b c"], forked_from=str(uuid.uuid4()))
        await write_session(store, header)
        assert await store.find(header.id) == header
        log = await store.open(header.id)
        assert log.header == header
        await log.close()

    async def test_title_and_message_count_come_from_the_last_records(self, store):
        header = await write_session(store, title="First", messages=4)
        _, log = await reread(store, header.id)
        assert (log.facts.title, log.facts.message_count) == ("First", 4)
        log = await store.open(header.id)
        await read_all(log)
        log.record("turn", b'{"event":"start"}')
        log.record("title", b'"Second"')
        await log.close()
        _, log = await reread(store, header.id)
        assert (log.facts.title, log.facts.message_count) == ("Second", 4)

    @pytest.mark.parametrize("with_turn", [False, True])
    async def test_archiving_comes_from_the_last_client_record_or_turn_end(self, store, with_turn):
        header = await write_session(store)
        for archived in (True, False):
            log = await store.open(header.id)
            await read_all(log)
            log.record("client", json.dumps({"archived": archived}).encode())
            if with_turn:
                log.record("turn", b'{"event":"start"}')
                log.record("turn", json.dumps({"event": "end", "archived": archived}).encode())
            await log.close()
            _, log = await reread(store, header.id)
            assert log.facts.is_archived == archived

    async def test_lists_omit_archived_sessions_by_default(self, store, another_store):
        kept, put_away = await write_session(store), await write_session(store)
        log = await store.open(put_away.id)
        await read_all(log)
        log.record("client", b'{"archived":true}')
        log.facts.is_archived = True
        await log.close()
        for each in (store, another_store()):
            listed = {
                archived: [
                    (session.id, session.is_archived) for session in (await each.page(archived=archived)).sessions
                ]
                for archived in ("exclude", "include", "only")
            }
            assert listed["exclude"] == [(kept.id, False)]
            assert listed["only"] == [(put_away.id, True)]
            assert listed["include"] == [(put_away.id, True), (kept.id, False)]

    async def test_every_call_rejects_an_unknown_session(self, store):
        for unknown in (str(uuid.uuid4()), "", "../../etc/passwd", "*", str(uuid.uuid4()).upper()):
            with pytest.raises(SessionNotFoundError):
                await store.open(unknown)
            with pytest.raises(SessionNotFoundError):
                await fork(store, unknown, new_header())
            assert await store.find(unknown) is None
            assert await store.delete(unknown) is False

    async def test_a_session_id_must_be_a_uuid(self, store):
        header = new_header()
        for wrong in ("x", "../x", header.id.upper()):
            with pytest.raises(ValueError, match="UUID"):
                await store.create(type(header)(wrong, "/work", [], header.created))

    async def test_a_session_has_one_holder(self, store, another_store):
        header = new_header()
        log = await store.create(header)
        for other in (store, another_store()):
            with pytest.raises(SessionBusyError) as caught:
                await other.open(header.id)
            assert caught.value.pid is not None
            assert str(caught.value.pid) in str(caught.value)
        await log.close()
        await (await another_store().open(header.id)).close()

    async def test_a_new_session_exists_before_its_first_write(self, store, another_store):
        header = new_header()
        log = await store.create(header, b'{"mode":"plan"}')
        assert await read_all(log) == [(1, "config", b'{"mode":"plan"}')]
        assert await another_store().find(header.id) == header
        await log.close()
        log = await another_store().open(header.id)
        assert await read_all(log) == [(1, "config", b'{"mode":"plan"}')]
        log.append(update(b"{}"))
        await log.close()
        assert (await reread(store, header.id))[0] == [(1, "config", b'{"mode":"plan"}'), (2, "update", b"{}")]

    async def test_unprompted_sessions_are_not_listed(self, store, another_store):
        empty, configured = new_header(), new_header()
        await (await store.create(empty)).close()
        log = await store.create(configured, b"{}")
        log.record("config", b"{}")
        log.append(update(b'{"sessionUpdate":"current_mode_update"}'))
        await log.sync()
        forked = new_header(forked_from=configured.id)
        await fork(store, configured.id, forked)
        for lister in (store, another_store()):
            assert await list_ids(lister) == []
            assert await lister.find(empty.id) == empty
            assert await lister.find(forked.id) == forked
        await log.close()
        assert await list_ids(another_store()) == []

    async def test_a_session_is_listed_from_its_first_turn(self, store, another_store):
        lister = another_store()
        log = await store.create(new_header(), b"{}")
        assert await list_ids(lister) == []
        log.record("turn", b'{"event":"start"}')
        log.record("title", b'"Begun"')
        await flushed(log)  # a process that dies in its first turn has only flushed
        for other in (lister, another_store(), store):
            assert [session.title for session in (await other.page()).sessions] == ["Begun"]
        await log.close()
        assert await list_ids(lister) == [log.header.id]

    async def test_old_unprompted_sessions_are_deleted(self, store, another_store):
        forgotten, held, prompted = new_header(), new_header(), await write_session(store)
        await (await store.create(forgotten, b"{}")).close()
        log = await store.create(held, b"{}")
        sweeper = another_store(unprompted_kept_s=0)
        for _ in range(2):  # the second list waits for the sweep that the first list has started
            assert await list_ids(sweeper) == [prompted.id]
        assert await store.find(forgotten.id) is None
        assert await sweeper.find(held.id) == held
        log.append(update(b"{}"))
        await log.close()
        assert len((await reread(store, held.id))[0]) == 2

    async def test_a_held_session_can_be_read_but_not_deleted(self, store, another_store):
        header = new_header()
        log = await store.create(header)
        log.record("turn", turn_end())
        await flushed(log)
        other = another_store()
        assert await other.find(header.id) == header
        assert await list_ids(other) == [header.id]
        await fork(other, header.id, new_header())
        with pytest.raises(SessionBusyError):
            await other.delete(header.id)
        await log.close()
        assert await other.delete(header.id) is True

    async def test_cancelled_opening_holds_nothing(self, store):
        header = await write_session(store)
        for _ in range(20):
            await cancel_early(store.open(header.id))
        log = await until_free(lambda: store.open(header.id))
        await log.close()

    async def test_cancelled_creation_can_be_repeated(self, store):
        header = new_header()
        for _ in range(20):
            await cancel_early(store.create(header))
            log = await until_free(lambda: store.create(header))
            log.append(update(b"1"))
            await log.close()
            assert len((await reread(store, header.id))[0]) == 1
            await store.delete(header.id)

    async def test_a_fork_has_the_same_records_and_is_independent(self, store):
        header = await write_session(store, payloads=[b"1", b"2"])
        forked = new_header("/elsewhere", forked_from=header.id)
        await fork(store, header.id, forked)
        log = await store.open(forked.id)
        before = await read_all(log)
        assert log.header == forked
        assert log.damage is None
        log.append(update(b'"fork"', forked.id))
        await log.close()
        assert await sessions_in_lines(store, forked.id) == {forked.id}
        original, _ = await reread(store, header.id)
        assert original == before
        assert await sessions_in_lines(store, header.id) == {header.id}
        assert (await reread(store, forked.id))[0] == [*before, (len(before) + 1, "update", b'"fork"')]

    async def test_a_fork_can_end_before_any_line(self, store):
        header = new_header()
        log = await store.create(header)
        for payload in (b"1", b"2", b"3"):
            log.append(update(payload, header.id))
            log.record("model", payload)
            if payload != b"2":
                await log.sync()
        whole = await read_all(log)
        for before in range(1, len(whole) + 2):
            forked = new_header(forked_from=header.id)
            await fork(store, header.id, forked, before)
            again = await store.open(forked.id)
            assert await read_all(again) == whole[: before - 1]
            assert again.damage is None
            again.append(update(b"4", forked.id))
            await again.close()
            assert (await reread(store, forked.id))[0][-1] == (before, "update", b"4")
        await log.close()

    async def test_a_fork_of_a_live_session_has_all_appended_lines(self, store):
        header = new_header()
        log = await store.create(header)
        log.append(update(b"1"))
        forked = new_header(forked_from=header.id)
        await fork(store, header.id, forked)
        log.append(update(b"2"))
        assert (await reread(store, forked.id))[0] == [(1, "update", b"1")]
        assert len(await read_all(log)) == 2
        await log.close()

    async def test_a_fork_cannot_replace_an_existing_session(self, store):
        one, two = await write_session(store, payloads=[b"1"]), await write_session(store, payloads=[b"2"])
        with pytest.raises(Exception, match="never used"):
            await fork(store, one.id, two)
        assert (await reread(store, two.id))[0][0] == (1, "update", b"2")

    async def test_a_deleted_session_is_gone_in_every_process(self, store, another_store):
        header = await write_session(store)
        assert await store.delete(header.id) is True
        assert await store.delete(header.id) is False
        assert await store.find(header.id) is None
        assert await list_ids(store) == []
        assert await list_ids(another_store()) == []
        with pytest.raises(SessionNotFoundError):
            await store.open(header.id)

    async def test_many_sessions_can_be_written_concurrently(self, store):
        async def write(number):
            payloads = [b"%d" % (number * 100 + step) for step in range(20)]
            header = await write_session(store, payloads=payloads)
            records, _ = await reread(store, header.id)
            assert [data for _, kind, data in records if kind == "update"] == payloads

        async with asyncio.TaskGroup() as tasks:
            for number in range(30):
                tasks.create_task(write(number))
        assert len(await list_ids(store)) == 30

    async def test_closing_the_store_closes_its_logs(self, store, another_store):
        header = new_header()
        log = await store.create(header)
        log.append(update(b"1"))
        await store.close()
        assert (await reread(another_store(), header.id))[0] == [(1, "update", b"1")]
