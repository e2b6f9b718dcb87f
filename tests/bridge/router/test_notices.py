"""Notices of an agent reach the connected viewers, and are not part of the conversation."""

import pytest

from tests.bridge.viewers import LOADING, agent, join, serve

SHOWING = {"notices": {}}


def notice(title, **more):
    return {"update": {"sessionUpdate": "notice", "severity": "info", "title": title, **more}}


def kinds(one):
    return [update["sessionUpdate"] for update in one.updates() if update["sessionUpdate"] != "user_message_chunk"]


async def test_notice_keeps_its_place_between_chunks(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, session=SHOWING)
        await one.prompt(await one.new(), {"say": "a"}, notice("busy", description="why"), {"say": "b"})
        assert kinds(one) == ["agent_message_chunk", "notice", "agent_message_chunk"]
        [shown] = [update for update in one.updates() if update["sessionUpdate"] == "notice"]
        assert shown == notice("busy", description="why")["update"]


async def test_viewer_without_notice_support_gets_a_thought(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        await one.prompt(await one.new(), notice("busy", description="why"), {"say": "b"})
        thought, answer = [update for update in one.updates() if "chunk" in update["sessionUpdate"]][-2:]
        assert thought["sessionUpdate"] == "agent_thought_chunk"
        assert thought["content"] == {"type": "text", "text": "busy\n\n    why\n\n"}
        assert answer["content"]["text"] == "b"


@pytest.mark.parametrize("extensions", [True, False])
async def test_notice_is_not_in_the_history(tmp_path, extensions):
    async with serve(tmp_path) as served:
        one = await join(served, session=SHOWING)
        session = await one.new()
        await one.prompt(session, {"say": "a"}, notice("busy"), {"say": "b"})
        for capabilities in ({"session": SHOWING}, {}):
            other = await join(served, extensions=extensions, **capabilities)
            await other.load(session)
            assert other.said() == ["a", "b"]
            assert not {"notice", "agent_thought_chunk"} & set(kinds(other))


async def test_notice_during_a_load_reaches_connected_viewers(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store))
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one = await join(served, extensions=True, session=SHOWING)
        session = await one.new()
        await one.prompt(session, {"say": "a"}, notice("while it runs"))
        await one.prompt(session, {"exit": 1})
        one.forget()
        await one.until(lambda message: message.get("params", {}).get("update", {}).get("title") == "while it runs")
        other = await join(served, session=SHOWING)
        await other.load(session)
        assert "notice" not in kinds(other)


async def test_stalled_viewer_gets_no_notices_and_stays_connected(tmp_path):
    async with serve(tmp_path, window_bytes=4096) as served:
        slow, quick = await join(served, session=SHOWING), await join(served, session=SHOWING)
        session = await slow.new()
        await quick.load(session)
        for _ in range(20):
            await quick.prompt(session, notice("x" * 500), {"say": "on"})
        await slow.prompt(session, {"say": "end"})
        assert slow.said() == ["on"] * 20 + ["end"]
        assert kinds(slow).count("notice") < 20


async def test_text_that_looks_like_a_notice_is_kept(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": 'a "notice" of mine'})
        other = await join(served)
        await other.load(session)
        assert other.said() == ['a "notice" of mine']
