"""Agents that do not start."""

import sys

import pytest
from playwright.async_api import expect

from tests.bridge.guard.serving import serving


@pytest.mark.basic
async def test_failed_agent_start_shows_its_stderr(browser, tmp_path):
    agent = [sys.executable, "-c", "import sys; sys.exit('no key: set SOME_KEY')"]
    with serving(tmp_path / "home", agent=agent) as running:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(running.url)
        banner = page.locator(".banner")
        await expect(banner).to_contain_text("The agent could not start. The agent exited with code 1")
        await banner.get_by_text("Agent output").click()
        await expect(banner).to_contain_text("no key: set SOME_KEY")
        await context.close()
