"""Agents of version 1 may repeat the prompt as a user message. Every viewer still sees it once."""

import pytest

from tests.bridge.versions.pairs import both_on, texts
from tests.bridge.viewers import join, serve, steps_text

LINK = {"type": "resource_link", "uri": "file:///work/a.py", "name": "a.py"}
IMAGE = {"type": "image", "data": "eHh4", "mimeType": "image/png"}
STEPS = ({"echo": 1}, {"say": "Done"})


def said_by_user(viewer):
    return [
        each["content"].get("text", each["content"]["type"])
        for each in viewer.updates()
        if each["sessionUpdate"] == "user_message_chunk"
    ]


async def until_said(viewer, text):
    await viewer.until(lambda _: text in "".join(viewer.said()))


def send_prompt(viewer, session, *blocks, steps):
    prompt = [{"type": "text", "text": steps_text(*steps)}, *blocks]
    return viewer.request("session/prompt", {"sessionId": session, "prompt": prompt})


@pytest.mark.parametrize("message_id", [None, "m1"])
@pytest.mark.parametrize("pieces", [1, 4])
async def test_repeated_prompt_is_shown_once(tmp_path, pieces, message_id):
    steps = {"echo": pieces, "id": message_id}, {"say": "Done"}
    async with serve(tmp_path) as served:
        one, two, page = await join(served), await join(served), await join(served, extensions=True)
        session = await one.new()
        await two.load(session)
        await page.load(session)
        await one.prompt(session, *steps)
        for each in (two, page):
            await until_said(each, "Done")
            assert said_by_user(each) == [steps_text(*steps)]
        assert said_by_user(one) == []
        late = await join(served)
        await late.load(session)
        assert (said_by_user(late), late.said()) == ([steps_text(*steps)], ["Done"])


@pytest.mark.parametrize("block", [LINK, IMAGE])
@pytest.mark.parametrize("shape", ["blocks", "joined"])
async def test_repeated_attachment_is_shown_once(tmp_path, shape, block):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        steps = {"echo": shape}, {"say": "Done"}
        await one.answer(send_prompt(one, session, block, steps=steps))
        await until_said(two, "Done")
        assert said_by_user(two) == [steps_text(*steps), block["type"]]


async def test_repeated_prompt_is_shown_once_in_version_2(tmp_path):
    async with serve(tmp_path) as served:
        session, one, two = await both_on(served)
        await one.prompt(session, {"echo": 3}, {"say": "Done"})
        await until_said(two, "Done")
        assert texts(two, "user_message_chunk") == [steps_text({"echo": 3}, {"say": "Done"})]
        await two.turn(session, {"echo": 2, "id": "m2"}, {"say": "Again"})
        assert len(texts(two, "user_message_chunk")) == 2
        await until_said(one, "Again")
        assert said_by_user(one) == [steps_text({"echo": 2, "id": "m2"}, {"say": "Again"})]


async def test_other_message_of_the_user_is_shown(tmp_path):
    other = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "typed elsewhere"}}
    async with serve(tmp_path) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"echo": 1}, {"update": other}, {"say": "Done"})
        assert said_by_user(one) == ["typed elsewhere"]


async def test_same_prompt_again_is_shown_again(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        for _ in range(2):
            await one.prompt(session, *STEPS)
        await until_said(two, "DoneDone")
        assert said_by_user(two) == 2 * [steps_text(*STEPS)]


async def test_repeated_message_into_a_turn_is_shown_once(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        turn = one.start_prompt(session, {"say": "Working"}, {"steered": "injected"}, {"say": "Done"})
        await until_said(one, "Working")
        await one.ask("_session/steering", {"sessionId": session, "prompt": [{"type": "text", "text": "Not so"}]})
        await one.answer(turn)
        await until_said(two, "Done")
        assert said_by_user(two)[1:] == ["Not so"]
