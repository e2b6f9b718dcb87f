"""Actions and locators on the page."""

import re
from pathlib import Path

from playwright.async_api import expect

SCREENSHOTS = Path(__file__).parent / "screenshots"
PHONE = {"width": 390, "height": 844}


def composer(page):
    return page.get_by_role("textbox", name="Message", exact=True)


async def say(page, text):
    """Write a message and send it."""
    await composer(page).fill(text)
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    await composer(page).press("Enter")


async def shoot(page, name):
    """Save a screenshot for review."""
    await page.screenshot(path=SCREENSHOTS / f"{name}.png")


def agent_messages(page):
    return page.locator(".message-agent .message-body")


def user_messages(page):
    return page.locator(".message-user .message-body")


def card(page):
    """Return the locator of the open question's card."""
    return page.get_by_role("alertdialog")


async def session_path(page):
    """Return the path of a page's session, without the origin."""
    await expect(page).to_have_url(re.compile("#.*session-"))
    return "/" + page.url.split("/", 3)[3]
