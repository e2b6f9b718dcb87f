"""Notices and withdrawn messages do not belong to the answer."""

import json

from dragoman.client import connect_sync
from dragoman.client.events import MessageWithdrawn, NoticeReceived, TextChunk, TurnFinished
from tests.client.driving import END, agent_of, done, read, session_with
from tests.commands import raw

WITHDRAWING = {"loadSession": True, "_meta": {"dragoman/void": True}}
NOTICE = {"update": {"sessionUpdate": "notice", "severity": "warning", "title": "It is slow.", "description": "Very."}}


def said(text, message_id=None, **more):
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}
    return {"update": chunk if message_id is None else {**chunk, "messageId": message_id}}


def void(message_id):
    return said("", message_id, _meta={"dragoman/void": True})


async def test_notice_is_an_event_but_not_part_of_the_text():
    async with session_with(raw({}, [said("a"), NOTICE, said("b"), END])) as session:
        events = await read(session.prompt("go"))
    [noticed] = [event for event in events if isinstance(event, NoticeReceived)]
    assert (noticed.severity, noticed.title, noticed.description) == ("warning", "It is slow.", "Very.")
    assert done(events).text == "ab"


async def test_client_advertises_notices(tmp_path):
    record = tmp_path / "record"
    async with agent_of(raw(), record=record):
        pass
    [begin] = [line for line in record.read_text().splitlines() if '"initialize"' in line and '"params"' in line]
    assert '"notices":{}' in json.dumps(json.loads(begin), separators=(",", ":"))


async def test_withdrawn_message_is_not_part_of_the_text():
    turn = [said("Half of ", "1"), said("it", "1"), void("1"), said("All of ", "2"), said("it", "2"), END]
    async with session_with(raw({}, turn, turn)) as session:
        events = await read(session.prompt("go"))
        assert await session.ask("go") == "All of it"
    assert [type(event) for event in events] == [
        TextChunk,
        TextChunk,
        MessageWithdrawn,
        TextChunk,
        TextChunk,
        TurnFinished,
    ]
    assert events[2].message_id == "1"
    assert done(events).text == "All of it"


async def test_only_the_named_message_is_withdrawn():
    turn = [said("One. ", "1"), said("Half", "2"), void("2"), void("unknown"), said("Two.", "3"), END]
    async with session_with(raw({}, turn)) as session:
        assert await session.ask("go") == "One. Two."


async def test_withdrawal_without_an_id_removes_the_last_message():
    turn = [said("One. ", "1"), said("Half"), void(None), said("Two."), END]
    async with session_with(raw({}, turn)) as session:
        assert await session.ask("go") == "One. Two."


async def test_foreign_meta_withdraws_nothing():
    async with session_with(raw({}, [said("a", "1", _meta={"mine": 1}), said("b", "1", _meta={}), END])) as session:
        assert await session.ask("go") == "ab"


async def test_loaded_history_omits_withdrawn_messages():
    replay = [said("Half", "1"), void("1"), said("All of it", "2"), {"result": {}}]
    async with agent_of(raw({"session/load": [replay]}, capabilities=WITHDRAWING)) as agent:
        session = await agent.load_session("s", "/")
    assert [event.text for event in session.history] == ["All of it"]


async def test_withdraws_reflects_the_agents_capability():
    async with agent_of(raw(capabilities=WITHDRAWING)) as agent:
        assert agent.withdraws
    async with agent_of(raw(capabilities={})) as agent:
        assert not agent.withdraws


def test_synchronous_client_has_notices_and_withdrawals():
    with connect_sync(raw({}, [NOTICE, said("Half", "1"), void("1"), said("All", "2"), END])) as agent:
        events = list(agent.new_session("/").prompt("go"))
    assert [type(event) for event in events] == [NoticeReceived, TextChunk, MessageWithdrawn, TextChunk, TurnFinished]
