"""A link for answering one question once, created on the card and opened on a phone."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.conftest import DESK, Faults
from tests.bridge.browser.pages import PHONE, card, say, shoot
from tests.bridge.browser.played_agent import ALLOW, REJECT

ALWAYS = {"optionId": "always", "name": "Always allow", "kind": "allow_always"}
CHANGE = {
    "type": "diff",
    "path": "/work/reader.py",
    "oldText": "".join(f"line {n}\n" for n in range(40)),
    "newText": "".join(f"line {n}{' changed' * 12 if n % 9 == 4 else ''}\n" for n in range(40)),
}
STATUS = "async (path) => (await fetch(path)).status"
TOO_WIDE = "() => document.documentElement.scrollWidth > innerWidth"


async def ask(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.start_call(title="Edit reader.py", kind="edit", status="pending", content=[CHANGE])
    # The question only names the call. An earlier update described it.
    asking = asyncio.ensure_future(turn.ask((ALLOW, ALWAYS, REJECT), title=None, kind=None))
    await card(page).get_by_role("button", name="Approval link").click()
    link = await page.get_by_role("textbox", name="Link").input_value()
    return turn, asking, link


async def phone(browser, link, **options):
    """Open a link in a browser without a credential."""
    options = {"viewport": PHONE, "has_touch": True, "reduced_motion": "reduce", **options}
    context = await browser.new_context(**options)
    opened = await context.new_page()
    opened.faults = Faults(link.split("/answer")[0])
    opened.faults.watch(opened)
    await opened.clock.install()
    await opened.goto(link)
    return opened


@pytest.mark.basic
async def test_question_is_answered_once_by_a_link(browser, page, agent):
    turn, asking, link = await ask(page, agent)
    opened = await phone(browser, link, color_scheme="dark")
    await expect(opened.get_by_role("heading", name="Change this file")).to_be_visible()
    await expect(opened.locator(".diff")).to_contain_text("changed changed")
    assert await opened.locator("#answer button:has-text('llow')").all_inner_texts() == ["Allow"]
    assert not await opened.evaluate(TOO_WIDE)
    assert await barriers(opened) == []
    await shoot(opened, "answer-phone")
    opened.faults.allow("401")
    assert [await opened.evaluate(STATUS, path) for path in ("config.json", "acp", "shares")] == [401, 401, 401]
    await opened.get_by_role("button", name="Allow").tap()
    assert await asking == "yes"
    await expect(opened.get_by_role("heading", name="Answered: Allow")).to_be_visible()
    await expect(card(page)).to_contain_text("Answered with an approval link: Allow.")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    turn.end()
    again = await phone(browser, link)
    await expect(again.get_by_role("heading", name="This request is closed")).to_be_visible()
    await expect(again.locator("main")).to_contain_text(
        "answered with this link: Allow. This link cannot be used again."
    )
    await expect(again.locator("main")).not_to_contain_text("reader.py")
    await shoot(again, "answer-used")
    assert [*opened.faults.unexpected, *again.faults.unexpected] == []
    for one in (opened, again):
        await one.context.close()


async def test_link_reports_a_question_answered_elsewhere(browser, page, agent):
    turn, asking, link = await ask(page, agent)
    opened = await phone(browser, link, viewport=DESK, color_scheme="dark")
    await expect(opened.get_by_role("button", name="Reject")).to_be_in_viewport()
    assert await barriers(opened) == []
    await shoot(opened, "answer-desk")
    await opened.clock.pause_at(await opened.evaluate("Date.now() + 1000"))
    await page.get_by_role("dialog").get_by_role("button", name="Done").click()
    await card(page).get_by_role("button", name="Always allow").click()
    assert await asking == "always"
    await opened.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(opened.locator("main")).to_contain_text("already answered in the conversation: Always allow.")
    turn.end()
    unknown = await phone(browser, f"{link}x")
    await expect(unknown.get_by_role("heading", name="This link is not valid")).to_be_visible()
    for one in (opened, unknown):
        await one.context.close()
