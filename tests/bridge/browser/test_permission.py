"""A question for permission on the page: what a plain yes means, and how long an "always" holds."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, card, say, session_path, shoot
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


ASK_HERE = """() => {
  const { session } = dragoman.state;
  const options = [{ optionId: "yes", name: "Allow", kind: "allow_once" }];
  const params = { sessionId: session.id, toolCall: { toolCallId: "one", title: "Look" }, options };
  session.receiveQuestion("session/request_permission", params, { id: "here", result() {}, error() {} });
}"""


async def test_the_conversation_says_that_it_waits_as_soon_as_a_question_is_there(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    tail = page.locator(".tail")
    await expect(tail).to_have_text("Working…")
    # The news about the session, which also have it drawn, come before the question or behind it.
    await page.evaluate(ASK_HERE)
    await expect(tail).to_have_text("Waiting for your answer.")
    await card(page).get_by_role("button", name="Allow").click()
    await expect(tail).to_have_text("Working…")
    turn.end()


FIVE = (ALLOW, SCOPED, REJECT, NEVER)
CHANGE = {"type": "diff", "path": "/work/notes.txt", "oldText": None, "newText": "buy milk"}


async def test_on_a_phone_the_command_is_there_once_and_five_answers_leave_it_in_sight(visit, agent):
    page = await visit(viewport=PHONE, has_touch=True, color_scheme="dark")
    command = "ls | head -3"
    turn, asking = await ask(page, agent, *FIVE, title=f"Run {command}", kind="execute", rawInput={"command": command})
    await expect(card(page).get_by_role("heading")).to_have_text("Run this command")
    assert (await card(page).inner_text()).count(command) == 1
    boxes = [await button.bounding_box() for button in await card(page).locator("[data-option]").all()]
    assert len({round(box["y"]) for box in boxes}) == 3, "five answers take three rows"
    assert min(box["height"] for box in boxes) >= 44
    assert await barriers(page) == []
    await shoot(page, "permission_phone")
    await card(page).get_by_role("button", name="Allow", exact=True).click()
    assert (await asking)["optionId"] == "yes"
    turn.end()


@pytest.mark.parametrize(
    ("call", "heading", "chips"),
    [
        ({"title": "Write notes.txt", "kind": "edit", "content": [CHANGE]}, "Change this file", 0),
        ({"title": "Write /work/notes.txt", "kind": "edit", "content": [CHANGE]}, "Change this file", 0),
        ({"title": "Move notes.txt to old.txt", "kind": "move", "content": [CHANGE]}, "Move notes.txt to old.txt", 0),
        ({"title": "Undo all notes.txts", "kind": "edit", "content": [CHANGE]}, "Undo all notes.txts", 0),
        ({"title": "Tidy up", "kind": "edit", "content": [CHANGE]}, "Tidy up", 0),
        ({"title": "Delete tools", "kind": "execute", "rawInput": {"command": "ls"}}, "Delete tools", 1),
        ({"title": "Read notes.txt", "kind": "read"}, "Read notes.txt", 1),
        ({"title": "Run `make tes…", "kind": "execute", "rawInput": {"command": "make test"}}, "Run this command", 1),
        ({"title": "Run the tests", "kind": "execute", "rawInput": {"command": "make test"}}, "Run the tests", 1),
    ],
)
async def test_the_title_does_not_repeat_what_stands_below_it(page, agent, call, heading, chips):
    turn, asking = await ask(page, agent, ALLOW, REJECT, locations=[{"path": "/work/notes.txt"}], **call)
    await expect(card(page).get_by_role("heading")).to_have_text(heading)
    await expect(card(page).locator(".tool-places .chip")).to_have_count(chips)
    await shoot(page, "permission_change")
    await page.keyboard.press("Escape")
    assert (await asking)["optionId"] == "no"
    turn.end()
