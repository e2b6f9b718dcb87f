"""Version 2 tool calls with much content. A version 1 client does not receive all of it repeatedly."""

import base64
import itertools
import tracemalloc

import msgspec
import pytest

from dragoman.protocol.translate.session_for_v1 import SessionForV1Client, SupportedUpdates
from dragoman.protocol.translate.tool_call import MAX_SHOWN_BYTES

ENDED = {"sessionUpdate": "tool_call_update", "status": "completed"}


@pytest.fixture
def session():
    return SessionForV1Client("s", SupportedUpdates())


def content(text):
    return {"type": "content", "content": {"type": "text", "text": text}}


def chunk(call_id, text):
    return {"sessionUpdate": "tool_call_content_chunk", "toolCallId": call_id, "content": content(text)}


def sent_texts(messages):
    """Return the text of a call as the client has it after each update with content."""
    updates = [each["params"]["update"] for each in messages]
    return ["".join(item["content"]["text"] for item in each["content"]) for each in updates if "content" in each]


def test_content_in_many_chunks_is_sent_few_times(session):
    pieces = [f"{number:010}" for number in range(5_000)]
    sent = list(itertools.chain.from_iterable(session.translate_update(chunk("c", each)) for each in pieces))
    sent += session.translate_update({**ENDED, "toolCallId": "c"})
    assert sent_texts(sent)[0] == pieces[0]
    assert sent_texts(sent)[-1] == "".join(pieces)
    assert len(msgspec.json.encode(sent)) < 20 * len(msgspec.json.encode([content(each) for each in pieces]))


@pytest.mark.parametrize("end", [{**ENDED, "toolCallId": "c"}, {"sessionUpdate": "state_update", "state": "idle"}])
def test_all_content_is_sent_at_the_end(session, end):
    for text in ("one ", "two ", "three"):
        session.translate_update(chunk("c", text))
    assert sent_texts(session.translate_update(end)) == ["one two three"]
    assert session.translate_update({"sessionUpdate": "state_update", "state": "idle"}) == []


def end_call(session, number):
    call = {"sessionUpdate": "tool_call_update", "toolCallId": f"c{number}"}
    shown = {"type": "terminal", "terminalId": f"t{number}"}
    data = base64.b64encode(b"x" * MAX_SHOWN_BYTES).decode()
    session.translate_update({**call, "title": "Run", "content": [shown, content("y" * 10_000)]})
    session.translate_update({"sessionUpdate": "terminal_output_chunk", "terminalId": f"t{number}", "data": data})
    session.translate_update(
        {"sessionUpdate": "terminal_update", "terminalId": f"t{number}", "exitStatus": {"exitCode": 0}}
    )
    session.translate_update({**ENDED, "toolCallId": f"c{number}"})


def test_ended_calls_are_dropped_from_memory(session):
    tracemalloc.start()
    try:
        for number in range(100):
            end_call(session, number)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100, 300):
            end_call(session, number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200 * MAX_SHOWN_BYTES // 10


def test_late_output_of_an_ended_call_is_shown(session):
    for number in range(3):
        end_call(session, number)
    data = base64.b64encode(b"late").decode()
    late = session.translate_update({"sessionUpdate": "terminal_update", "terminalId": "t1", "output": {"data": data}})
    assert "late" in sent_texts(late)[0]


def test_old_messages_are_dropped_and_recent_ones_can_be_replaced(session):
    tracemalloc.start()
    try:
        for number in range(1_000):
            say(session, number)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1_000, 3_000):
            say(session, number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000
    whole = {"sessionUpdate": "agent_message", "messageId": "m2999", "content": [{"type": "text", "text": "Hello"}]}
    [rest] = session.translate_update(whole)
    assert rest["params"]["update"]["content"]["text"] == "lo"


def say(session, number):
    block = {"type": "text", "text": "Hel"}
    session.translate_update({"sessionUpdate": "agent_message_chunk", "messageId": f"m{number}", "content": block})
