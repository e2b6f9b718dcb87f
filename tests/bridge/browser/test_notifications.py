"""Notifications of the browser while the page is hidden.

The browser of the tests shows none, so the two things of it that they need are replaced: the notification itself, which
is written down, and whether the page is hidden, which the test says.
"""

import asyncio

from playwright.async_api import expect

from tests.bridge.browser.pages import card, say

RECORDING = """
globalThis.shown = [];
globalThis.Notification = class {
  static permission = "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(words, { body }) { shown.push([words, body]); }
};
let hidden = false;
Object.defineProperty(document, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
globalThis.hide = (now) => { hidden = now; };
"""


async def test_a_hidden_page_tells_of_questions_and_ends_once_somebody_has_asked_for_it(page, agent):
    await page.add_init_script(RECORDING)
    await page.reload()
    await say(page, "Fix it")
    turn = await agent.next_turn()
    await page.evaluate("hide(true)")
    first = asyncio.ensure_future(turn.ask())
    await expect(page.locator(".session-badge")).to_contain_text("1 question waits")
    await page.evaluate("hide(false)")
    await card(page).get_by_role("button", name="Allow").click()
    await first
    await page.get_by_role("button", name="Notifications: off").click()
    await expect(page.get_by_role("button", name="Notifications: on")).to_be_visible()
    assert await page.evaluate("shown") == [], "nobody had asked for one"
    await expect(page.locator(".session-badge")).to_have_count(0)
    await page.evaluate("hide(true)")
    second = asyncio.ensure_future(turn.ask())
    await page.wait_for_function("() => shown.length === 1")
    await page.evaluate("hide(false)")
    await card(page).last.get_by_role("button", name="Allow").click()
    await second
    await page.evaluate("hide(true)")
    turn.end()
    await page.wait_for_function("() => shown.length === 2")
    waits, ended = await page.evaluate("shown")
    assert (waits, ended) == (["A question waits for you", "Fix it"], ["The turn has ended", "Fix it"])
    await page.evaluate("hide(false)")
