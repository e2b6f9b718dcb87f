"""A link with which a person elsewhere answers one question, once: made on the card, opened on a phone."""

import asyncio

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
    # The question names the call alone: what it is about was told before.
    asking = asyncio.ensure_future(turn.ask((ALLOW, ALWAYS, REJECT), title=None, kind=None))
    await card(page).get_by_role("button", name="Answer elsewhere").click()
    link = await page.get_by_role("textbox", name="Link").input_value()
    await page.get_by_role("dialog").get_by_role("button", name="Done").click()
    return turn, asking, link


async def phone(browser, link, **options):
    """Open a link in a browser that has no credential."""
    options = {"viewport": PHONE, "has_touch": True, "reduced_motion": "reduce", **options}
    context = await browser.new_context(**options)
    opened = await context.new_page()
    opened.faults = Faults(link.split("/answer")[0])
    opened.faults.watch(opened)
    await opened.goto(link)
    return opened


async def test_a_question_is_answered_once_from_a_phone_without_other_access(browser, page, agent):
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
    await expect(card(page)).to_contain_text("Answered by a link: Allow.")
    turn.end()
    again = await phone(browser, link)
    await expect(again.get_by_role("heading", name="Already settled")).to_be_visible()
    await expect(again.locator("main")).to_contain_text("answered by the link: Allow. This link is used up.")
    await expect(again.locator("main")).not_to_contain_text("reader.py")
    await shoot(again, "answer-used")
    assert [*opened.faults.unexpected, *again.faults.unexpected] == []
    for one in (opened, again):
        await one.context.close()


async def test_a_link_says_that_the_question_was_answered_in_the_conversation_meanwhile(browser, page, agent):
    turn, asking, link = await ask(page, agent)
    opened = await phone(browser, link, viewport=DESK, color_scheme="dark")
    await expect(opened.get_by_role("button", name="Reject")).to_be_in_viewport()
    assert await barriers(opened) == []
    await shoot(opened, "answer-desk")
    await card(page).get_by_role("button", name="Always allow").click()
    assert await asking == "always"
    await opened.get_by_role("button", name="Reject").tap()
    await expect(opened.locator("main")).to_contain_text("answered in the conversation already: Always allow.")
    turn.end()
    unknown = await phone(browser, f"{link}x")
    await expect(unknown.get_by_role("heading", name="No question belongs to this link")).to_be_visible()
    for one in (opened, unknown):
        await one.context.close()
