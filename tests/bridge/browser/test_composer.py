"""Writing messages: mentioned files, and messages that wait for a turn, a connection or a retry."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, agent_messages, card, composer, say, session_path, shoot, user_messages

TOO_WIDE = "() => document.documentElement.scrollWidth > innerWidth"


def waiting(page):
    """Return the locator of the queued messages."""
    return page.get_by_role("region", name="Queued messages")


async def write(page, text, key="Enter"):
    await composer(page).fill(text)
    await composer(page).press(key)


# A new bridge, because another one may still cache the list of a directory that was empty.
@pytest.mark.basic
@pytest.mark.usefixtures("own_bridge")
async def test_files_on_disk_can_be_mentioned(page, agent):
    work = Path(await page.evaluate("dragoman.config.cwd"))
    for path in ("kept/deep/tokenizer.py", "kept/.hidden.py", "kept/made.log"):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text("x")
    (work / "kept" / ".gitignore").write_text("*.log\n")
    (work / "kept" / "passwd").symlink_to("/etc/passwd")
    await composer(page).fill("See @")
    options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await expect(options.filter(has_text="kept/")).to_have_text(["tokenizer.pykept/deep/"])
    await composer(page).press_sequentially("tokn")
    await expect(options.first).to_have_text("tokenizer.pykept/deep/")
    await shoot(page, "mention")
    await composer(page).press("Enter")
    await expect(composer(page)).to_have_value("See @kept/deep/tokenizer.py ")
    await composer(page).press("Enter")
    (await agent.next_turn()).end()
    link = {"type": "resource_link", "uri": f"file://{work}/kept/deep/tokenizer.py", "name": "tokenizer.py"}
    assert agent.params_of("session/prompt")["prompt"][1:] == [link]


@pytest.mark.basic
async def test_queued_messages_can_be_edited_and_are_sent_in_order(page, agent):
    await say(page, "Begin")
    turn = await agent.next_turn()
    asking = agent.start_asking(turn)
    await expect(card(page)).to_be_visible()
    for text in ("first", "second", "third"):
        await write(page, text)
    rows = waiting(page).get_by_role("listitem")
    await expect(rows).to_have_text(["first", "second", "third"])
    await page.get_by_role("button", name="Remove: second").click()
    await expect(rows).to_have_text(["first", "third"])
    await page.get_by_role("button", name="Edit: first").click()
    field = page.get_by_role("textbox", name="Queued message")
    await field.fill("first, better")
    await shoot(page, "queue")
    assert await barriers(page) == []
    await field.press("Enter")
    await expect(rows).to_have_text(["first, better", "third"])
    other = await page.visitor.come(await session_path(page))
    await expect(waiting(other).get_by_role("listitem")).to_have_text(["first, better", "third"])
    await page.reload()
    await expect(rows).to_have_text(["first, better", "third"])
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.end()
    second = await agent.next_turn()
    assert second.text == "first, better"
    await expect(rows).to_have_text(["third"])
    second.end("cancelled")
    await expect(waiting(page)).to_contain_text("Not sent, because the last turn failed")
    await waiting(other).get_by_role("button", name="Continue").click()
    third = await agent.next_turn()
    assert third.text == "third"
    third.end()
    for each in (page, other):
        await expect(user_messages(each)).to_have_text(["Begin", "first, better", "third"])
        await expect(waiting(each)).to_be_hidden()


@pytest.mark.usefixtures("own_bridge")
async def test_steerable_agent_gets_messages_during_its_turn(visit, agent):
    agent.initialized["_meta"] = {"steering": {"supported": True}}
    agent.results["_session/steering"] = {"outcome": "injected"}
    page = await visit()
    await say(page, "Begin")
    turn = await agent.next_turn()
    turn.say("Working.")
    await expect(agent_messages(page)).to_have_text("Working.")
    await write(page, "Not so")
    await expect(user_messages(page)).to_have_text(["Begin", "Not so"])
    assert agent.params_of("_session/steering")["prompt"] == [{"type": "text", "text": "Not so"}]
    await write(page, "And then", "Control+Enter")
    await expect(waiting(page).get_by_role("listitem")).to_have_text(["And then"])
    agent.results["_session/steering"] = {"outcome": "failed"}
    await write(page, "Too late")
    await expect(waiting(page).get_by_role("listitem")).to_have_text(["And then", "Too late"])
    turn.end()
    for text in ("And then", "Too late"):
        later = await agent.next_turn()
        assert later.text == text
        later.say("Well.")
        later.end()
    await page.reload()
    await expect(user_messages(page)).to_have_text(["Begin", "Not so", "And then", "Too late"])


async def test_message_sent_while_connecting_arrives_once(page, agent, proxy):
    page.visitor.faults.allow("ERR_|WebSocket")
    await say(page, "Begin")
    (await agent.next_turn()).end()
    await expect(user_messages(page)).to_have_text("Begin")
    proxy.cut()
    await expect(page.locator(".topbar-state")).to_contain_text("Not connected")
    for text in ("one", "two", "three"):
        await write(page, text)
    await expect(waiting(page)).to_contain_text("Will be sent when connected")
    await page.get_by_role("button", name="Edit: two").click()
    await expect(composer(page)).to_have_value("two")
    await composer(page).fill("")
    proxy.mend()
    for text in ("one", "three"):
        turn = await agent.next_turn()
        assert turn.text == text
        turn.say(f"Said {text}.")
        turn.end()
    await expect(agent_messages(page).last).to_have_text("Said three.")
    await expect(user_messages(page)).to_have_text(["Begin", "one", "three"])
    assert (
        len({message["params"]["sessionId"] for message in agent.received if message.get("method") == "session/prompt"})
        == 1
    )


async def test_turn_shows_usage_and_message_can_be_retried_or_edited(page, agent):
    await say(page, "Do it")
    turn = await agent.next_turn()
    turn.update("plan", entries=[{"content": "Think", "priority": "high", "status": "in_progress"}])
    plan = page.locator(".plan")
    await plan.locator("summary").click()
    await expect(plan.get_by_role("list")).to_be_visible()
    turn.update("plan", entries=[{"content": "Think", "priority": "high", "status": "completed"}])
    await expect(plan.get_by_role("list")).to_be_hidden()
    turn.update("usage_update", used=10, size=100, cost={"amount": 0.25, "currency": "USD"})
    usage = {"totalTokens": 1200, "inputTokens": 1000, "outputTokens": 200}
    agent.send({"id": turn.id, "result": {"stopReason": "end_turn", "usage": usage}})
    told = page.locator(".message-turn")
    for _ in range(2):
        await expect(told).to_contain_text("s · 1.2K tokens · $0.25")
        await page.reload()
    await page.get_by_role("button", name="Retry").click()
    again = await agent.next_turn()
    assert again.text == "Do it"
    await expect(plan).to_be_hidden()
    again.refuse("Out of breath")
    await page.get_by_role("button", name="Try again").click()
    usage = {"quota": {"token_count": {"input_tokens": 1300, "output_tokens": 200}}}  # in gemini's form
    agent.send({"id": (await agent.next_turn()).id, "result": {"stopReason": "end_turn", "_meta": usage}})
    await expect(page.locator(".message-turn").last).to_contain_text("1.5K tokens")
    await page.get_by_role("button", name="Edit", exact=True).first.click()
    await expect(composer(page)).to_have_value("Do it")
    await expect(page.locator(".resend")).to_contain_text("This agent cannot fork sessions")
    await write(page, "Do it well")
    better = await agent.next_turn()
    assert better.text == "Do it well"
    better.end()


@pytest.mark.usefixtures("own_bridge")
async def test_edited_message_forks_the_session(visit, agent):
    agent.capabilities["sessionCapabilities"] = {"fork": {}}
    page = await visit()
    await say(page, "Do it")
    first = await agent.next_turn()
    first.end()
    await page.get_by_role("button", name="Edit", exact=True).click()
    await expect(page.locator(".resend")).to_contain_text("Sent in a fork of this session.")
    await write(page, "Do it well")
    second = await agent.next_turn()
    assert (second.text, second.session_id == first.session_id) == ("Do it well", False)
    second.end()


@pytest.mark.usefixtures("own_bridge")
async def test_edited_message_is_identified_after_a_refusal(visit, agent):
    agent.capabilities["sessionCapabilities"] = {"fork": {}}
    agent.capabilities["_meta"] = {"dragoman/fork": {"before": True}, "dragoman/message": True}
    page = await visit()
    await say(page, "Do it")
    (await agent.next_turn()).refuse("Not now")
    await expect(composer(page)).to_have_value("Do it")
    await composer(page).press("Enter")
    (await agent.next_turn()).end()
    taken = agent.params_of("session/prompt")["_meta"]["dragoman/message"]
    edit = page.get_by_role("button", name="Edit", exact=True)
    await expect(edit).to_have_count(2)
    await edit.last.click()
    await expect(page.locator(".resend")).to_contain_text("ends before this message")
    await write(page, "Do it well")
    (await agent.next_turn()).end()
    assert agent.params_of("session/fork")["_meta"] == {"dragoman/fork": {"before": {"ids": [taken]}}}


async def test_queue_fits_a_phone(visit, agent):
    page = await visit(viewport=PHONE, has_touch=True, color_scheme="dark")
    await say(page, "Begin")
    turn = await agent.next_turn()
    await write(page, "a long message that waits " * 20)
    await expect(waiting(page)).to_be_visible()
    assert not await page.evaluate(TOO_WIDE)
    assert await barriers(page) == []
    await shoot(page, "queue_phone")
    await page.get_by_role("button", name="Remove:").click()
    await expect(waiting(page)).to_be_hidden()
    turn.end()
