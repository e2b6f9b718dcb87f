"""The page on a phone, with the dark theme, and for screen readers."""

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, agent_messages, card, composer, say, shoot

TOO_WIDE = "() => document.documentElement.scrollWidth > innerWidth"


async def fill_with_everything(page, agent):
    """Send a message, a thought, a tool call and a question."""
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.title("A rather long title of a session that would not fit on a phone at all")
    turn.think("Hm.")
    turn.say(f"A [link](https://example.org) and a very_long_{'word_' * 40}\n\n```python\n{'x = 1; ' * 40}\n```\n\n")
    turn.start_call(status="pending", rawInput={"command": "make " + "test " * 40})
    asking = agent.start_asking(turn, rawInput={"command": "make " + "test " * 40})
    await expect(card(page)).to_be_visible()
    await expect(agent_messages(page).locator(".code")).to_be_visible()
    return turn, asking


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_fits_the_width_of_a_phone(visit, agent, scheme):
    page = await visit(viewport=PHONE, has_touch=True, color_scheme=scheme)
    turn, asking = await fill_with_everything(page, agent)
    assert not await page.evaluate(TOO_WIDE)
    await shoot(page, f"phone_{scheme}")
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.end()
    await page.get_by_role("button", name="Sessions").click()
    await expect(page.locator(".session-title")).to_be_in_viewport()
    await shoot(page, f"phone_sessions_{scheme}")
    await page.get_by_role("button", name="New session", exact=True).click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.locator(".session-open").click()
    await expect(page.locator(".session-title")).not_to_be_in_viewport()


PAPER = "() => getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(252, 251, 249)", "rgb(25, 26, 28)"


@pytest.mark.basic
async def test_dark_theme_is_dark(visit, agent):
    page = await visit(color_scheme="dark")
    turn, asking = await fill_with_everything(page, agent)
    await shoot(page, "dark")
    assert await page.evaluate(PAPER) == DARK
    await card(page).get_by_role("button", name="Reject").click()
    assert await asking == "no"
    turn.end()


@pytest.mark.parametrize(("scheme", "by_itself"), [("light", LIGHT), ("dark", DARK)])
async def test_user_overrides_the_system_theme(visit, scheme, by_itself):
    page = await visit(color_scheme=scheme)
    assert await page.evaluate(PAPER) == by_itself
    for label, paper in (("system", LIGHT), ("light", DARK), ("dark", by_itself)):
        await page.get_by_role("button", name=f"Appearance: {label}", exact=True).click()
        assert await page.evaluate(PAPER) == paper


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_page_has_no_accessibility_barriers(visit, agent, scheme):
    page = await visit(color_scheme=scheme)
    assert await barriers(page) == []
    turn, asking = await fill_with_everything(page, agent)
    assert await barriers(page) == []
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.end()
    await page.get_by_role("button", name="New session", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Add a server").click()
    await page.get_by_role("dialog").get_by_role("button", name="Add a variable").click()
    assert await barriers(page) == []
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Wire inspector").click()
    await page.get_by_role("listbox", name="Messages").get_by_role("option").first.click()
    await expect(page.get_by_role("region", name="Message", exact=True)).to_be_visible()
    assert await barriers(page) == []


@pytest.mark.basic
async def test_answers_and_questions_are_announced_to_screen_readers(page, agent):
    turn, asking = await fill_with_everything(page, agent)
    await expect(card(page)).to_have_accessible_name("The agent asks: Run the tests?")
    await expect(page.get_by_role("log", name="Conversation")).to_be_visible()
    await expect(composer(page)).to_have_accessible_name("Message")
    await card(page).get_by_role("button", name="Allow").click()
    await asking
    turn.end()
