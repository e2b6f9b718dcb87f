"""A conversation: prompts, answers, permission requests and stopping."""

import asyncio
import base64
import re
import sys

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, card, composer, say, session_path, shoot, user_messages
from tests.bridge.guard.serving import serving

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

PICTURE = {
    "name": "dot.gif",
    "mimeType": "image/gif",
    "buffer": base64.b64decode("R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="),
}


@pytest.mark.basic
async def test_first_message_creates_a_session_with_a_markdown_answer(page, agent):
    await say(page, "Why is the last line missing?")
    turn = await agent.next_turn()
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


async def test_notice_replaces_the_one_with_its_key(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    for seconds in (1, 2, 4):
        meta = {"dragoman/notice": "retries"}
        turn.update("notice", severity="info", title=f"Busy; trying again in {seconds} s", _meta=meta)
        await expect(page.locator(".notice")).to_have_text(f"Busy; trying again in {seconds} s")
    turn.end()


async def test_notices_are_shown_separately_and_once(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    turn.update("agent_message_chunk", content={"type": "text", "text": "Half of it"}, messageId="one")
    void = {"content": {"type": "text", "text": ""}, "messageId": "one", "_meta": {"dragoman/void": True}}
    turn.update("agent_message_chunk", **void)
    words = "It <b>broke</b> off: run `make <i>it</i>`, not ``that`` or `this."
    turn.update("notice", severity="warning", title="Trying `again`", description=words)
    turn.update("agent_message_chunk", content={"type": "text", "text": "All of it"}, messageId="two")
    turn.end()
    shown = "Trying againIt <b>broke</b> off: run make <i>it</i>, not ``that`` or `this."
    await expect(page.locator(".notice")).to_have_text(shown)
    await expect(page.locator(".notice code")).to_have_text(["again", "make <i>it</i>"])
    await expect(page.locator(".message-agent.void .message-body")).to_have_text("Half of it")
    await expect(page.locator(".message-agent:not(.void) .message-body")).to_have_text("All of it")
    await page.reload()
    await expect(page.locator(".message-agent:not(.void) .message-body")).to_have_text("All of it")
    await expect(page.locator(".message-agent.void .message-body")).to_have_text("Half of it")
    await expect(page.locator(".notice")).to_have_count(0)


async def test_answer_is_shown_while_it_streams(page, agent):
    await say(page, "Count")
    turn = await agent.next_turn()
    turn.say("one ")
    await expect(agent_messages(page)).to_have_text("one ")
    turn.say("two")
    await expect(agent_messages(page)).to_have_text("one two")
    await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    await expect(page.locator(".session-state")).to_contain_text("Running")
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.locator(".session-state")).to_have_count(0)


async def test_permission_request_is_shown_and_allowed_by_a_click(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.start_call(title="Edit reader.py", kind="edit", status="pending", content=[CHANGE])
    asking = asyncio.ensure_future(turn.ask(title="Edit reader.py", kind="edit", content=[CHANGE]))
    await expect(card(page)).to_contain_text("Change this file")
    await expect(card(page)).to_contain_text("three")
    await expect(page.locator(".session-badge")).to_contain_text("1 request waiting")
    await shoot(page, "permission")
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.finish_call()
    turn.say("Done.")
    turn.end()
    await expect(agent_messages(page)).to_have_text("Done.")
    await expect(card(page)).to_have_count(0)
    await shoot(page, "allowed")


async def test_command_is_denied_by_a_key(page, agent):
    await say(page, "Clean up")
    turn = await agent.next_turn()
    turn.start_call(title="rm -rf build", status="pending", rawInput={"command": "rm -rf build"})
    asking = asyncio.ensure_future(turn.ask(title="rm -rf build", rawInput={"command": "rm -rf build"}))
    await expect(card(page)).to_have_class("question permission armed")
    await card(page).focus()
    await page.keyboard.press("Escape")
    assert await asking == "no"
    turn.finish_call(status="failed")
    turn.say("Then not.")
    turn.end()
    await expect(agent_messages(page)).to_have_text("Then not.")
    await expect(page.locator(".tool")).to_have_attribute("data-status", "failed")


@pytest.mark.basic
async def test_turn_can_be_stopped(page, agent):
    await say(page, "Go on for ever")
    turn = await agent.next_turn()
    turn.say("On and on")
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_be_visible()
    await page.get_by_role("button", name="Stop", exact=True).click()
    assert await agent.cancelled() == turn.session_id
    assert await asking == "cancelled"
    turn.end("cancelled")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def test_command_output_has_colours(page, agent):
    await say(page, "Run the tests")
    turn = await agent.next_turn()
    output = {"type": "text", "text": "\x1b[32m12 passed\x1b[0m, \x1b[1;31m1 failed\x1b[0m\n"}
    turn.start_call(status="in_progress", content=[{"type": "content", "content": output}])
    turn.finish_call(status="failed", content=[{"type": "content", "content": output}])
    turn.end()
    tool = page.locator(".tool")
    await expect(tool).to_contain_text("12 passed, 1 failed")
    await expect(tool).not_to_contain_text("[32m")
    await shoot(page, "command")


@pytest.mark.basic
async def test_conversation_works_by_keyboard(page, agent):
    await expect(composer(page)).to_be_focused()
    await page.keyboard.type("First line")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("second line")
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    await page.keyboard.press("Enter")
    turn = await agent.next_turn()
    assert turn.text == "First line\nsecond line"
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_have_class("question permission armed")
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


async def test_refused_message_returns_to_the_composer_with_its_error(page, agent):
    await page.locator("input[type=file]").set_input_files(PICTURE)
    await say(page, "Do it")
    (await agent.next_turn()).refuse("Not now", details="no key: set SOME_KEY")
    await expect(page.get_by_role("alert").filter(has_text="Not now: no key: set SOME_KEY")).to_be_visible()
    await expect(composer(page)).to_have_value("Do it")
    await expect(page.get_by_role("list", name="Attachments").get_by_role("listitem")).to_have_text("dot.gif")
    await shoot(page, "refused")
    await composer(page).press("Enter")
    turn = await agent.next_turn()
    turn.say("Now I can.")
    turn.end()
    items = page.locator(".items > .item")
    await expect(items).to_have_text(
        [re.compile("Do it"), re.compile("no key"), re.compile("Do it"), re.compile("Now I can")]
    )
    await expect(composer(page)).to_have_value("")


async def test_login_error_is_quoted_once(page, agent):
    words = "Please run `auggie login` to sign in."
    await say(page, "Do it")
    turn = await agent.next_turn()
    agent.send({"id": turn.id, "error": {"code": -32000, "message": "Authentication required", "data": words}})
    failure = page.get_by_role("alert").filter(has_text="auggie")
    await expect(failure).to_have_text("Please run auggie login to sign in.")
    await expect(failure.locator("code")).to_have_text("auggie login")


async def test_turn_that_fails_halfway_is_not_repeated(page, agent):
    await say(page, "Do it")
    turn = await agent.next_turn()
    turn.say("I began")
    turn.refuse("Out of breath")
    await expect(page.get_by_role("alert").filter(has_text="Out of breath")).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(composer(page)).to_have_value("")


async def test_turn_end_is_shown_after_a_reload_and_to_others(page, agent):
    for words, end in (("one", "cancelled"), ("two", "refusal"), ("three", "max_tokens")):
        await say(page, words)
        (await agent.next_turn()).end(end)
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await say(page, "four")
    turn = await agent.next_turn()
    turn.say("I began")
    turn.refuse("Out of breath")
    ends = ["Stopped.", "The agent declined this prompt.", re.compile("answer was cut"), "Out of breath."]
    await expect(page.locator(".item > .note")).to_have_text(ends)
    other = await page.visitor.come(await session_path(page))
    await page.reload()
    for each in (page, other):
        await expect(each.locator(".item > .note")).to_have_text(ends)
        await expect(each.get_by_role("log").get_by_role("alert")).to_have_text(["Out of breath."])
    await shoot(page, "ends")


async def test_files_named_in_the_conversation_can_be_mentioned(page, agent):
    await composer(page).fill("See @")
    await expect(page.locator(".completion-foot")).to_contain_text("No file matches.")
    await say(page, "Look around")
    turn = await agent.next_turn()
    cwd = agent.params_of("session/new")["cwd"]
    turn.start_call("one", kind="read", status="completed", locations=[{"path": f"{cwd}/src/reader.py"}])
    turn.say("It is in `src/parts/writer.py`.")
    turn.end()
    await expect(agent_messages(page)).to_contain_text("writer.py")
    await composer(page).fill("See @")
    options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await expect(options).to_have_text(["writer.pysrc/parts/", "reader.pysrc/"])
    await composer(page).press_sequentially("rea")
    await expect(options.first).to_have_text("reader.pysrc/")
    await composer(page).press("Enter")
    await expect(composer(page)).to_have_value("See @src/reader.py ")
    await composer(page).press("Enter")
    (await agent.next_turn()).end()
    link = {"type": "resource_link", "uri": f"file://{cwd}/src/reader.py", "name": "reader.py"}
    assert agent.params_of("session/prompt")["prompt"] == [{"type": "text", "text": "See @src/reader.py "}, link]


async def test_scrolled_up_reader_stays_and_sees_a_hint(page, agent):
    await say(page, "Much")
    turn = await agent.next_turn()
    turn.say("".join(f"Line {number}.\n\n" for number in range(60)))
    await expect(agent_messages(page).get_by_text("Line 59.")).to_be_in_viewport()
    box = page.locator(".scroll")
    await box.evaluate("box => { box.scrollTop = 20; }")
    await expect(page.get_by_role("button", name="Newest")).to_be_visible()
    turn.say("And one more.")
    await expect(agent_messages(page)).to_contain_text("And one more.")
    assert await box.evaluate("box => box.scrollTop") == 20
    await page.get_by_role("button", name="New messages").click()
    await expect(agent_messages(page).get_by_text("And one more.")).to_be_in_viewport()
    await expect(page.get_by_role("button", name="New messages")).to_be_hidden()
    turn.end()


@pytest.mark.basic
async def test_page_talks_with_our_agent(browser, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("- - thought: Greet.\n  - text: 'Hello **there**.'\n")
    agent = [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}"]
    with serving(tmp_path / "home", "--cwd", str(tmp_path), agent=agent) as served:
        page = await browser.new_page()
        await page.goto(served.url)
        await say(page, "Hi")
        await expect(agent_messages(page).locator("strong")).to_have_text("there")
        await page.close()


async def test_typing_when_a_question_appears_does_not_answer_it(page, agent):
    await say(page, "Fix it")
    turn = await agent.next_turn()
    turn.start_call(status="pending")
    asking = asyncio.ensure_future(turn.ask())
    await expect(card(page)).to_be_visible()
    await page.keyboard.type("my next 1 message")
    await expect(composer(page)).to_have_value("my next 1 message")
    assert not asking.done()
    await card(page).get_by_role("button", name="Reject").click()
    assert await asking == "no"
    turn.end()
