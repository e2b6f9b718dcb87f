"""Streaming Markdown never shows its marks, neither live nor after a reload."""

import re

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, say, session_path

# Pieces of an answer that end inside a mark, each with the last words that can be shown then.
PIECES = [
    ("**Fou", "Fou"),
    ("nd** it: `reader", "reader"),
    (".py` drops the *la", "la"),
    ("st* line, see [the rep", "see"),
    ("ort](https://example.org/report).\n\n- **fir", "fir"),
    ("st** step\n- [ ] second `st", "st"),
    ("ep`\n\n```py", "step"),
    ("thon\nx = read(path)\n``", "x = read(path)"),
    ("`\n\n| file | lines |\n|--", "x = read(path)"),
    ("-|---:|\n| a | **2", "2"),
    ("** |\n\nDone.", "Done."),
]
WORDS = ["Found it: reader.py drops the last line, see the report.", "first step", "x = read(path)", "lines", "Done."]

# Every changed state of the document is checked, including states between two frames.
WATCH = """
globalThis.seen = [];
const visible = (block) => getComputedStyle(block).opacity !== "0";
const look = () => {
  for (const block of document.querySelectorAll(".message-agent .block")) {
    const text = visible(block) ? block.innerText : "";
    if (/[*`|[]|\\]\\(|---/.test(text)) globalThis.seen.push(text);
  }
};
new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
"""


@pytest.mark.basic
async def test_markdown_marks_are_never_visible(page, agent):
    await say(page, "Why?")
    await page.evaluate(WATCH)
    turn = await agent.next_turn()
    for piece, last in PIECES:
        for char in piece:
            turn.say(char)
        await expect(agent_messages(page).locator(".block:not([data-state=waiting])").last).to_have_text(
            re.compile(f"{re.escape(last)}\\s*$")
        )
    turn.end()
    await expect_all(page)
    assert await page.evaluate("seen") == []
    other = await page.context.new_page()
    await other.add_init_script(WATCH)
    await other.goto(page.url.split("#")[0] + (await session_path(page)).lstrip("/"))
    await expect_all(other)
    assert await other.evaluate("seen") == []


async def expect_all(page):
    for words in WORDS:
        await expect(agent_messages(page)).to_contain_text(words)
    await expect(agent_messages(page).locator("strong")).to_have_count(3)
    await expect(agent_messages(page).locator("table td")).to_have_count(2)


async def test_text_is_shown_raw_if_rendering_fails(page, agent):
    page.visitor.faults.allow("Failed to load resource")
    await page.route("**/render", lambda route: route.fulfill(status=500))
    await say(page, "Go")
    turn = await agent.next_turn()
    turn.say("**Bold** words")
    turn.end()
    await expect(agent_messages(page)).to_have_text("**Bold** words")
    await expect(agent_messages(page).locator(".block")).to_have_css("opacity", "1")
