"""A question for permission on the page: what a plain yes means, and how long an "always" holds."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import card, say, session_path, shoot
from tests.bridge.browser.played_agent import ALLOW, REJECT

ALWAYS = {"optionId": "always", "name": "Always allow", "kind": "allow_always"}
NEVER = {"optionId": "never", "name": "Never", "kind": "reject_always"}
SCOPED = {
    "optionId": "always",
    "name": "Allow in this session",
    "kind": "allow_always",
    "_meta": {
        "dragoman/remember": [
            {"scope": "session", "name": "Allow in this session"},
            {"scope": "project", "name": "Always allow in this project"},
        ]
    },
}


async def ask(page, agent, *options, **call):
    """Have the agent ask; return its turn and the outcome to be awaited, when keys are taken."""
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.start_call(status="pending")
    asking = asyncio.ensure_future(turn.ask_outcome(options, **call))
    await expect(card(page)).to_have_class("question permission armed")
    return turn, asking


@pytest.mark.parametrize("options", [(ALWAYS, NEVER, ALLOW, REJECT), (REJECT, ALLOW, ALWAYS)])
async def test_enter_allows_once_wherever_that_option_stands(page, agent, options):
    turn, asking = await ask(page, agent, *options)
    await expect(card(page).locator("[data-kind=allow_once]")).to_be_focused()
    await expect(card(page).locator(".button-primary")).to_have_attribute("data-kind", "allow_once")
    await shoot(page, "permission-default")
    await page.keyboard.press("Enter")
    assert await asking == {"outcome": "selected", "optionId": "yes"}
    turn.end()


async def test_enter_on_the_card_itself_allows_once_too(page, agent):
    turn, asking = await ask(page, agent, ALWAYS, ALLOW, REJECT)
    await card(page).focus()
    await page.keyboard.press("Enter")
    assert (await asking)["optionId"] == "yes"
    turn.end()


async def test_without_an_option_that_allows_once_no_allowing_button_has_the_focus(page, agent):
    turn, asking = await ask(page, agent, ALWAYS, REJECT)
    await expect(card(page).locator("[data-kind=reject_once]")).to_be_focused()
    await expect(card(page).locator(".button-primary")).to_have_count(0)
    await page.keyboard.press("Enter")
    assert (await asking)["optionId"] == "no"
    turn.end()


async def test_where_every_option_binds_for_longer_enter_answers_nothing(page, agent):
    turn, asking = await ask(page, agent, ALWAYS, NEVER)
    await expect(card(page)).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("1")
    assert (await asking)["optionId"] == "always"
    turn.end()


@pytest.mark.parametrize(
    ("name", "scope"), [("Allow in this session", "session"), ("Always allow in this project", "project")]
)
async def test_the_scopes_of_an_always_are_buttons_of_their_own(page, agent, name, scope):
    turn, asking = await ask(page, agent, ALLOW, SCOPED, REJECT)
    await card(page).get_by_role("button", name=name).click()
    meta = {"dragoman/remember": scope}
    assert await asking == {"outcome": "selected", "optionId": "always", "_meta": meta}
    turn.end()


async def test_another_window_is_told_which_scope_was_chosen(page, agent):
    turn, asking = await ask(page, agent, ALLOW, SCOPED, REJECT)
    other = await page.visitor.come(await session_path(page))
    await card(other).get_by_role("button", name="Always allow in this project").click()
    await asking
    await expect(card(page)).to_contain_text("Answered in another window: Always allow in this project.")
    turn.end()
