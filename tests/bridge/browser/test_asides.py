"""Notices, summaries, subagents and their messages in a conversation, and the agent's login."""

import re

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, agent_messages, card, composer, say, session_path, shoot

TOO_WIDE = "() => document.documentElement.scrollWidth > innerWidth"


def text(words):
    return {"type": "text", "text": words}


async def show_everything(page, agent):
    """Send a notice of each severity, a summary, a named tool, a subagent and its message."""
    await say(page, "Read all of it")
    turn = await agent.next_turn()
    turn.update("notice", severity="info", title="Using the cache")
    turn.update("notice", severity="warning", title="The server is slow", description="Trying again in 2 s.")
    turn.update("notice", severity="error", title="A tool is missing")
    turn.update("compaction_update", compactionId="c", status="in_progress")
    turn.update("compaction_summary_chunk", compactionId="c", content=text("You asked for **all** of it. "))
    turn.update("compaction_summary_chunk", compactionId="c", content=text("Half is read."))
    turn.update("compaction_update", compactionId="c", status="completed")
    turn.start_call(title="Read the notes", name="read_file", kind="read", status="completed")
    running = {"state": "running"}
    turn.update("subagent_update", sessionId="kid", title="Reader", description="Reads the rest.", state=running)
    turn.update(
        "session_message",
        messageId="m",
        senderSessionId=turn.session_id,
        recipientSessionId="kid",
        content=[text("Please read the rest.")],
    )
    turn.say("All is read.")
    await expect(agent_messages(page)).to_have_text("All is read.")
    return turn


@pytest.mark.basic
async def test_notices_summaries_and_subagents_are_shown(page, agent):
    turn = await show_everything(page, agent)
    turn.end()
    await expect(page.get_by_role("note")).to_have_text(
        ["Using the cache", re.compile("server is slow.*Trying again", re.DOTALL), "A tool is missing"]
    )
    await expect(page.get_by_role("note", name="Warning")).to_have_class(re.compile("warn"))
    await expect(page.get_by_role("note", name="Error")).to_have_class(re.compile("bad"))
    await expect(page.locator(".tool-name")).to_have_text("read_file")
    await shoot(page, "asides")
    await page.reload()
    await expect(agent_messages(page)).to_have_text("All is read.")
    await expect(page.get_by_role("note")).to_have_count(0)  # notices are only live and not in the history
    summary = page.get_by_role("region", name="Summary of the conversation")
    await expect(summary.get_by_text("Half is read.")).not_to_be_visible()
    await summary.get_by_text("was summarized").click()
    await expect(summary.locator(".compaction-body")).to_have_text("You asked for all of it. Half is read.")
    await expect(summary.locator("strong")).to_have_text("all")
    subagent = page.get_by_role("region", name="Subagent: Reader")
    await expect(subagent).to_contain_text("Working")
    await expect(subagent).to_contain_text("Reads the rest.")
    await expect(page.locator(".session-message")).to_have_text(
        re.compile("Message to .*Reader.*Please read", re.DOTALL)
    )
    await shoot(page, "asides_again")


@pytest.mark.parametrize(("scheme", "viewport"), [("light", None), ("dark", None), ("dark", PHONE)])
async def test_asides_have_no_accessibility_barriers(visit, agent, scheme, viewport):
    page = await visit(color_scheme=scheme, **({"viewport": viewport, "has_touch": True} if viewport else {}))
    turn = await show_everything(page, agent)
    await page.get_by_text("was summarized").click()
    await shoot(page, f"asides_{scheme}{'_phone' if viewport else ''}")
    assert await barriers(page) == []
    assert not await page.evaluate(TOO_WIDE)
    turn.end()


async def test_failed_summary_says_why(page, agent):
    await say(page, "/compact")
    turn = await agent.next_turn()
    turn.update("compaction_update", compactionId="c", status="in_progress")
    await expect(page.get_by_text("Summarizing the conversation…")).to_be_visible()
    turn.update("compaction_update", compactionId="c", status="failed", error="the model is away")
    await expect(page.get_by_text("could not be summarized: the model is away")).to_be_visible()
    turn.end()


async def test_subagent_work_and_questions_are_shown(page, agent):
    await say(page, "Delegate")
    turn = await agent.next_turn()
    turn.update("subagent_update", sessionId="kid", title="Reader", state={"state": "running"})
    turn.update_of("kid", "agent_message_chunk", content=text("I am reading."))
    turn.update_of("kid", "session_message", messageId="m", senderSessionId=turn.session_id, content=[text("Read!")])
    asking = agent.start_asking(turn, session_id="kid", title="Open the safe")
    await expect(card(page)).to_contain_text("Open the safe")
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.update("subagent_update", sessionId="kid", state={"state": "idle"})
    turn.end()
    await expect(page.get_by_role("region", name="Subagent: Reader")).to_contain_text("Done")
    await expect(page.locator(".session-title")).to_have_text("Delegate")
    await page.get_by_role("button", name="Show work of Reader").click()
    await expect(agent_messages(page)).to_have_text("I am reading.")
    await expect(page.locator(".session-message")).to_contain_text("Message from the session that started it")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Reader")
    await expect(composer(page)).to_be_disabled()
    await shoot(page, "subagent")
    assert await barriers(page) == []
    await page.reload()
    await expect(agent_messages(page)).to_have_text("I am reading.")
    await page.get_by_role("button", name="Go to that session").click()
    await expect(page.get_by_role("region", name="Subagent: Reader")).to_be_visible()
    await expect(composer(page)).to_be_enabled()
    other = await page.visitor.come(await session_path(page))
    await expect(other.get_by_role("region", name="Subagent: Reader")).to_be_visible()


@pytest.mark.usefixtures("own_bridge")
async def test_agent_without_info_is_shown_without_claims(visit, agent):
    agent.initialized["authMethods"] = [{"id": "none", "name": "No login", "description": "It needs no login."}]
    page = await visit()
    start = page.locator(".start")
    await expect(start).to_contain_text("The played agent works in ")
    for claim in ("runs commands", "Try one of these", "Sign in", "No login", "model"):
        await expect(start).not_to_contain_text(claim)
    assert await barriers(page) == []
    await shoot(page, "start_other_agent")


@pytest.mark.usefixtures("own_bridge")
async def test_required_login_is_shown_before_the_first_message(visit, agent):
    account = {"label": "Plan A", "email": "me@example.org", "active": True}
    agent.capabilities["auth"] = {"status": {}}
    agent.initialized["authMethods"] = [{"id": "web", "name": "In the browser"}]
    agent.results["auth/status"] = {"state": "unauthenticated"}
    page = await visit()
    banner = page.get_by_text("The agent requires you to sign in.")
    await expect(banner).to_be_visible()
    await shoot(page, "sign_in")
    assert await barriers(page) == []
    agent.results |= {"authenticate": {"_meta": {}}, "auth/status": {"state": "authenticated", "accounts": [account]}}
    await page.get_by_role("button", name="Sign in: In the browser").click()
    await expect(banner).to_have_count(0)
    assert agent.params_of("authenticate") == {"methodId": "web"}
    await expect(page.locator(".topbar-state")).to_have_attribute("title", "Connected\nPlan A, me@example.org")
    agent.send({"method": "auth/status_update", "params": {"state": "unauthenticated"}})
    await expect(banner).to_be_visible()
