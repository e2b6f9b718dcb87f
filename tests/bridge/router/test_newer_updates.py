"""Compactions, subagents, messages between sessions and logins, for viewers with and without support."""

import json
import time

import pytest

from tests.bridge.viewers import OPTIONS, GatedDisk, agent, join, serve
from tests.waiting import until

TAKING = {"session": {"notices": {}, "compaction": {}}, "subagents": {}}


def compaction(**fields):
    return {"update": {"sessionUpdate": "compaction_update", "compactionId": "c", **fields}}


def text(words):
    return {"type": "text", "text": words}


def updates_of(viewer, *kinds):
    return [update for update in viewer.updates() if update["sessionUpdate"] in kinds]


def thoughts(viewer):
    return [update["content"]["text"].strip() for update in updates_of(viewer, "agent_thought_chunk")]


async def wait_for_text(viewer, words, session=None):
    """Read until the agent has sent this text."""
    while words not in viewer.said(session):
        await viewer.more()


def initialized_with(log):
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return next(line["params"]["clientCapabilities"] for line in lines if line["method"] == "initialize")


async def test_compaction_is_a_thought_for_viewers_that_lack_support(tmp_path):
    chunk = {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text("So far: all well.")}
    steps = [compaction(status="in_progress"), {"update": chunk}, compaction(status="completed"), {"say": "on"}]
    async with serve(tmp_path) as served:
        one, plain = await join(served, **TAKING), await join(served)
        session = await one.new()
        await plain.load(session)
        await one.prompt(session, *steps)
        for again in (False, True):
            if again:
                one, plain = await join(served, **TAKING), await join(served, extensions=True)
                await one.load(session)
                await plain.load(session)
            await wait_for_text(plain, "on")
            sent = [step["update"] for step in steps if "update" in step]
            assert updates_of(one, "compaction_update", "compaction_summary_chunk") == sent
            assert updates_of(plain, "compaction_update", "compaction_summary_chunk") == []
            assert thoughts(plain) == [
                "Summarizing the conversation: in_progress",
                "So far: all well.",
                "Summarizing the conversation: completed",
            ]
            assert plain.said()[-1] == one.said()[-1] == "on"
        marked = [message["params"] for message in plain.seen if message.get("method") == "session/update"]
        cursors = [params["_meta"]["dragoman"]["cursor"] for params in marked]
        assert len(cursors) == len(set(cursors))


async def test_bridge_offers_compactions_and_a_viewers_subagent_support(tmp_path):
    for offered in ({}, {"subagents": {}}):
        log = tmp_path / f"log{len(offered)}"
        async with serve(tmp_path / f"home{len(offered)}", agent(log=str(log))) as served:
            await join(served, **offered)
        offered_to_agent = initialized_with(log)
        assert offered_to_agent["session"] == {"notices": {}, "compaction": {}}
        assert ("subagents" in offered_to_agent) == bool(offered)


# ── subagents ───────────────────────────────────────────────────────────────────────────────────────


def announce(session, **fields):
    return {"update": {"sessionUpdate": "subagent_update", "sessionId": session, **fields}}


def child_says(session, words):
    update = {"sessionUpdate": "agent_message_chunk", "content": text(words)}
    return {"notify": ["session/update", {"sessionId": session, "update": update}]}


async def ids_of(viewer):
    listed = (await viewer.ask("session/list", {"archived": "include"}))["result"]["sessions"]
    return [each["sessionId"] for each in listed]


async def test_viewers_that_support_subagents_follow_them(tmp_path):
    async with serve(tmp_path) as served:
        one, plain = await join(served, **TAKING), await join(served)
        session = await one.new()
        await plain.load(session)
        await one.prompt(session, announce("kid", title="Reader"), child_says("kid", "from the child"), {"say": "done"})
        assert one.said("kid") == ["from the child"]
        assert one.said(session) == ["done"]
        await wait_for_text(plain, "done")
        assert plain.said("kid") == []
        assert thoughts(plain) == ["Subagent Reader: there"]
        assert await ids_of(one) == [session]


async def test_later_viewer_follows_subagents_and_loads_their_history(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, **TAKING)
        session = await one.new()
        await one.prompt(session, announce("kid"), child_says("kid", "first"))
        late = await join(served, extensions=True, **TAKING)
        await late.load(session)
        assert (await late.announced("kid", lambda entry: entry["viewers"] == 2))["parent"] == session
        await one.prompt(session, child_says("kid", "second"))
        await wait_for_text(late, "second", "kid")
        assert late.said("kid") == ["second"]
        late.forget()
        await late.load("kid")
        assert late.said("kid") == ["first", "second"]


async def test_question_of_a_subagent_goes_to_its_parents_viewers(tmp_path):
    async with serve(tmp_path) as served:
        one, plain = await join(served, **TAKING), await join(served)
        session = await one.new()
        await plain.load(session)
        call = {"toolCallId": "x", "title": "Look"}
        asking = {
            "request_bare": ["session/request_permission", {"sessionId": "kid", "toolCall": call, "options": OPTIONS}]
        }
        prompt = one.start_prompt(session, announce("kid"), asking)
        asked = await one.asked()
        assert asked["params"]["sessionId"] == "kid"
        one.choose(asked)
        await one.answer(prompt)
        assert '"yes"' in one.said(session)[-1]
        assert "request_permission" not in str(plain.seen)


async def test_leaving_a_session_leaves_its_subagents(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served, extensions=True, **TAKING), await join(served, **TAKING)
        session = await one.new()
        await two.load(session)
        await two.prompt(session, announce("kid"))
        await one.announced("kid", lambda entry: entry["viewers"] == 2)
        one.send({"method": "_dragoman/leave", "params": {"sessionId": session}})
        await one.announced("kid", lambda entry: entry["viewers"] == 1)


async def test_subagent_survives_a_restart_and_is_deleted_with_its_parent(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, **TAKING)
        session = await one.new()
        await one.prompt(session, announce("kid", title="Reader"), child_says("kid", "first"))
    log = tmp_path / "log"
    async with serve(tmp_path, agent(capabilities={"loadSession": True}, log=str(log))) as served:
        one = await join(served, extensions=True, **TAKING)
        [kid] = (await one.ask("_dragoman/sessions", {"ids": ["kid", "none"]}))["result"]["sessions"]
        assert (kid["parent"], kid["title"]) == (session, "Reader")
        assert await ids_of(one) == [session]
        await one.load("kid")
        assert one.said("kid") == ["first"]
        assert "session/load" not in log.read_text()  # the agent opens it with its parent
        await one.ask("session/delete", {"sessionId": session})
        assert (await one.ask("session/status", {"sessionId": "kid"}))["error"]["code"] == -32002


def open_sessions(served):
    return sum(figure.value for figure in served.measure() if figure.name == "dragoman_sessions")


async def test_subagent_of_an_open_session_survives_the_agent(tmp_path):
    (tmp_path / "store").mkdir()
    storing = agent(capabilities={"loadSession": True}, store=str(tmp_path / "store"))
    async with serve(tmp_path / "home", storing, backoff_min_s=0.01) as served:
        one, two = await join(served), await join(served)
        session, _ = await one.new(), await two.new()
        await one.prompt(session, announce("kid"), child_says("kid", "first"), {"say": "done"})
        await two.viewer.close()
        assert "error" in await one.prompt(session, {"exit": 3})
        await until(lambda: served.host.is_ready)
        while open_sessions(served) > 2:  # the session of the viewer that left
            await served.sweep(time.monotonic())
            await one.ask("_echo")
        assert "error" in await one.prompt(session, announce("kid"), child_says("kid", "second"), {"exit": 3})
        await one.load("kid")
        assert one.said("kid") == ["first", "second"]


async def test_subagent_that_a_viewer_opens_meanwhile_has_one_journal(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, **TAKING)
        await one.prompt(await one.new(), announce("kid"), child_says("kid", "first"))
    disk = GatedDisk()
    async with serve(tmp_path, disk=disk) as served:
        one, two = await join(served, **TAKING), await join(served)
        session = await one.new()
        disk.shut()
        loading = two.request("session/load", {"sessionId": "kid", "cwd": "/work", "mcpServers": []})
        await until(lambda: disk.waited)
        await one.prompt(session, announce("kid"), child_says("kid", "second"), {"say": "done"})
        disk.open_gate()
        await two.answer(loading)
        await one.prompt(session, child_says("kid", "third"), {"say": "done"})
        await wait_for_text(two, "third", "kid")
        assert two.said("kid") == ["first", "second", "third"]
    async with serve(tmp_path) as served:
        one = await join(served)
        await one.load("kid")
        assert one.said("kid") == ["first", "second", "third"]


async def test_messages_between_sessions_are_forwarded_and_stored(tmp_path):
    message = {"sessionUpdate": "session_message", "messageId": "m", "senderSessionId": "kid", "content": [text("Hi")]}
    chunk = {"sessionUpdate": "session_message_chunk", "messageId": "m", "content": text(" there")}
    async with serve(tmp_path) as served:
        one = await join(served, **TAKING)
        session = await one.new()
        await one.prompt(session, {"update": message}, {"update": chunk})
        again, plain = await join(served, **TAKING), await join(served)
        await again.load(session)
        await plain.load(session)
        assert updates_of(one, *("session_message", "session_message_chunk")) == [message, chunk]
        assert updates_of(again, *("session_message", "session_message_chunk")) == [message, chunk]
        assert [update["content"]["text"] for update in updates_of(plain, "agent_thought_chunk")] == [
            "Hi\n\n",
            " there\n\n",
        ]


# ── the login ───────────────────────────────────────────────────────────────────────────────────────


async def test_login_status_is_requested_and_forwarded(tmp_path):
    state = {"state": "authenticated", "accounts": [{"label": "A plan", "email": "me@example.org"}]}
    results = {"auth/status": {"result": state}}
    async with serve(tmp_path, agent(results=results)) as served:
        one, two = await join(served), await join(served)
        reader = await join(served, read_only=True)
        assert (await one.ask("auth/status"))["result"] == state
        await one.prompt(await one.new(), {"notify": ["auth/status_update", {"state": "unauthenticated"}]})
        for viewer in (one, two):
            await viewer.until(lambda message: message.get("method") == "auth/status_update")
        await reader.ask("_dragoman/sessions")
        assert "auth/status_update" not in str(reader.seen)
        assert "error" in await reader.ask("auth/status")


@pytest.mark.parametrize("kind", ["tool_call", "tool_call_update"])
async def test_tool_name_is_forwarded(tmp_path, kind):
    call = {"sessionUpdate": kind, "toolCallId": "x", "title": "Read it", "name": "read_file"}
    async with serve(tmp_path) as served:
        one = await join(served)
        await one.prompt(await one.new(), {"update": call})
        assert updates_of(one, kind) == [call]
