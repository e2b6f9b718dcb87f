"""A client for the official suite: our agent with the bridge, used in a browser.

`python -m tests.conformance.browser_driver URL` starts a session on the page, follows the login link of the server's
card, and makes the agent call the server's tool. It fails if the page does not get that far. `conformance client
--command … --scenario auth/…` starts it, and judges the requests to the server.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright, expect

from tests.bridge.browser.pages import agent_messages, composer, say
from tests.bridge.guard.serving import serving
from tests.chromium import launch_options

SCRIPT = """
- - text: "Hello."
- - tool: {name: suite__test-tool, arguments: {}}
- - text: "It was called."
"""


async def log_in_and_call(served):
    """Act as the user. Return after the call."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**launch_options())
        page = await browser.new_page()
        await page.goto(served.url)
        await expect(composer(page)).to_be_visible()
        await say(page, "Hello")
        question = page.locator(".question.elicitation")
        async with page.context.expect_page() as opening:
            await question.get_by_role("link", name="Log in at").click()
        returned = await opening.value  # the suite's server allows the login without a user
        await expect(returned.get_by_role("heading")).to_have_text("You are logged in to suite")
        await expect(question).to_contain_text("You are logged in to suite")
        await say(page, "Call it")
        await expect(agent_messages(page).last).to_contain_text("It was called.")
        await browser.close()


def main(url):
    """Serve our agent with the suite's server, and use it."""
    expect.set_options(timeout=20_000)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "work").mkdir()
        (place / "script.yaml").write_text(SCRIPT)
        servers = {"suite": {"type": "http", "url": url, "permission": "allow"}}
        (place / "dragoman.yaml").write_text(json.dumps({"mcpServers": servers}))
        options = ["--cwd", str(place / "work"), "--model", f"script:{place / 'script.yaml'}"]
        with serving(place, *options, agent=()) as served:
            asyncio.run(log_in_and_call(served))


if __name__ == "__main__":
    main(sys.argv[-1])
