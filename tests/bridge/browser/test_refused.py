"""A browser that is not let in: each person reads what to do next."""

import pytest
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, composer, shoot

USED = "This link was used already, or is too old"


@pytest.mark.parametrize(
    ("query", "title", "words", "others"),
    [
        ("?refused=reader", USED, "Ask the person who sent it", "dragoman serve"),
        ("?refused=owner", USED, "Press Enter where dragoman serve runs", "read along"),
        ("", "This browser is not let in yet", "This page opens by a link", "used already"),
        ("?refused=toString", "This browser is not let in yet", "This page opens by a link", "used already"),
    ],
)
async def test_the_words_are_for_the_person_who_came(browser, bridge, query, title, words, others):
    async with await browser.new_context(viewport=PHONE) as context:
        page = await context.new_page()
        await page.goto(f"{bridge.proxy.origin}/{query}")
        await expect(page.get_by_role("heading")).to_have_text(title)
        await expect(page.get_by_role("main")).to_contain_text(words)
        await expect(page.get_by_role("main")).not_to_contain_text(others)
        assert await barriers(page) == []
        await shoot(page, f"refused{query.removeprefix('?refused=') and '-' + query.removeprefix('?refused=')}")


async def test_a_fresh_link_that_is_pasted_lets_a_refused_browser_in(browser, bridge):
    async with await browser.new_context() as context:
        page = await context.new_page()
        await page.goto(f"{bridge.proxy.origin}/login?code=used&for=reader")
        await page.get_by_label("A fresh link").fill(bridge.proxy.origin + bridge.make_link())
        await page.get_by_role("button", name="Go in").click()
        await expect(composer(page)).to_be_visible()
        assert "refused" not in page.url
