"""A person talks with an agent: says something, reads the answer, allows, denies and stops."""

import asyncio
import sys

from playwright.async_api import expect

from tests.gateway.browser.pages import agent_messages, card, composer, say, shoot, user_messages
from tests.gateway.guard.serving import serving

ANSWER = """## What I found

The **parser** drops the last line. See `reader.py`:

```python
def read(path: str) -> list[str]:
    return path.split("\\n")[:-1]  # drops it
```

- [x] found it
- [ ] fix it

| file | lines |
|------|------:|
| reader.py | 2 |
"""

CHANGE = {"type": "diff", "path": "/work/reader.py", "oldText": "one\ntwo\n", "newText": "one\nthree\n"}


async def test_a_first_message_begins_a_session_and_is_answered_in_markdown(page, stage):
    await say(page, "Why is the last line missing?")
    turn = await stage.next_turn()
    assert turn.text == "Why is the last line missing?"
    turn.title("The missing line")
    turn.think("They mean the parser.")
    for piece in ANSWER.splitlines(keepends=True):
        turn.say(piece)
    turn.end()
    answer = agent_messages(page)
    await expect(answer.get_by_role("heading", name="What I found")).to_be_visible()
    await expect(answer.locator(".code .k").first).to_have_text("def")
    await expect(answer.get_by_role("cell", name="reader.py")).to_be_visible()
    await expect(user_messages(page)).to_have_text("Why is the last line missing?")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.locator(".session-title")).to_have_text("The missing line")
    await shoot(page, "conversation")


async def test_an_answer_is_shown_while_it_is_written(page, stage):
    await say(page, "Count")
    turn = await stage.next_turn()
    turn.say("one ")
    await expect(agent_messages(page)).to_have_text("one ")
    turn.say("two")
    await expect(agent_messages(page)).to_have_text("one two")
    await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    await expect(page.locator(".session-state")).to_contain_text("Running")
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.locator(".session-state")).to_have_count(0)


async def test_what_is_asked_for_is_shown_whole_and_allowed_by_a_click(page, stage):
    await say(page, "Fix it")
    turn = await stage.next_turn()
    turn.start_call(title="Edit reader.py", kind="edit", status="pending", content=[CHANGE])
    asking = asyncio.ensure_future(turn.ask(title="Edit reader.py", kind="edit", content=[CHANGE]))
    await expect(card(page)).to_contain_text("Edit reader.py")
    await expect(card(page)).to_contain_text("three")
    await expect(page.locator(".session-badge")).to_contain_text("1 question waits")
    await shoot(page, "permission")
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.finish_call()
    turn.say("Done.")
    turn.end()
    await expect(agent_messages(page)).to_have_text("Done.")
    await expect(card(page)).to_have_count(0)
    await shoot(page, "allowed")


async def test_a_command_is_denied_by_a_key(page, stage):
    await say(page, "Clean up")
    turn = await stage.next_turn()
    turn.start_call(title="rm -rf build", status="pending", rawInput={"command": "rm -rf build"})
    asking = asyncio.ensure_future(turn.ask(title="rm -rf build", rawInput={"command": "rm -rf build"}))
    await expect(card(page)).to_have_class("ask permission armed")
    await card(page).focus()
    await page.keyboard.press("Escape")
    assert await asking == "no"
    turn.finish_call(status="failed")
    turn.say("Then not.")
    turn.end()
    await expect(agent_messages(page)).to_have_text("Then not.")
    await expect(page.locator(".tool")).to_have_attribute("data-status", "failed")


async def test_a_turn_is_stopped(page, stage):
    await say(page, "Go on for ever")
    turn = await stage.next_turn()
    turn.say("On and on")
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_be_visible()
    await page.get_by_role("button", name="Stop", exact=True).click()
    assert await stage.cancelled() == turn.session_id
    assert await asking == "cancelled"
    turn.end("cancelled")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def test_the_output_of_a_command_has_its_colours(page, stage):
    await say(page, "Run the tests")
    turn = await stage.next_turn()
    output = {"type": "text", "text": "\x1b[32m12 passed\x1b[0m, \x1b[1;31m1 failed\x1b[0m\n"}
    turn.start_call(status="in_progress", content=[{"type": "content", "content": output}])
    turn.finish_call(status="failed", content=[{"type": "content", "content": output}])
    turn.end()
    tool = page.locator(".tool")
    await expect(tool).to_contain_text("12 passed, 1 failed")
    await expect(tool).not_to_contain_text("[32m")
    await shoot(page, "command")


async def test_everything_can_be_done_by_keys(page, stage):
    await expect(composer(page)).to_be_focused()
    await page.keyboard.type("First line")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("second line")
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    await page.keyboard.press("Enter")
    turn = await stage.next_turn()
    assert turn.text == "First line\nsecond line"
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_have_class("ask permission armed")
    await card(page).get_by_role("button", name="Allow").focus()
    await page.keyboard.press("1")
    assert await asking == "yes"
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await page.keyboard.press("Alt+KeyI")
    await expect(page.get_by_role("listbox", name="Messages")).to_be_visible()
    await page.keyboard.press("Alt+KeyI")
    await page.keyboard.press("Alt+KeyS")
    for key in ("ArrowDown", "ArrowDown", "Home"):
        await page.keyboard.press(key)


async def test_our_own_agent_is_talked_with(browser, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("- - thought: Greet.\n  - text: 'Hello **there**.'\n")
    agent = [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"]
    with serving(tmp_path / "home", "--cwd", str(tmp_path), agent=agent) as served:
        page = await browser.new_page()
        await page.goto(served.url)
        await say(page, "Hi")
        await expect(agent_messages(page).locator("strong")).to_have_text("there")
        await page.close()


async def test_what_is_typed_when_a_question_comes_goes_into_the_message_and_answers_nothing(page, stage):
    await say(page, "Fix it")
    turn = await stage.next_turn()
    turn.start_call(status="pending")
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_be_visible()
    await page.keyboard.type("my next 1 message")
    await expect(composer(page)).to_have_value("my next 1 message")
    assert not asking.done()
    await card(page).get_by_role("button", name="Reject").click()
    assert await asking == "no"
    turn.end()
