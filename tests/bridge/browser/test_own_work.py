"""Work that the agent begins by itself, which version 2 of ACP has: the page shows it running, and can stop it."""

import json
import sys
from pathlib import Path

from playwright.async_api import expect

from tests.bridge.browser.pages import agent_messages, say
from tests.bridge.guard.serving import serving

AGENT = Path(__file__).parent.parent / "agents" / "agent_v2.py"


async def test_the_page_shows_work_that_nobody_asked_for(browser, tmp_path):
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
