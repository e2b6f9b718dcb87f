"""Compactions, subagents and messages between sessions, as the client receives them."""

from dragoman.client.events import (
    CompactionChanged,
    SessionMessageChanged,
    SubagentChanged,
    SubagentEvent,
    TextChunk,
    ToolCallChanged,
)
from tests.client.driving import END, agent_of, chunk
from tests.commands import dragoman, raw


def text(words):
    return {"type": "text", "text": words}


def compaction(status, **fields):
    return {"update": {"sessionUpdate": "compaction_update", "compactionId": "c", "status": status, **fields}}


def summary_chunk(words):
    return {"update": {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text(words)}}


def subagent(**fields):
    return {"update": {"sessionUpdate": "subagent_update", "sessionId": "child", **fields}}


def of_child(update):
    return {"update": update, "sessionId": "child"}


def said(words):
    return {"sessionUpdate": "agent_message_chunk", "content": text(words)}


async def events_of(*replies):
    async with agent_of(raw({}, [*replies, END])) as agent:
        session = await agent.new_session("/")
        return session, [event async for event in session.prompt("go")]


async def test_client_advertises_notices_compactions_and_subagents(tmp_path):
    async with agent_of(raw({}, [END]), record=tmp_path / "record") as agent:
        await agent.new_session("/")
    assert b'"compaction":{}' in (tmp_path / "record").read_bytes()
    assert b'"subagents":{}' in (tmp_path / "record").read_bytes()


async def test_final_summary_replaces_its_chunks():
    session, events = await events_of(
        compaction("in_progress"),
        summary_chunk("In "),
        summary_chunk("shrt."),
        compaction("completed", summary=[text("In short.")]),
    )
    changes = [event for event in events if isinstance(event, CompactionChanged)]
    assert [(change.is_new, change.compaction.status, change.compaction.text) for change in changes] == [
        (True, "in_progress", ""),
        (False, "in_progress", "In "),
        (False, "in_progress", "In shrt."),
        (False, "completed", "In short."),
    ]
    assert session.entities.compactions["c"].text == "In short."


async def test_missing_field_is_kept_and_null_clears_it():
    _, events = await events_of(
        compaction("failed", error="too long"), compaction("failed"), compaction("completed", error=None)
    )
    errors = [event.compaction.error for event in events if isinstance(event, CompactionChanged)]
    assert errors == ["too long", "too long", None]
    session, events = await events_of(
        subagent(
            title="Reader", description="Reads", cwd="/a", additionalDirectories=["/b"], state={"state": "running"}
        ),
        subagent(description=None, state={"state": "idle", "stopReason": "end_turn"}),
        subagent(additionalDirectories=None),
    )
    first, second, third = [event.subagent for event in events if isinstance(event, SubagentChanged)]
    assert (first.title, first.description, first.is_idle) == ("Reader", "Reads", False)
    assert (second.title, second.description, second.is_idle, second.cwd) == ("Reader", None, True, "/a")
    assert (second.additional_directories, third.additional_directories) == (("/b",), None)
    assert session.entities.subagents["child"] == third


async def test_subagent_events_are_not_part_of_the_answer():
    call = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Read", "kind": "read", "status": "completed"}
    session, events = await events_of(
        {"update": {**call, "title": "Own"}},
        subagent(title="Reader"),
        of_child(said("I read.")),
        of_child(call),
        chunk("Done."),
    )
    assert [event.event.text for event in events if _is_child(event, TextChunk)] == ["I read."]
    assert [event.event.call.title for event in events if _is_child(event, ToolCallChanged)] == ["Read"]
    assert {event.subagent.title for event in events if isinstance(event, SubagentEvent)} == {"Reader"}
    assert events[-1].text == "Done."
    assert session.tool_calls["1"].title == "Own"


async def test_subagent_may_have_a_subagent():
    grandchild = {"sessionUpdate": "subagent_update", "sessionId": "grandchild", "title": "Helper"}
    _, events = await events_of(
        subagent(title="Reader"), of_child(grandchild), {"update": said("Deep."), "sessionId": "grandchild"}
    )
    [deep] = [event for event in events if _is_child(event, TextChunk)]
    assert (deep.subagent.title, deep.event.text) == ("Helper", "Deep.")


async def test_updates_of_an_unannounced_session_are_dropped():
    _, events = await events_of(of_child(said("Who?")), chunk("Done."))
    assert [type(event).__name__ for event in events] == ["TextChunk", "TurnFinished"]


async def test_message_between_sessions_is_assembled():
    message = {"sessionUpdate": "session_message", "messageId": "m"}
    session, events = await events_of(
        subagent(title="Reader"),
        {"update": {**message, "recipientSessionId": "child", "content": [text("Read ")]}},
        {"update": {"sessionUpdate": "session_message_chunk", "messageId": "m", "content": text("this.")}},
        {"update": {**message, "senderSessionId": "s"}},
    )
    assert [event.message.text for event in events if isinstance(event, SessionMessageChanged)][-1] == "Read this."
    passed = session.entities.messages["m"]
    assert (passed.sender_session_id, passed.recipient_session_id) == ("s", "child")


def _is_child(event, kind):
    return isinstance(event, SubagentEvent) and isinstance(event.event, kind)


def test_run_and_chat_show_entities_next_to_the_answer():
    replies = [
        compaction("in_progress"),
        compaction("completed", summary=[text("In short.")]),
        subagent(title="Reader\x1b[2J", description="Reads"),
        of_child({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look", "kind": "read"}),
        subagent(state={"state": "idle"}),
        chunk("Done."),
        END,
    ]
    asides = [
        "[summarizing the conversation]",
        "[the conversation was summarized]",
        r"[subagent Reader\x1b[2J: Reads]",
        r"[Reader\x1b[2J: Look]",
        r"[subagent Reader\x1b[2J is done]",
    ]
    done = dragoman("run", "go", "--", *raw({}, replies))
    assert (done.stdout, done.returncode) == ("Done.\n", 0)
    assert done.stderr.splitlines() == asides
    piped = dragoman("chat", "--", *raw({}, replies), input="go\n")
    assert piped.stdout == "Done.\n"
    assert piped.stderr.splitlines() == asides
