"""A message of several hundred kilobytes in small chunks: only its end is parsed and laid out again."""

import json

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, say, user_messages

PARAGRAPHS = 3_000
MAX_NODES = 5_000

SHOWS = """async (element, text) => {
    while (!element.textContent.includes(text)) await new Promise(requestAnimationFrame);
}"""


class Rendered(list):
    """The texts that a page sends to be rendered."""

    def watch(self, page):
        page.on("request", lambda request: request.url.endswith("/render") and self._see(request))

    def _see(self, request):
        self.append(json.loads(request.post_data)["markdown"])


@pytest.fixture
def rendered(page):
    watched = Rendered()
    watched.watch(page)
    return watched


async def stream(agent, page, pieces):
    await say(page, "Much")
    turn = await agent.next_turn()
    for number, piece in enumerate(pieces):
        turn.say(piece)
        if number % 200 == 199:
            await turn.agent.drain()
    return turn


async def test_long_message_is_parsed_once_and_keeps_few_nodes(page, agent, rendered):
    pieces = [f"Paragraph {n} has {word}. " for n in range(PARAGRAPHS) for word in ("**some**", "`more`", "words\n\n")]
    turn = await stream(agent, page, pieces)
    message = agent_messages(page).last
    await expect(message).to_contain_text(f"Paragraph {PARAGRAPHS - 1} has words")
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert await page.evaluate("document.querySelectorAll('*').length") < MAX_NODES
    assert max(map(len, rendered), default=0) < 1_000, "more than the last block was parsed"
    # All of it is there when the user scrolls back.
    await page.locator(".scroll").evaluate("(box) => { box.scrollTop = 0; }")
    await expect(message.get_by_text("Paragraph 0 has some.").first).to_be_in_viewport()
    assert await page.evaluate("document.querySelectorAll('*').length") < MAX_NODES
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert await message.evaluate("(element) => element.textContent.match(/Paragraph/g).length") == 3 * PARAGRAPHS
    await page.evaluate("dispatchEvent(new Event('afterprint'))")


@pytest.mark.parametrize(("first", "space", "last"), [("```text\n", "\n", "```\n\n"), ("Words ", " ", "\n\n")])
async def test_block_that_is_too_long_to_render_still_grows(page, agent, rendered, first, space, last):
    pieces = [f"line-{n:06} and words{space}" for n in range(8_000)]
    turn = await stream(agent, page, [first, *pieces])
    message = agent_messages(page).last
    await message.evaluate(SHOWS, "line-007999")
    turn.say(f"{last}The **end**.")
    turn.end()
    await message.evaluate(SHOWS, "The end.")
    text = await message.evaluate("(element) => element.textContent")
    assert [f"line-{n:06}" in text for n in range(8_000)].count(False) == 0
    assert sum(map(len, rendered)) < 3_000_000


async def test_long_prompt_looks_as_it_was_written(page, agent):
    lines = "\n".join(f"line {n}" for n in range(2_000))
    words = " ".join(f"word{n}" for n in range(3_000))
    await say(page, f"{lines}\n{words}")
    (await agent.next_turn()).end()
    shown = user_messages(page).last.locator(".text")
    assert await shown.evaluate("(element) => element.getElementsByClassName('text-part').length") > 1
    selected = await shown.evaluate(
        "(element) => (getSelection().selectAllChildren(element), getSelection().toString())"
    )
    assert selected == f"{lines}\n{words}"
