"""Agents that do not start."""

import sys

from playwright.async_api import expect

from tests.bridge.guard.serving import serving


async def test_an_agent_that_does_not_start_is_told_with_what_it_wrote(browser, tmp_path):
    agent = [sys.executable, "-c", "import sys; sys.exit('no key: set SOME_KEY')"]
    with serving(tmp_path / "home", agent=agent) as running:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(running.url)
        banner = page.locator(".banner")
        await expect(banner).to_contain_text("The agent does not start. The agent exited with code 1")
        await banner.get_by_text("What it wrote").click()
        await expect(banner).to_contain_text("no key: set SOME_KEY")
        await context.close()
