"""A session with ten thousand updates. All of them arrive, and the page stays responsive."""

import asyncio
import os

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, say

COUNT = 10_000
A_SECOND = 1_000

WATCH = """() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
    }).observe({ type: "longtask" });
}"""


async def stream(turn, count, a_second=None):
    """Send `count` words, in steps of a tenth of a second if a rate is given."""
    clock = asyncio.get_running_loop().time
    began = clock()
    for number in range(count):
        turn.say(f"word{number}{'. ' if number % 20 else '.' + chr(10) * 2}")
        if number % 100 == 99:
            await turn.agent.drain()
            if a_second:
                await asyncio.sleep(max(0, began + number / a_second - clock()))
    turn.end()


async def read_all(page):
    blocks = "dragoman.state.session.transcript.items.flatMap((item) => item.blocks ?? [])"
    return await page.evaluate(f"{blocks}.map((block) => block.text).join('')")


async def test_ten_thousand_updates_arrive_in_order(page, agent):
    await say(page, "Much")
    turn = await agent.next_turn()
    await stream(turn, COUNT)
    await expect(agent_messages(page).last).to_contain_text(f"word{COUNT - 1}", timeout=30_000)
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    words = (await read_all(page)).removeprefix("Much").replace(".", " ").split()
    assert words == [f"word{number}" for number in range(COUNT)]


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="`make soak` runs it: it needs a machine at rest")
async def test_page_stays_responsive_under_fast_updates(page, agent, record_property):
    await page.evaluate(WATCH)
    await say(page, "Much")
    turn = await agent.next_turn()
    await stream(turn, COUNT, A_SECOND)
    await expect(agent_messages(page).last).to_contain_text(f"word{COUNT - 1}", timeout=30_000)
    longest_ms = await page.evaluate("globalThis.longest")
    record_property("longest_task_ms", longest_ms)
    print(f"longest task in the page: {longest_ms:.0f} ms")
    assert longest_ms < 200
