"""Permission requests on the page: the default answer, and the scopes of "always"."""

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
    """Send a permission request. Return the turn and the outcome's task once the card accepts keys."""
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.start_call(status="pending")
    asking = asyncio.ensure_future(turn.ask_outcome(options, **call))
    await expect(card(page)).to_have_class("question permission armed")
    return turn, asking


@pytest.mark.parametrize("options", [(ALWAYS, NEVER, ALLOW, REJECT), (REJECT, ALLOW, ALWAYS)])
async def test_enter_allows_once_at_any_position(page, agent, options):
    turn, asking = await ask(page, agent, *options)
    await expect(card(page).locator("[data-kind=allow_once]")).to_be_focused()
    await expect(card(page).locator(".button-primary")).to_have_attribute("data-kind", "allow_once")
    await shoot(page, "permission-default")
    await page.keyboard.press("Enter")
    assert await asking == {"outcome": "selected", "optionId": "yes"}
    turn.end()


async def test_enter_on_the_card_allows_once(page, agent):
    turn, asking = await ask(page, agent, ALWAYS, ALLOW, REJECT)
    await card(page).focus()
    await page.keyboard.press("Enter")
    assert (await asking)["optionId"] == "yes"
    turn.end()


async def test_without_allow_once_no_allow_button_has_focus(page, agent):
    turn, asking = await ask(page, agent, ALWAYS, REJECT)
    await expect(card(page).locator("[data-kind=reject_once]")).to_be_focused()
    await expect(card(page).locator(".button-primary")).to_have_count(0)
    await page.keyboard.press("Enter")
    assert (await asking)["optionId"] == "no"
    turn.end()


async def test_enter_never_selects_a_lasting_option(page, agent):
    turn, asking = await ask(page, agent, ALWAYS, NEVER)
    await expect(card(page)).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("1")
    assert (await asking)["optionId"] == "always"
    turn.end()


@pytest.mark.parametrize(
    ("name", "scope"), [("Allow in this session", "session"), ("Always allow in this project", "project")]
)
@pytest.mark.basic
async def test_scopes_of_always_are_separate_buttons(page, agent, name, scope):
    turn, asking = await ask(page, agent, ALLOW, SCOPED, REJECT)
    await card(page).get_by_role("button", name=name).click()
    meta = {"dragoman/remember": scope}
    assert await asking == {"outcome": "selected", "optionId": "always", "_meta": meta}
    turn.end()


async def test_chosen_scope_is_shown_in_other_windows(page, agent):
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


async def test_conversation_shows_that_a_question_waits(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    tail, status = page.locator(".tail"), page.locator(".topbar-words")
    await expect(tail).to_have_text("Working…")
    await expect(status).to_have_text("Working")
    # The session's status update, which also redraws it, may arrive before or after the question.
    await page.evaluate(ASK_HERE)
    await expect(tail).to_have_text("Waiting for your answer.")
    await expect(status).to_have_text("Waiting for you")
    await card(page).get_by_role("button", name="Allow").click()
    await expect(tail).to_have_text("Working…")
    await expect(status).to_have_text("Working")
    turn.end()


FIVE = (ALLOW, SCOPED, REJECT, NEVER)
CHANGE = {"type": "diff", "path": "/work/notes.txt", "oldText": None, "newText": "buy milk"}


@pytest.mark.basic
async def test_command_stays_visible_on_a_phone_with_five_answers(visit, agent):
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


async def test_answer_with_a_long_path_stays_visible_on_a_phone(visit, agent):
    page = await visit(viewport=PHONE, has_touch=True)
    name = f"Allow edits to {'/deep_directory' * 4}/file.txt in this session"
    turn, asking = await ask(page, agent, ALLOW, {**ALWAYS, "name": name}, REJECT)
    for button in await card(page).get_by_role("button").all():
        box = await button.bounding_box()
        assert box["x"] + box["width"] <= PHONE["width"]
    await card(page).get_by_role("button", name=name).tap()
    assert (await asking)["optionId"] == "always"
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
async def test_card_title_does_not_repeat_its_content(page, agent, call, heading, chips):
    turn, asking = await ask(page, agent, ALLOW, REJECT, locations=[{"path": "/work/notes.txt"}], **call)
    await expect(card(page).get_by_role("heading")).to_have_text(heading)
    await expect(card(page).locator(".tool-places .chip")).to_have_count(chips)
    await shoot(page, "permission_change")
    await page.keyboard.press("Escape")
    assert (await asking)["optionId"] == "no"
    turn.end()
