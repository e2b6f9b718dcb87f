"""A sidebar with more sessions than it loads at once. Its texts are right for unloaded sessions as well."""

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.browser_bridge import BrowserBridge
from tests.bridge.browser.pages import shoot
from tests.bridge.earlier_sessions import write_sessions

SESSIONS = 260
PROJECTS = 40
LABELS = {
    **{number: {"archived": True} for number in range(150, 153)},
    **{number: {"origin": "run"} for number in range(200, 205)},
    **{number: {"title": f"Yellow {number}"} for number in range(230, 235)},
}
FIRST = 100


class CrowdedBridge(BrowserBridge):
    """A bridge with sessions of an earlier run, shared by all tests of this file."""

    async def clear(self, page):
        """Keep all sessions."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def crowded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("crowded")
    write_sessions(directory / "home", "python", SESSIONS, projects=PROJECTS, labels=LABELS)
    made = CrowdedBridge()
    made.agent.capabilities["sessionCapabilities"] = {"delete": {}}
    await made.open(directory)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(crowded):
    yield crowded


def rows(page):
    return page.locator(".session-item")


def search(page):
    return page.get_by_role("searchbox", name="Search sessions")


@pytest.mark.basic
async def test_latest_sessions_come_first_and_older_on_demand(page):
    await expect(rows(page)).to_have_count(FIRST)
    await expect(page.locator(".session-title").first).to_have_text("Part 0")
    archived, runs = page.get_by_role("button", name="Archived 3"), page.get_by_role("button", name="Runs 5")
    await expect(archived).to_be_visible()
    await archived.click()
    await expect(page.locator(".session-title").filter(has_text="Part 152")).to_be_visible()
    await archived.click()
    await expect(rows(page)).to_have_count(FIRST)
    older = page.get_by_role("button", name="Show older sessions")
    await older.focus()
    await page.keyboard.press("Enter")
    await expect(rows(page)).to_have_count(2 * FIRST)
    await expect(older).to_be_focused()
    assert await barriers(page) == []
    await older.click()
    await expect(older).to_have_count(0)
    await expect(page.locator(".session-open:focus")).to_contain_text("Part 208")  # the first of the newly loaded ones
    await expect(page.locator(".session-title").filter(has_text="Part 259")).to_have_count(1)
    await runs.click()
    await expect(page.locator(".session-title").filter(has_text="Part 204")).to_have_count(1)


async def test_search_finds_unloaded_sessions(page):
    await expect(rows(page)).to_have_count(FIRST)
    await search(page).fill("part 259")
    await expect(page.locator(".session-title")).to_have_text(["Part 259"])
    await search(page).fill("part 204")  # a program's session
    await expect(page.locator(".session-title")).to_have_text(["Part 204"])
    await search(page).fill("")
    await expect(rows(page)).to_have_count(FIRST)
    await expect(page.locator(".session-title").filter(has_text="Part 259")).to_have_count(0)


async def test_projects_include_unloaded_sessions(page):
    await page.get_by_role("combobox", name="Group sessions by").select_option("By project")
    await expect(page.get_by_role("heading", name="project-29", exact=True)).to_have_count(1)
    await expect(page.get_by_role("heading", name="project-30", exact=True)).to_have_count(0)
    first = page.get_by_role("region", name="/earlier/project-7", exact=True)
    await expect(first.locator(".session-item")).to_have_count(5)
    await first.get_by_role("button", name="Show older sessions").click()
    await expect(first.locator(".session-title").last).to_have_text("Part 247")
    await page.get_by_role("button", name="Show older projects").click()
    await expect(page.get_by_role("heading", name="project-39", exact=True)).to_have_count(1)
    await shoot(page, "projects")


async def test_link_opens_an_unloaded_session_in_its_directory(page):
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(json.loads(frame))))
    await page.evaluate("history.replaceState(null, '', '#python/earlier-251')")
    await page.reload()
    await expect(page.locator(".topbar-where")).to_have_text("/earlier/project-11")
    await expect(page.locator("[aria-current]")).to_contain_text("Part 251")
    await expect(rows(page)).to_have_count(FIRST + 1)
    [load] = [each for each in sent if each.get("method") == "session/load"]
    assert load["params"]["cwd"] == "/earlier/project-11"


async def test_last_of_several_links_wins(page):
    await page.evaluate("dragoman.openSession('earlier-251'), dragoman.openSession('earlier-252')")
    await expect(page.locator("[aria-current]")).to_contain_text("Part 252")
    assert page.url.endswith("earlier-252")


async def test_abandoned_link_opens_nothing(page):
    await page.evaluate("dragoman.openSession('earlier-253'), dragoman.leaveSession()")
    await page.evaluate("dragoman.connection.request('_dragoman/sessions', { limit: 0 })")  # answered in order
    assert await page.evaluate("dragoman.state.session") is None


async def test_search_results_are_deleted_loaded_or_not(page, agent):
    await search(page).fill("yellow")
    await expect(rows(page)).to_have_count(5)
    await search(page).fill("yellow 2")
    await page.get_by_role("button", name="Select sessions").click()
    bar = page.get_by_role("group", name="Selected sessions")
    await bar.get_by_role("button", name="All").click()
    await expect(bar).to_contain_text("5 selected")
    await search(page).fill("")
    await bar.get_by_role("button", name="All").click()
    count = await page.evaluate(
        "async () => (await dragoman.connection.request('_dragoman/sessions', { limit: 0 })).counts.sessions"
    )
    await expect(bar).to_contain_text(f"{count} selected")
    await search(page).fill("yellow")
    await bar.get_by_role("button", name="All").click()
    await expect(bar).to_contain_text("5 selected")
    await bar.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No title matches.")).to_be_visible()
    deleted = {each["params"]["sessionId"] for each in agent.received if each.get("method") == "session/delete"}
    assert deleted == {f"earlier-{number}" for number in range(230, 235)}
