"""Browser notifications while the page is hidden.

The service worker is real. Most of these tests run in Chromium's headless shell, which shows no notifications and
grants no permission for them. Three things are therefore replaced there: the permission, the call that shows a
notification (it is recorded), and whether the page is hidden.
"""

import asyncio

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import PHONE, card, say, session_path, shoot
from tests.bridge.guard.serving import serving
from tests.ports import free_port
from tests.waiting import PATIENCE_S, PAUSE_S

RECORDING = """
globalThis.shown = [];
globalThis.Notification = class {
  static permission = "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(words, { body }) {
    if (globalThis.isPhone) throw new TypeError("Illegal constructor");
    shown.push([words, body]);
  }
};
ServiceWorkerRegistration.prototype.showNotification = async function (words, { body, data }) {
  if (this.active?.state !== "activated") throw new TypeError("no active worker");
  shown.push([words, body, data]);
};
"""

HIDING = """
let hidden = false;
Object.defineProperty(document, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
globalThis.hide = (now) => { hidden = now; };
"""

NO_WORKERS = """
Object.defineProperty(navigator, "serviceWorker", { value: undefined });
"""

CLICK = """async (data) => {
  const opened = [];
  clients.openWindow = async (url) => { opened.push(url); };
  const event = new Event("notificationclick");
  await new Promise((resolve, reject) => {
    const notification = { data, close() {} };
    Object.assign(event, { notification, waitUntil: (done) => done.then(resolve, reject) });
    self.dispatchEvent(event);
  });
  return opened;
}"""


def bell(page, state):
    return page.get_by_role("button", name=f"Notifications: {state}")


async def prepare(page, *scripts):
    for script in (HIDING, *scripts):
        await page.add_init_script(script)
    await page.reload()


async def have_a_turn_end(page, agent):
    """Let the agent end a turn while the page is hidden."""
    await say(page, "Fix it")
    turn = await agent.next_turn()
    await expect(page.locator(".session-state")).to_contain_text("Running")
    await page.evaluate("hide(true)")
    turn.end()


@pytest_asyncio.fixture(loop_scope="session")
async def worker_of():
    """`await worker_of(page)`: the page's service worker."""

    async def find(page):
        context = page.context
        return context.service_workers[0] if context.service_workers else await context.wait_for_event("serviceworker")

    return find


@pytest.mark.basic
async def test_hidden_page_notifies_after_opting_in(page, agent):
    await prepare(page, RECORDING)
    await say(page, "Fix it")
    turn = await agent.next_turn()
    await page.evaluate("hide(true)")
    first = asyncio.ensure_future(turn.ask())
    await expect(page.locator(".session-badge")).to_contain_text("1 request waiting")
    await page.evaluate("hide(false)")
    await card(page).get_by_role("button", name="Allow").click()
    await first
    assert page.context.service_workers == []
    await bell(page, "off").click()
    await expect(bell(page, "on")).to_be_visible()
    assert await page.evaluate("shown") == [], "notifications were off"
    await expect(page.locator(".session-badge")).to_have_count(0)
    await page.evaluate("hide(true)")
    second = asyncio.ensure_future(turn.ask())
    await page.wait_for_function("() => shown.length === 1")
    await page.evaluate("hide(false)")
    await card(page).last.get_by_role("button", name="Allow").click()
    await second
    await page.evaluate("hide(true)")
    turn.end()
    await page.wait_for_function("() => shown.length === 2")
    waits, ended = await page.evaluate("shown")
    assert (waits[:2], ended[:2]) == (["Your answer is needed", "Fix it"], ["Turn finished", "Fix it"])
    await page.evaluate("hide(false)")


async def test_worker_notification_opens_its_session(page, agent, worker_of):
    await prepare(page, "globalThis.isPhone = true;", RECORDING)
    await bell(page, "off").click()
    worker = await worker_of(page)
    assert worker.url == page.url.split("#")[0] + "static/worker/notifications.js"
    await expect(bell(page, "on")).to_be_visible()
    await have_a_turn_end(page, agent)
    await page.wait_for_function("() => shown.length > 0")
    [[words, _, place]] = await page.evaluate("shown")
    assert words == "Turn finished"
    was = await session_path(page)
    await page.evaluate("dragoman.leaveSession(), dragoman.show('inspector')")
    assert await worker.evaluate(CLICK, place) == []
    await expect(page.locator(".message-user")).to_be_visible()
    assert await session_path(page) == was
    assert await page.evaluate("navigator.serviceWorker.controller") is None, "the worker controls the page"
    await bell(page, "on").click()
    await expect(bell(page, "off")).to_be_visible()
    assert await page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0


async def test_notification_under_a_prefix_opens_its_page(browser, tmp_path, worker_of):
    port = free_port()
    home = f"http://127.0.0.1:{port}/some/where/"
    with serving(tmp_path / "home", "--cwd", str(tmp_path), "--public-url", home, port=port) as running:
        context = await browser.new_context()
        page = await context.new_page()
        await prepare(page, RECORDING)
        await page.goto(running.url)
        await bell(page, "off").click()
        worker = await worker_of(page)
        await expect(bell(page, "on")).to_be_visible()
        assert worker.url == f"{home}static/worker/notifications.js"
        place = {"agent": "an agent", "session": "a/b"}
        await page.goto(f"{home}static/icon.svg")
        other = await context.new_page()
        await other.goto(f"{running.origin}/")
        assert await worker.evaluate(CLICK, place) == [f"{home}#an%20agent/a%2Fb"]
        await context.close()


async def test_phone_has_the_bell_in_a_menu(visit):
    page = await visit(viewport=PHONE, has_touch=True, is_mobile=True)
    await prepare(page, RECORDING)
    assert await barriers(page) == []
    await page.get_by_role("button", name="More", exact=True).click()
    menu = page.get_by_role("menu", name="More")
    await expect(menu.get_by_role("menuitem")).to_have_text(
        ["Wire inspector", "Notifications: off", "Appearance: system"]
    )
    assert await barriers(page) == []
    await shoot(page, "more_phone")
    await menu.get_by_role("menuitem", name="Notifications: off").click()
    await expect(page.locator(".toast")).to_contain_text("You get a notification")
    await page.get_by_role("button", name="More", exact=True).click()
    await expect(menu.get_by_role("menuitem", name="Notifications: on")).to_be_visible()


async def test_tabs_share_the_notification_setting(page, agent):
    await prepare(page, "globalThis.isPhone = true;", RECORDING)
    other = await page.context.new_page()
    await other.goto(page.url)
    await prepare(other, "globalThis.isPhone = true;", RECORDING, "Notification.permission = 'granted';")
    await bell(page, "off").click()
    await expect(bell(other, "on")).to_be_visible()
    await bell(page, "on").click()
    await expect(bell(other, "off")).to_be_visible()
    await bell(page, "off").click()
    await expect(bell(other, "on")).to_be_visible()
    await say(page, "Fix it")
    turn = await agent.next_turn()
    await expect(other.locator(".session-state")).to_contain_text("Running")
    await other.evaluate("hide(true)")
    turn.end()
    await other.wait_for_function("() => shown.length > 0")
    await expect(bell(other, "on")).to_be_visible()


async def test_page_notifies_without_service_workers(page, agent):
    await prepare(page, NO_WORKERS, RECORDING)
    await bell(page, "off").click()
    await expect(bell(page, "on")).to_be_visible()
    await have_a_turn_end(page, agent)
    await page.wait_for_function("() => shown.length > 0")
    assert await page.evaluate("shown") == [["Turn finished", "Fix it"]]


async def test_unlisted_session_notifies(page, agent):
    await prepare(page, RECORDING)
    await bell(page, "off").click()
    await expect(bell(page, "on")).to_be_visible()
    await page.evaluate("hide(true)")
    told = {"sessionId": "far", "title": "Far away", "state": "running", "pending": 1, "viewers": 0}
    await page.evaluate("(told) => dragoman.state.noteNews(told)", told)
    await page.wait_for_function("() => shown.length === 1")
    await page.evaluate("hide(false), dragoman.state.forgetSession('far')")


async def test_insecure_page_explains_missing_notifications(page):
    await prepare(page, "Object.defineProperty(globalThis, 'isSecureContext', { value: false });")
    await bell(page, "not available").click()
    await expect(page.locator(".toast")).to_contain_text("over HTTPS or from this machine")


async def test_real_browser_shows_a_notification(page, agent, proxy, worker_of):
    await page.context.grant_permissions(["notifications"], origin=proxy.origin)
    await prepare(page)
    if await page.evaluate("Notification.permission") != "granted":
        pytest.skip("this is Chromium's headless shell, which has no notifications; CHROMIUM=… names another browser")
    await bell(page, "off").click()
    await expect(bell(page, "on")).to_be_visible()
    worker = await worker_of(page)
    await have_a_turn_end(page, agent)
    listed = "async () => (await registration.getNotifications()).map(({ title, body }) => [title, body])"
    async with asyncio.timeout(PATIENCE_S):
        while not (shown := await worker.evaluate(listed)):
            await asyncio.sleep(PAUSE_S)
    assert shown == [["Turn finished", "Fix it"]]
