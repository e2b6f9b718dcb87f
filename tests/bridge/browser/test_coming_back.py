"""Reloads and reconnects at any moment lose and repeat nothing."""

import asyncio
import re

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, card, say, session_path, shoot, user_messages

TWO_LINES_PX = 30


@pytest.mark.basic
async def test_reload_during_a_turn_shows_all_of_it(page, agent):
    await say(page, "Tell a story")
    turn = await agent.next_turn()
    turn.say("Once upon ")
    await expect(agent_messages(page)).to_have_text("Once upon ")
    await page.reload()
    await expect(agent_messages(page)).to_have_text("Once upon ")
    await expect(user_messages(page)).to_have_text("Tell a story")
    await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    turn.say("a time.")
    turn.end()
    await expect(agent_messages(page)).to_have_text("Once upon a time.")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def test_reloaded_page_shows_open_questions(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.start_call(status="pending")
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_be_visible()
    await page.reload()
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.end()
    await expect(card(page)).to_have_count(0)


@pytest.mark.basic
async def test_one_answer_settles_a_question_in_both_tabs(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.say("May I?")
    turn.start_call(status="pending")
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_be_visible()
    other = await page.visitor.come(await session_path(page))
    await expect(agent_messages(other)).to_have_text("May I?")
    await expect(user_messages(other)).to_have_text("Fix it")
    await expect(page.locator(".session-viewers")).to_contain_text("2")
    assert await page.locator(".session-meta").evaluate("meta => meta.offsetHeight") < TWO_LINES_PX
    await shoot(page, "two_viewers")
    await card(page).hover()  # it stays visible for the user who works on it
    await card(other).get_by_role("button", name="Reject").click()
    assert await asking == "no"
    await expect(card(page)).to_contain_text("Answered in another window: Reject")
    await shoot(page, "answered_elsewhere")
    turn.say(" No.")
    turn.end()
    for tab in (page, other):
        await expect(agent_messages(tab).last).to_contain_text("No.")


async def test_switching_sessions_updates_viewers_and_loses_nothing(page, agent):
    await say(page, "Go on")
    turn = await agent.next_turn()
    turn.title("The first")
    turn.say("One. ")
    other = await page.visitor.come(await session_path(page))
    await expect(other.locator(".session-viewers")).to_contain_text("2")
    await page.evaluate("dragoman.newSession()")
    await expect(other.locator(".session-viewers")).to_have_count(0)
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(other)).to_be_visible()
    turn.say("Two.")
    await expect(agent_messages(other)).to_have_text("One. Two.")
    await page.bring_to_front()
    await page.get_by_role("button", name=re.compile("^The first")).click()
    await expect(agent_messages(page)).to_have_text("One. Two.")
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.end()


async def test_prompt_is_shown_in_other_tabs(page, agent):
    await say(page, "First")
    (await agent.next_turn()).end()
    other = await page.visitor.come(await session_path(page))
    await expect(user_messages(other)).to_have_text("First")
    await say(other, "Second")
    turn = await agent.next_turn()
    turn.say("Yes")
    turn.end()
    await expect(user_messages(page)).to_have_text(["First", "Second"])
    await expect(agent_messages(page)).to_have_text("Yes")


@pytest.mark.basic
async def test_broken_network_loses_and_repeats_nothing(page, agent, proxy):
    page.visitor.faults.allow(r"WebSocket|ERR_|Failed to load resource|net::")
    await say(page, "Spell it")
    turn = await agent.next_turn()
    for letter in "abc":
        turn.say(letter)
    await expect(agent_messages(page)).to_have_text("abc")
    proxy.cut()
    await expect(page.locator(".banner")).to_contain_text("The connection is lost")
    await shoot(page, "connection_lost")
    for letter in "def":
        turn.say(letter)
    proxy.mend()
    await expect(agent_messages(page)).to_have_text("abcdef")
    for letter in "ghi":
        turn.say(letter)
    turn.end()
    await expect(agent_messages(page)).to_have_text("abcdefghi")
    await expect(user_messages(page)).to_have_count(1)
    await expect(page.locator(".banner")).to_be_hidden()
    await say(page, "Again")
    (await agent.next_turn()).end()


@pytest.mark.usefixtures("own_bridge")
async def test_crash_is_shown_and_the_conversation_continues(page, agent):
    await say(page, "Fall over")
    turn = await agent.next_turn()
    turn.say("I feel dizz")
    await expect(agent_messages(page)).to_have_text("I feel dizz")
    agent.crash(3, "stack overflow in the dizzy part")
    await expect(page.get_by_text(re.compile("exit code 3|status 3|code 3")).first).to_be_visible()
    await expect(page.get_by_text("stack overflow in the dizzy part").first).to_be_attached()
    await shoot(page, "crash")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await say(page, "Better?")
    turn = await agent.next_turn()
    assert agent.starts == 2
    turn.say("Better.")
    turn.end()
    await expect(agent_messages(page).last).to_have_text("Better.")
    await expect(agent_messages(page).first).to_have_text("I feel dizz")


async def test_session_is_in_the_list_after_a_reload(page, agent):
    await say(page, "Remember this")
    turn = await agent.next_turn()
    turn.title("Something to remember")
    turn.say("Noted.")
    turn.end()
    await expect(agent_messages(page)).to_have_text("Noted.")
    fresh = await page.visitor.come()
    await fresh.get_by_role("button", name=re.compile("^Something to remember")).click()
    await expect(agent_messages(fresh)).to_have_text("Noted.")


async def test_page_that_missed_much_shows_the_end_again(page, agent, proxy):
    page.visitor.faults.allow(r"WebSocket|ERR_|Failed to load resource|net::")
    await say(page, "Count")
    turn = await agent.next_turn()
    turn.say("begin ")
    await expect(agent_messages(page)).to_have_text("begin")
    proxy.cut()
    await expect(page.locator(".banner")).to_contain_text("The connection is lost")
    for number in range(3_000):
        turn.say(f"{number} ")
    await agent.drain()
    proxy.mend()
    await expect(agent_messages(page)).to_contain_text("2999")
    turn.say("end")
    turn.end()
    await expect(agent_messages(page)).to_contain_text("2999 end")
    await page.locator(".scroll").evaluate("(box) => { box.scrollTop = 0; }")
    await expect(user_messages(page)).to_have_count(1)
    text = await agent_messages(page).text_content()
    assert text.split() == ["begin", *map(str, range(3_000)), "end"]
