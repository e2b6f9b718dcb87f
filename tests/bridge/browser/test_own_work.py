"""Our own agent on the page: work that it starts without a prompt, and edited messages in a fork."""

import json
import sys
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, composer, say, user_messages
from tests.bridge.guard.serving import serving

AGENT = Path(__file__).parent.parent / "agents" / "agent_v2.py"


@pytest.mark.basic
async def test_page_shows_work_started_by_the_agent(browser, tmp_path):
    gate = tmp_path / "gate"
    steps = [{"say": "Done."}, {"later": str(gate)}]
    with serving(tmp_path / "home", "--cwd", str(tmp_path), agent=[sys.executable, str(AGENT)]) as served:
        page = await browser.new_page()
        await page.goto(served.url)
        await say(page, f"/steps {json.dumps(steps)}")
        await expect(agent_messages(page)).to_have_text("Done.")
        stop = page.get_by_role("button", name="Stop", exact=True)
        await expect(stop).to_be_hidden()
        gate.touch()
        await expect(agent_messages(page).last).to_have_text("by myself")
        await expect(stop).to_be_visible()
        await page.reload()
        await expect(agent_messages(page)).to_have_count(2)
        await expect(stop).to_be_visible()
        (tmp_path / "gate.end").touch()
        await expect(stop).to_be_hidden()
        await page.close()


SCRIPT = """
- - text: "First."
- - text: "Second."
- - text: "Third."
- - text: "Fourth."
"""


async def test_edited_message_goes_into_a_fork_before_it(browser, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    with serving(tmp_path / "home", "--cwd", str(tmp_path), "--model", f"script:{script}", agent=()) as served:
        page = await browser.new_page()
        await page.goto(served.url)
        for count, text in enumerate(("one", "again", "again"), 1):
            await say(page, text)
            await expect(agent_messages(page)).to_have_count(count)
            await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
        original = page.url
        await page.locator(".message-user").nth(2).hover()
        await page.get_by_role("button", name="Edit", exact=True).nth(2).click()
        await expect(page.locator(".resend")).to_contain_text("a fork of this session that ends before this message")
        await composer(page).fill("better")
        await composer(page).press("Enter")
        await expect(user_messages(page)).to_have_text(["one", "again", "better"])
        await expect(agent_messages(page)).to_have_count(3)
        assert page.url != original
        await page.reload()
        await expect(user_messages(page)).to_have_text(["one", "again", "better"])
        await page.goto(original)  # another fragment in the same tab
        await expect(user_messages(page)).to_have_text(["one", "again", "again"])
        await page.close()
