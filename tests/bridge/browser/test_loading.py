"""Files of the page that fail to load. The page is never blank and says what to do."""

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import composer, say, session_path, shoot
from tests.waiting import until

MODULE, STYLES, SIDEBAR = "**/js/text/safe.js", "**/css/layout.css", "**/js/sidebar/sidebar.js"
BROKEN = "net::ERR_CONNECTION_RESET|Failed to fetch dynamically imported module"


class Requests:
    """Requests for one file. The first ones fail like in a network change, or hang."""

    def __init__(self, failing, *, hang=False):
        self.count = 0
        self._failing = failing
        self._hang = hang

    async def __call__(self, route):
        self.count += 1
        if self.count > self._failing:
            await route.continue_()
        elif not self._hang:
            await route.abort("connectionreset")


async def reload_without(page, file, *, times, hang=False):
    page.visitor.faults.allow(BROKEN)
    requests = Requests(times, hang=hang)
    await page.route(file, requests)
    await page.reload(wait_until="commit")
    return requests


def failure(page):
    return page.locator(".loading-failed")


@pytest.mark.parametrize("file", [MODULE, STYLES])
async def test_file_that_fails_once_is_retried(page, file):
    requests = await reload_without(page, file, times=1)
    await until(lambda: requests.count >= 2)
    await expect(composer(page)).to_be_visible()
    await expect(failure(page)).to_have_count(0)
    assert await page.evaluate("sessionStorage.length") == 0, "the next failure is not tried again"


@pytest.mark.basic
async def test_missing_file_is_reported_with_a_reload_button(page, agent):
    await say(page, "Hello")
    (await agent.next_turn()).end()
    path = await session_path(page)
    requests = await reload_without(page, MODULE, times=2)
    await expect(failure(page)).to_be_visible()
    await expect(page.get_by_role("heading", name="Part of this page could not be loaded")).to_be_visible()
    await expect(page.get_by_text("Loading…")).to_be_hidden()
    assert requests.count == 2, "it reloaded by itself more or less than once"
    assert await barriers(page) == []
    await shoot(page, "loading_failed")
    await page.get_by_role("button", name="Reload").click()
    await expect(composer(page)).to_be_visible()
    assert page.url.endswith(path), "the session is no longer named"


async def test_missing_styles_do_not_reload_the_page_for_ever(page):
    requests = await reload_without(page, STYLES, times=5)
    await expect(page.locator("html.load-failed")).to_be_attached()
    assert requests.count == 2, "it reloaded by itself more or less than once"
    await expect(composer(page)).to_be_visible()
    assert await page.evaluate("sessionStorage.length") == 1, "the next load would be tried again"


async def test_hanging_file_is_reported_after_a_while(page):
    await reload_without(page, MODULE, times=1, hang=True)
    await expect(page.get_by_text("Loading…")).to_be_visible()
    await expect(failure(page)).to_be_hidden()
    await shoot(page, "loading")
    await page.evaluate("for (const animation of document.getAnimations()) animation.finish()")
    await expect(failure(page)).to_be_visible()
    await page.get_by_role("button", name="Reload").click()
    await expect(composer(page)).to_be_visible()


async def test_conversation_works_without_the_session_list(page):
    await reload_without(page, SIDEBAR, times=1)
    await expect(composer(page)).to_be_visible()
    await expect(page.locator("#sidebar")).to_contain_text("The session list could not be loaded.")
    await shoot(page, "loading_sidebar")
    await page.locator("#sidebar").get_by_role("button", name="Reload").click()
    await expect(page.get_by_role("button", name="New session")).to_be_visible()
