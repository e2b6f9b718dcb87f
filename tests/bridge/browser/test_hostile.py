"""Hostile text from an agent is shown as text. Nothing runs, and nothing is loaded from elsewhere.

The fixture watches console, errors, dialogs and requests of the pages. Each test checks which text is readable.
"""

import asyncio
import json

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, card, say, shoot

SCRIPT = "<script>globalThis.broken = 1</script>"
PICTURE = '<img src="https://evil.example/x.png" onerror="globalThis.broken = 2">'
SVG = '<svg onload="globalThis.broken = 3"><script>globalThis.broken = 4</script></svg>'
HOSTILE = f"{SCRIPT}{PICTURE}{SVG}\"'><b>bold</b>${{7*7}}{{{{7*7}}}}"
ANSI_LINK = "\x1b]8;;javascript:globalThis.broken=5\x07press me\x1b]8;;\x07"
ANSI = f"\x1b[31m{HOSTILE}\x1b[0m {ANSI_LINK} \x1b]0;title\x07\x1b[2J\x1b[999;999H\x1b[38;2;1;2;3mx\x1b[0m"
MARKDOWN = f"""{HOSTILE}

[press](javascript:globalThis.broken=6) ![p](https://evil.example/p.png) <https://evil.example/"onmouseover=x>

```html
{HOSTILE}
```

```"><img/src=x/onerror=globalThis.broken=7>
x
```
"""


async def whole(page):
    """Check that nothing ran and that the page is intact."""
    assert await page.evaluate("globalThis.broken") is None
    assert await page.locator("b, script:not([src]), img[src^=http]").count() == 0


async def test_hostile_titles_and_paths_stay_text(page, agent):
    await say(page, HOSTILE)
    turn = await agent.next_turn()
    turn.title(HOSTILE)
    turn.start_call(title=HOSTILE, status="completed", locations=[{"path": f"/work/{HOSTILE}", "line": 1}])
    turn.end()
    await expect(page.locator(".session-title")).to_have_text(HOSTILE)
    await expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    await expect(page.locator(".tool-title")).to_have_text(HOSTILE)
    await expect(page).to_have_title(f"{HOSTILE} · Dragoman")
    await page.locator(".tool-header").click()
    await expect(page.locator(".tool .chip")).to_contain_text(SCRIPT)
    await shoot(page, "hostile")
    await whole(page)


@pytest.mark.basic
async def test_hostile_markdown_stays_harmless(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    turn.think(MARKDOWN)
    turn.say(MARKDOWN)
    turn.end()
    answer = agent_messages(page)
    await expect(answer.locator(".code").first).to_contain_text(SCRIPT)
    await expect(answer.locator("p").first).to_contain_text(PICTURE)
    await expect(answer.get_by_role("link", name="p", exact=True)).to_have_attribute("rel", "noopener noreferrer")
    assert await page.locator("a[href^=javascript]").count() == 0
    await whole(page)


@pytest.mark.basic
async def test_hostile_tool_output_stays_harmless(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    text = {"type": "content", "content": {"type": "text", "text": ANSI}}
    change = {"type": "diff", "path": f"/work/{HOSTILE}", "oldText": "x\n", "newText": f"{HOSTILE}\n"}
    turn.start_call("one", status="completed", content=[text], rawOutput={"text": HOSTILE})
    turn.start_call("two", status="completed", kind="edit", content=[change])
    turn.end()
    await expect(page.locator(".tool")).to_have_count(2)
    await expect(page.locator(".tool").first).to_contain_text(SCRIPT)
    await expect(page.locator(".tool").last).to_contain_text(SCRIPT)
    assert await page.locator("a[href^=javascript]").count() == 0
    await whole(page)


async def test_hostile_non_text_content_stays_harmless(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    drawing = {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9Imdsb2JhbFRoaXMuYnJva2VuPTgiLz4="}
    elsewhere = {"type": "image", "mimeType": "image/png", "data": "", "uri": "https://evil.example/x.png"}
    link = {"type": "resource_link", "name": HOSTILE, "uri": "javascript:globalThis.broken=9", "title": HOSTILE}
    resource = {"type": "resource", "resource": {"uri": "javascript:x", "mimeType": "text/html", "text": HOSTILE}}
    for content in (drawing, elsewhere, link, resource):
        turn.update("agent_message_chunk", content=content)
    turn.update("plan", entries=[{"content": HOSTILE, "priority": "high", "status": "pending"}])
    turn.update("available_commands_update", availableCommands=[{"name": HOSTILE, "description": HOSTILE}])
    turn.update(HOSTILE, content=HOSTILE)
    turn.say("end")
    turn.end()
    await expect(agent_messages(page)).to_contain_text("end")
    await expect(page.locator("main")).to_contain_text(SCRIPT)
    assert await page.locator("a[href^=javascript]").count() == 0
    await whole(page)


async def test_hostile_question_stays_harmless_and_answerable(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    asking = asyncio.ensure_future(turn.ask(title=HOSTILE, rawInput={"command": HOSTILE}))
    await expect(card(page)).to_contain_text(SCRIPT)
    await whole(page)
    await card(page).get_by_role("button", name="Allow").click()
    assert await asking == "yes"
    turn.end()


async def test_invisible_characters_in_titles_and_paths_are_escaped(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    turn.title("Clean up\u202e yadot")
    turn.start_call("one", title="Read \u2066x\u200b", status="completed", locations=[{"path": "/work/a\u202eb"}])
    change = {"type": "diff", "path": "/work/\u202ecod", "oldText": "a\n", "newText": "if x: #\u202e } \u2066end\n"}
    turn.start_call("two", status="completed", kind="edit", content=[change])
    turn.end()
    await expect(page.locator(".session-title")).to_have_text(r"Clean up\u202e yadot")
    await expect(page.get_by_role("heading", level=1)).to_have_text(r"Clean up\u202e yadot")
    await expect(page).to_have_title(r"Clean up\u202e yadot · Dragoman")
    await expect(page.locator(".tool-title").first).to_have_text(r"Read \u2066x\u200b")
    await page.locator(".tool-header").first.click()
    await expect(page.locator(".tool .chip").first).to_have_text(r"/work/a\u202eb")
    await expect(page.locator(".diff-path")).to_have_text(r"/work/\u202ecod")
    await expect(page.locator(".diff-add .diff-text")).to_have_text(r"if x: #\u202e } \u2066end")


@pytest.mark.parametrize("in_content", [False, True])
async def test_bidi_command_is_shown_as_it_runs(page, agent, in_content):
    command = "rm -rf ~ #\u202e'fdp.troper' tac\n\techo\x1b[8m hidden"
    shown = "rm -rf ~ #\\u202e'fdp.troper' tac\n\techo\\x1b[8m hidden"
    words = {"type": "content", "content": {"type": "text", "text": f"```\n{command}\n```"}}
    call = {"title": command, "rawInput": {"command": command}, "locations": [{"path": "/work/\u202ex", "line": 3}]}
    await say(page, "Go")
    turn = await agent.next_turn()
    asking = asyncio.ensure_future(turn.ask(**call, content=[words] if in_content else []))
    await expect(card(page).get_by_role("heading")).to_have_text("Run this command")
    flat = shown.replace("\n", r"\n").replace("\t", r"\t")
    await expect(card(page)).to_have_attribute("aria-label", f"The agent asks: {flat}?")
    await expect(card(page).locator("pre")).to_have_count(1)
    assert shown in await card(page).locator("pre").inner_text()
    await expect(card(page).locator(".chip")).to_have_text(r"/work/\u202ex:3")
    await shoot(page, f"permission-hidden{'-content' if in_content else ''}")
    assert not set("\u202e\x1b\u2066") & set(await card(page).inner_text())
    await card(page).get_by_role("button", name="Reject").click()
    assert await asking == "no"
    turn.end()


async def test_invisible_characters_in_server_names_and_questions_are_escaped(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    server = {"name": "git\u202e", "transport": "stdio", "state": "failed", "tools": 0, "reason": "no\u2066\ngo"}
    turn.update("session_info_update", _meta={"dragoman/mcp": [server]})
    params = {
        "sessionId": turn.session_id,
        "mode": "form",
        "message": "Who\u202e?",
        "requestedSchema": {"type": "object"},
    }
    asking = asyncio.ensure_future(agent.ask("elicitation/create", params))
    await expect(page.get_by_role("dialog").get_by_role("heading")).to_have_text(r"Who\u202e?")
    await page.locator(".servers-button").click()
    await expect(page.locator(".server-name")).to_contain_text(r"git\u202e")
    await expect(page.locator(".server-reason")).to_contain_text(r"no\u2066")
    await page.keyboard.press("Escape")
    await page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    await asking
    turn.end()


async def test_invisible_characters_in_forms_are_escaped(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    schema = {
        "type": "object",
        "description": "Read\u202e this",
        "properties": {
            "one": {"type": "string", "title": "Your\u202e name", "description": "As\u2066 written"},
            "t\u202ewo": {"type": "boolean"},
            "three": {"type": "string", "oneOf": [{"const": "a", "title": "A\u202e", "description": "first\u2066"}]},
            "four": {"type": "array", "items": {"type": "string", "enum": ["b\u202e"]}},
        },
    }
    params = {"sessionId": turn.session_id, "mode": "form", "message": "Who?", "requestedSchema": schema}
    asking = asyncio.ensure_future(agent.ask("elicitation/create", params))
    form = page.get_by_role("dialog")
    await expect(form.locator(".field-label").first).to_contain_text(r"Your\u202e name")
    await expect(form.locator(".switch").first).to_have_text(r"t\u202ewo")
    await expect(form.locator("option").last).to_have_text(r"A\u202e: first\u2066")
    await expect(form.locator(".many")).to_have_text(r"b\u202e")
    assert await form.locator(".field-hint").all_text_contents() == ["Read this", "As written"]
    await form.get_by_role("button", name="Decline").click()
    await asking
    turn.end()


async def test_output_cannot_reverse_its_surroundings(page, agent):
    await say(page, "Go")
    turn = await agent.next_turn()
    output = {"type": "content", "content": {"type": "text", "text": "open \u202egnp.exe\n"}}
    turn.start_call("one", status="completed", kind="execute", content=[output], rawInput={"x": "\u202ey"})
    turn.update("plan", entries=[{"content": "Step\u202e one", "priority": "high", "status": "pending"}])
    turn.update("notice", severity="info", title="Wait\u202ed", description="for\u2066 it")
    turn.end()
    await expect(page.locator(".output")).to_have_text("open gnp.exe")
    await expect(page.locator(".plan-current")).to_have_text(r"Step\u202e one")
    assert await page.locator(".notice p").all_text_contents() == ["Waitd", "for it"]
    await page.locator(".tool-raw summary").click()
    await expect(page.locator(".raw")).to_contain_text(r"\u202ey")


@pytest.mark.usefixtures("own_bridge")
async def test_wire_messages_are_shown_as_text(page, agent):
    await say(page, HOSTILE)
    turn = await agent.next_turn()
    turn.say(MARKDOWN)
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await page.get_by_role("button", name="Wire inspector").click()
    row = page.get_by_role("listbox", name="Messages").get_by_role("option").filter(has_text="agent_message_chunk")
    await row.click()
    await expect(page.locator(".wire-json")).to_contain_text(json.dumps(SCRIPT)[1:-1])
    await page.get_by_role("button", name="Diagram", exact=True).click()
    await expect(page.locator(".seq-message").first).to_be_attached()
    await whole(page)
