"""A bridge with its proxy and an agent that a test plays.

Starting all of this takes longer than most tests. A bridge is therefore used again if the test left it clean: every
turn has ended, every question is answered, all sessions are deleted, and the directory is empty. Other bridges are
thrown away.
"""

import json
from contextlib import ExitStack

from playwright.async_api import Error

from tests.bridge.browser.played_agent import PlayedAgent
from tests.bridge.cuttable_proxy import CuttableProxy
from tests.bridge.guard.serving import serving
from tests.process_state import SHARED_CHILDREN

DELETE_ALL = """async () => {
    const all = await dragoman.lists.all({ search: "", groups: ["sessions", "runs", "archived"] });
    for (const { sessionId } of all) await dragoman.deleteSession(sessionId);
}"""


class BrowserBridge:
    """A served bridge, the agent that the test plays, and the bridge's proxy."""

    def __init__(self):
        self.agent = PlayedAgent()
        self.proxy = CuttableProxy()
        self._stack = ExitStack()
        self._is_clear = True

    async def open(self, directory):
        self._work = directory / "work"
        self._work.mkdir()
        await self.agent.open()
        await self.proxy.open()
        names = ["--allow-host", self.proxy.host, "--allow-origin", self.proxy.origin]
        running = serving(directory / "home", "--cwd", str(self._work), *names, agent=self.agent.command)
        self.served = self._stack.enter_context(running)
        SHARED_CHILDREN.add(self.served.process.pid)
        self.proxy.port_beyond = self.served.port

    async def close(self):
        self._stack.close()
        await self.proxy.close()
        await self.agent.close()

    def make_link(self):
        """Return the path of a link that logs in one browser."""
        answer = self.served.ask("POST /link", self.served.bearer)
        return "/" + json.loads(answer.body)["path"].removeprefix("./").removeprefix("/")

    async def clear(self, page):
        """Delete all sessions through the page's API."""
        self._is_clear = False
        if not self.agent.is_idle or self.proxy.is_cut:
            return
        try:
            await page.evaluate(DELETE_ALL)
        except Error:
            return  # the page is in a state without deletion, so the next test gets another bridge
        self._is_clear = self.agent.forget()

    @property
    def is_as_it_was(self):
        return self._is_clear and self.agent.starts <= 1 and not any(self._work.iterdir())
