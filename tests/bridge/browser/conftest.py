"""A real Chromium with a real `dragoman serve` and an agent that the test plays.

A test fails if the page logs an error, throws, or sends a request to another origin. Tests save screenshots of
interesting states in `screenshots/`.
"""

import re
import urllib.parse
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.bridge.browser.browser_bridge import BrowserBridge
from tests.bridge.browser.modules import open_modules
from tests.bridge.browser.pages import SCREENSHOTS, composer
from tests.chromium import find_browser, launch_options

DESK = {"width": 1280, "height": 800}
THERE = re.compile("Connected|Working|Waiting")

expect.set_options(timeout=30_000)


def pytest_collection_modifyitems(items):
    """Run these tests on one event loop, because they share the browser on it."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser():
    """One browser for all tests of this process."""
    if find_browser() is None:
        pytest.skip("no Chromium is here; `scripts/browser` installs it or says what to do")
    SCREENSHOTS.mkdir(exist_ok=True)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(**launch_options())
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def spare_bridges():
    """Unused or cleaned bridges for the next tests."""
    spare = []
    yield spare
    for bridge in spare:
        await bridge.close()


@pytest.fixture
def own_bridge():
    """A new bridge, for tests that count messages, change the agent or break it."""


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(request, spare_bridges, tmp_path_factory):
    """A bridge with its agent and proxy."""
    is_shared = "own_bridge" not in request.fixturenames
    if is_shared and spare_bridges:
        made = spare_bridges.pop()
    else:
        made = BrowserBridge()
        await made.open(tmp_path_factory.mktemp("bridge"))
    yield made
    if is_shared and made.is_as_it_was:
        spare_bridges.append(made)
    else:
        await made.close()


@pytest.fixture
def agent(bridge):
    """The agent that the test plays."""
    return bridge.agent


@pytest.fixture
def proxy(bridge):
    """The proxy between browser and bridge, which the test can cut."""
    return bridge.proxy


class Faults(list):
    """Collects errors of pages. A test allows expected ones by pattern."""

    def __init__(self, origin):
        super().__init__()
        self._origin = origin
        self._allowed = []

    def allow(self, pattern):
        self._allowed.append(re.compile(pattern))

    def watch(self, page):
        page.on("console", lambda message: message.type == "error" and self._note(message.text))
        page.on("pageerror", lambda error: self._note(f"uncaught: {error}"))
        page.on("dialog", lambda dialog: self._note(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in {"data", "blob"} and f"{parts.scheme}://{parts.netloc}" != self._origin:
            self._note(f"a request to elsewhere: {url}")

    def _note(self, words):
        self.append(words)

    @property
    def unexpected(self):
        return [words for words in self if not any(pattern.search(words) for pattern in self._allowed)]


class Visitor:
    """A logged-in browser profile. Its tabs share the cookie."""

    def __init__(self, context, origin):
        self.context = context
        self.faults = Faults(origin)
        self._origin = origin

    async def come(self, path="/"):
        """Open a tab and wait until it is ready for a message."""
        page = await self.context.new_page()
        page.visitor = self
        self.faults.watch(page)
        await page.goto(self._origin + path)
        await expect(composer(page)).to_be_visible()
        await expect(page.locator(".topbar-state")).to_contain_text(THERE)
        return page


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser, bridge):
    """`await visit(**options of the browser context)`: a page that logged in with a link."""
    async with AsyncExitStack() as stack:
        visitors, pages = [], []

        async def visit(path=None, **options):
            context = await browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
            stack.push_async_callback(context.close)
            visitors.append(Visitor(context, bridge.proxy.origin))
            pages.append(await visitors[-1].come(path or bridge.make_link()))
            return pages[-1]

        yield visit
        if pages:
            await bridge.clear(pages[0])
    assert [words for visitor in visitors for words in visitor.faults.unexpected] == []


@pytest_asyncio.fixture(loop_scope="session")
async def page(visit):
    """A page on a desktop with the light theme."""
    return await visit(color_scheme="light")


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def page_of_modules(browser):
    async with open_modules(browser) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def modules(page_of_modules):
    """An empty page that can import our modules."""
    await page_of_modules.forget()
    return page_of_modules
