"""The behaviour of every store.

A test file of an implementation subclasses `StoreContract` and gives it `another_store`, a fixture that
makes stores on one and the same place: two of them stand for two processes. What it is called with, the store is.
"""

import asyncio
import json
import uuid
from contextlib import aclosing

import pytest

from dragoman.errors import SessionBusy, SessionUnknown
from dragoman.store import KINDS
from tests.store.list_contract import ListContract, list_ids
from tests.store.making import fork, new_header, read_all, reread, turn_end, update, write_session


async def give_up(call):
    """Cancel a call when it has just begun."""
    task = asyncio.create_task(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


async def flushed(log):
    """Write what was appended, and wait where writing takes a while."""
    writing = log.flush()
    if writing is not None:
        await writing


async def until_free(call):
    """Call again and again while somebody else still lets go."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await call()
            except SessionBusy:
                await asyncio.sleep(0)


async def sessions_in_lines(store, session_id):
    """Give the session ids that the lines of a log have, as a client is sent them."""
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

    async def test_what_was_appended_is_read_back_in_order_and_to_the_byte(self, store):
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

    async def test_records_have_the_time_they_were_written(self, store):
        log = await store.create(new_header())
        log.append(update(b"{}"))
        times = [block.time async for blocks in log.blocks() for block in blocks]
        assert all(1_700_000_000_000 < time < 10_000_000_000_000 for time in times)
        await log.close()

    async def test_a_session_goes_on_where_it_was_left(self, store, another_store):
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

    async def test_a_live_session_is_read_as_far_as_it_was_appended_when_the_reading_began(self, store):
        log = await store.create(new_header())
        log.append(update(b"1"))
        reading = log.blocks()
        log.append(update(b"2"))
        log.flush()
        assert [block.lines async for blocks in reading for block in blocks] == [update(b"1")]
        assert [data for _, _, data in await read_all(log)] == [b"1", b"2"]
        await log.close()

    async def test_reading_can_be_given_up_and_begun_anew(self, store):
        header = await write_session(store)
        log = await store.open(header.id)
        async with aclosing(log.blocks()) as reading:
            await anext(reading)
        assert len(await read_all(log)) == 2
        log.append(update(b"{}"))
        await log.close()

    async def test_nothing_can_be_appended_before_the_log_was_read_to_its_end(self, store):
        header = await write_session(store)
        log = await store.open(header.id)
        with pytest.raises(RuntimeError, match="read to its end"):
            log.append(update(b"{}"))
        await read_all(log)
        log.append(update(b"{}"))
        await log.close()

    async def test_a_closed_log_takes_nothing_and_closing_it_again_does_nothing(self, store):
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
    async def test_what_is_no_line_of_the_wire_is_refused(self, store, lines):
        log = await store.create(new_header())
        with pytest.raises(ValueError, match="each line of the wire must begin with"):
            log.append(lines)
        await log.close()
        assert (await reread(store, log.header.id))[0] == []

    async def test_an_unknown_kind_is_refused(self, store):
        log = await store.create(new_header())
        with pytest.raises(ValueError, match="only one of client, config, model, permission"):
            log.record("mcp", b"{}")
        await log.close()

    async def test_the_header_is_kept_whole(self, store):
        header = new_header(additional_directories=["/a", "/b c"], forked_from=str(uuid.uuid4()))
        await write_session(store, header)
        assert await store.find(header.id) == header
        log = await store.open(header.id)
        assert log.header == header
        await log.close()

    async def test_title_and_message_count_come_from_the_last_turn_and_title_records(self, store):
        header = await write_session(store, title="First", messages=4)
        _, log = await reread(store, header.id)
        assert (log.title, log.message_count) == ("First", 4)
        log = await store.open(header.id)
        await read_all(log)
        log.record("turn", b'{"event":"start"}')
        log.record("title", b'{"title":"Second"}')
        await log.close()
        _, log = await reread(store, header.id)
        assert (log.title, log.message_count) == ("Second", 4)

    @pytest.mark.parametrize("with_turn", [False, True])
    async def test_archiving_comes_from_the_last_client_record_or_the_end_of_a_turn_after_it(self, store, with_turn):
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
            assert log.is_archived == archived

    async def test_lists_leave_out_archived_sessions_unless_they_are_asked_for(self, store, another_store):
        kept, put_away = await write_session(store), await write_session(store)
        log = await store.open(put_away.id)
        await read_all(log)
        log.record("client", b'{"archived":true}')
        log.is_archived = True
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

    async def test_an_unknown_session_is_unknown_to_every_call(self, store):
        for unknown in (str(uuid.uuid4()), "", "../../etc/passwd", "*", str(uuid.uuid4()).upper()):
            with pytest.raises(SessionUnknown):
                await store.open(unknown)
            with pytest.raises(SessionUnknown):
                await fork(store, unknown, new_header())
            assert await store.find(unknown) is None
            assert await store.delete(unknown) is False

    async def test_what_is_no_session_id_cannot_be_created(self, store):
        header = new_header()
        for wrong in ("x", "../x", header.id.upper()):
            with pytest.raises(ValueError, match="UUID"):
                await store.create(type(header)(wrong, "/work", [], header.created))

    async def test_a_session_has_one_holder(self, store, another_store):
        header = new_header()
        log = await store.create(header)
        for other in (store, another_store()):
            with pytest.raises(SessionBusy) as caught:
                await other.open(header.id)
            assert caught.value.pid is not None
            assert str(caught.value.pid) in str(caught.value)
        await log.close()
        await (await another_store().open(header.id)).close()

    async def test_a_new_session_is_there_before_anything_was_written_to_it(self, store, another_store):
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

    async def test_a_session_that_was_never_prompted_is_in_no_list(self, store, another_store):
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

    async def test_a_session_is_in_lists_from_its_first_turn_on(self, store, another_store):
        lister = another_store()
        log = await store.create(new_header(), b"{}")
        assert await list_ids(lister) == []
        log.record("turn", b'{"event":"start"}')
        log.record("title", b'{"title":"Begun"}')
        await flushed(log)  # as far as a process gets that dies in its first turn
        for other in (lister, another_store(), store):
            assert [session.title for session in (await other.page()).sessions] == ["Begun"]
        await log.close()
        assert await list_ids(lister) == [log.header.id]

    async def test_sessions_that_were_never_prompted_are_deleted_in_the_end(self, store, another_store):
        forgotten, held, prompted = new_header(), new_header(), await write_session(store)
        await (await store.create(forgotten, b"{}")).close()
        log = await store.create(held, b"{}")
        sweeper = another_store(unprompted_kept_s=0)
        for _ in range(2):  # once it has answered the second, it is done with what it did behind the first
            assert await list_ids(sweeper) == [prompted.id]
        assert await store.find(forgotten.id) is None
        assert await sweeper.find(held.id) == held
        log.append(update(b"{}"))
        await log.close()
        assert len((await reread(store, held.id))[0]) == 2

    async def test_a_held_session_can_be_found_listed_and_forked_but_not_deleted(self, store, another_store):
        header = new_header()
        log = await store.create(header)
        log.record("turn", turn_end())
        await flushed(log)
        other = another_store()
        assert await other.find(header.id) == header
        assert await list_ids(other) == [header.id]
        await fork(other, header.id, new_header())
        with pytest.raises(SessionBusy):
            await other.delete(header.id)
        await log.close()
        assert await other.delete(header.id) is True

    async def test_opening_that_is_given_up_holds_nothing(self, store):
        header = await write_session(store)
        for _ in range(20):
            await give_up(store.open(header.id))
        log = await until_free(lambda: store.open(header.id))
        await log.close()

    async def test_creating_that_is_given_up_can_be_done_again(self, store):
        header = new_header()
        for _ in range(20):
            await give_up(store.create(header))
            log = await until_free(lambda: store.create(header))
            log.append(update(b"1"))
            await log.close()
            assert len((await reread(store, header.id))[0]) == 1
            await store.delete(header.id)

    async def test_a_fork_has_the_same_records_and_its_own_future(self, store):
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

    async def test_a_fork_may_end_before_any_line(self, store):
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

    async def test_a_fork_of_a_live_session_has_all_that_was_appended_so_far(self, store):
        header = new_header()
        log = await store.create(header)
        log.append(update(b"1"))
        forked = new_header(forked_from=header.id)
        await fork(store, header.id, forked)
        log.append(update(b"2"))
        assert (await reread(store, forked.id))[0] == [(1, "update", b"1")]
        assert len(await read_all(log)) == 2
        await log.close()

    async def test_a_fork_cannot_take_the_place_of_a_session(self, store):
        one, two = await write_session(store, payloads=[b"1"]), await write_session(store, payloads=[b"2"])
        with pytest.raises(Exception, match="never used"):
            await fork(store, one.id, two)
        assert (await reread(store, two.id))[0][0] == (1, "update", b"2")

    async def test_a_deleted_session_is_gone_from_everywhere(self, store, another_store):
        header = await write_session(store)
        assert await store.delete(header.id) is True
        assert await store.delete(header.id) is False
        assert await store.find(header.id) is None
        assert await list_ids(store) == []
        assert await list_ids(another_store()) == []
        with pytest.raises(SessionUnknown):
            await store.open(header.id)

    async def test_many_sessions_are_written_at_the_same_time(self, store):
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
