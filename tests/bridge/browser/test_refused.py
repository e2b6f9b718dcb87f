"""Refused browsers: each visitor sees what to do next."""

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, composer, shoot

USED = "This link was already used or has expired"


@pytest.mark.parametrize(
    ("query", "title", "words", "others"),
    [
        ("?refused=reader", USED, "Ask the person who sent it", "dragoman serve"),
        ("?refused=owner", USED, "Press Enter in the terminal where dragoman serve runs", "read-only"),
        ("", "Sign in to this bridge", "You need a sign-in link", "already used"),
        ("?refused=toString", "Sign in to this bridge", "You need a sign-in link", "already used"),
    ],
)
async def test_refusal_text_depends_on_the_visitor(browser, bridge, query, title, words, others):
    async with await browser.new_context(viewport=PHONE) as context:
        page = await context.new_page()
        await page.goto(f"{bridge.proxy.origin}/{query}")
        await expect(page.get_by_role("heading")).to_have_text(title)
        await expect(page.get_by_role("main")).to_contain_text(words)
        await expect(page.get_by_role("main")).not_to_contain_text(others)
        assert await barriers(page) == []
        await shoot(page, f"refused{query.removeprefix('?refused=') and '-' + query.removeprefix('?refused=')}")


@pytest.mark.basic
async def test_pasted_link_logs_a_refused_browser_in(browser, bridge):
    async with await browser.new_context() as context:
        page = await context.new_page()
        await page.goto(f"{bridge.proxy.origin}/login?code=used&for=reader")
        await page.get_by_label("A new link").fill(bridge.proxy.origin + bridge.make_link())
        await page.get_by_role("button", name="Sign in").click()
        await expect(composer(page)).to_be_visible()
        assert "refused" not in page.url
