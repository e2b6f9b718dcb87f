"""A session of many updates: its end comes first, the rest on demand, and only the visible part is in the document."""

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.browser_bridge import BrowserBridge
from tests.bridge.browser.pages import PHONE, agent_messages, composer, say, shoot
from tests.bridge.history_parts import conversation_of
from tests.bridge.long_sessions import long_updates, write_long_session

MIDDLE, LONG = 4_000, 50_000
CONTINUED = 3_000
MAX_NODES = 10_000

NODES = "document.querySelectorAll('*').length"

LOADED = "dragoman.state.session.transcript.items.length"

TEXTS = """() => dragoman.state.session.transcript.items
    .filter((item) => item.type === "message").map((item) => item.blocks.map((block) => block.text).join(""))"""

SCROLL_TO_START = """async () => {
    const box = document.querySelector(".scroll");
    const { history } = dragoman.state.session;
    let nodes = 0;
    while (box.scrollTop > 0 || history.hasOlder) {
        box.scrollTop -= 600;
        await new Promise(requestAnimationFrame);
        nodes = Math.max(nodes, document.querySelectorAll("*").length);
    }
    return nodes;
}"""

# The item at the top of the visible part, and its distance from there before and after the history is loaded.
LOAD_IN_PLACE = """async () => {
    const box = document.querySelector(".scroll");
    const { history } = dragoman.state.session;
    const top = box.getBoundingClientRect().top;
    const distance = (item) => item.getBoundingClientRect().top - top;
    const shown = [...document.querySelectorAll(".items > .item")].find((item) => distance(item) > 0);
    const before = distance(shown);
    await history.reach();
    for (let frame = 0; frame < 5; frame += 1) await new Promise(requestAnimationFrame);
    return [before, distance(shown), shown.isConnected];
}"""


MARKED = """async (text) => {
    const marked = () => [...CSS.highlights.get("found-here")].map(String).join();
    while (marked() !== text) await new Promise(requestAnimationFrame);
}"""


class LongBridge(BrowserBridge):
    """A bridge with long sessions of an earlier run, shared by all tests of this file."""

    async def clear(self, page):
        """Keep all sessions."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def long_bridge(tmp_path_factory):
    directory = tmp_path_factory.mktemp("long")
    for count in (CONTINUED, MIDDLE, LONG):
        write_long_session(directory / "home", "python", f"session-{count}", long_updates(count))
    made = LongBridge()
    await made.open(directory)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(long_bridge):
    yield long_bridge


async def open_session(page, count=MIDDLE):
    await page.evaluate("(id) => dragoman.openSession(id)", f"session-{count}")
    await expect(agent_messages(page).last).to_contain_text(f"word{count // 50 - 1}-42")
    await expect(agent_messages(page).last).to_be_in_viewport()


def find_box(page):
    return page.get_by_role("searchbox", name="Find in this session")


def status(page):
    return page.locator(".find-status")


async def find(page, words):
    await composer(page).press("Control+f")
    await expect(find_box(page)).to_be_focused()
    await find_box(page).fill(words)


@pytest.mark.basic
async def test_end_of_a_long_session_comes_first(page):
    frames = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: frames.append(len(data))))
    await page.reload()
    await expect(page.locator(".topbar-state")).to_contain_text("Connected")
    frames.clear()
    await open_session(page)
    assert len(frames) < 40, "the history came in single updates"
    assert await page.evaluate("dragoman.state.session.history.hasOlder")
    assert await page.evaluate("dragoman.state.session.transcript.plan[0].content") == "Step"
    assert await page.evaluate(LOADED) < 400
    await shoot(page, "long_end")


async def test_scrolling_to_the_start_loads_everything_once(page):
    await open_session(page)
    nodes = await page.evaluate(SCROLL_TO_START)
    assert nodes < MAX_NODES
    await expect(page.get_by_text("Question 0", exact=True)).to_be_in_viewport()
    made, _ = conversation_of(long_updates(MIDDLE))
    texts = [item[2][0] if isinstance(item[2], list) else None for item in made if len(item) == 3]
    users = [update["content"]["text"] for update in long_updates(MIDDLE) if "user" in update["sessionUpdate"]]
    shown = await page.evaluate(TEXTS)
    assert [text for text in shown if not text.startswith("Question")] == texts
    assert [text for text in shown if text.startswith("Question")] == users
    await shoot(page, "long_start")


async def test_visible_part_keeps_its_place_while_older_parts_load(page):
    await open_session(page)
    await page.locator(".scroll").hover()
    await page.mouse.wheel(0, -700)
    await page.evaluate("new Promise(requestAnimationFrame)")
    before, after, is_there = await page.evaluate(LOAD_IN_PLACE)
    assert is_there
    assert after == pytest.approx(before, abs=2)


async def test_selection_survives_scrolling_away(page):
    await open_session(page)
    await page.get_by_text("Question 79", exact=True).select_text()
    box = page.locator(".scroll")
    for _ in range(12):
        await box.evaluate("(box) => { box.scrollTop -= box.clientHeight; }")
        await page.evaluate("new Promise(requestAnimationFrame)")
    assert await page.evaluate("getSelection().toString().trim()") == "Question 79"
    await page.evaluate("getSelection().removeAllRanges()")


async def test_opened_tool_call_stays_open_after_scrolling(page):
    await open_session(page)
    call = page.get_by_role("button", name="Read file 79")
    await call.click()
    await expect(page.get_by_text("line 79").first).to_be_visible()
    box = page.locator(".scroll")
    await page.evaluate("document.activeElement.blur()")
    for _ in range(12):
        await box.evaluate("(box) => { box.scrollTop -= box.clientHeight; }")
        await page.evaluate("new Promise(requestAnimationFrame)")
    await expect(call).to_have_count(0)
    await page.get_by_role("button", name="Newest").click()
    await expect(call).to_have_attribute("aria-expanded", "true")


async def test_printing_shows_all_that_is_loaded(page):
    await open_session(page)
    await page.evaluate("dragoman.state.session.history.reach()")
    items = page.locator(".items > .item")
    few = await items.count()
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    await expect(items).to_have_count(await page.evaluate(LOADED))
    await page.emulate_media(media="print")
    await expect(page.get_by_text("Question 0", exact=True)).to_be_visible()
    await expect(composer(page)).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollHeight > 10 * innerHeight")
    first = page.locator(".items > .item").first
    assert (await first.bounding_box())["y"] < 100, "there is empty space before it"
    await page.emulate_media(media="screen")
    await page.evaluate("dispatchEvent(new Event('afterprint'))")
    await expect(composer(page)).to_be_visible()
    assert await items.count() < few + 60


async def test_new_turn_follows_the_loaded_end(page, bridge):
    await open_session(page, CONTINUED)
    await say(page, "And now?")
    turn = await bridge.agent.next_turn()
    turn.say("This is **new**.")
    await expect(agent_messages(page).last).to_have_text("This is new.")
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await page.reload()
    await expect(agent_messages(page).last).to_have_text("This is new.")
    assert await page.evaluate("dragoman.state.session.history.hasOlder")
    await page.evaluate("dragoman.state.session.history.reach()")
    texts = await page.evaluate(TEXTS)
    assert texts[-2:] == ["And now?", "This is **new**."]
    assert texts[0] == "Question 0"


async def test_review_reads_the_whole_session(page):
    await open_session(page)
    await page.get_by_role("button", name="Changed files").click()
    await expect(page.get_by_text("The agent has not changed any files in this session.")).to_be_visible()
    await page.evaluate("dragoman.state.session.history.reach()")
    await page.get_by_role("button", name="Back to the conversation").click()
    assert (await page.evaluate(TEXTS))[0] == "Question 0"


@pytest.mark.basic
async def test_find_jumps_to_text_that_is_not_loaded(page):
    await open_session(page)
    await find(page, "word7-31. WORD7-32")
    await expect(status(page)).to_have_text("1 of 1")
    found = agent_messages(page).filter(has_text="word7-31")
    await expect(found).to_be_in_viewport()
    await page.evaluate(MARKED, "word7-31. word7-32")  # the text is rendered late, so its mark changes
    await shoot(page, "long_find")
    assert await barriers(page) == []
    await find_box(page).press("Escape")
    await expect(find_box(page)).to_be_hidden()
    assert await page.evaluate("CSS.highlights.get('found').size") == 0


async def test_find_steps_through_thoughts_and_tool_calls(page):
    await open_session(page)
    await find(page, "line 61")
    await expect(status(page)).to_have_text("5 of 5")
    await expect(page.get_by_role("button", name="Read file 61")).to_have_attribute("aria-expanded", "true")
    await expect(page.get_by_text("line 61").first).to_be_in_viewport()
    await find_box(page).press("Shift+Enter")
    await expect(status(page)).to_have_text("4 of 5")
    await find_box(page).press("Enter")
    await find_box(page).press("Enter")
    await expect(status(page)).to_have_text("1 of 5")
    await find_box(page).fill("Think about 33")
    await expect(status(page)).to_have_text("1 of 1")
    await expect(page.get_by_text("Think about 33.")).to_be_in_viewport()
    await find_box(page).fill("nowhere in here")
    await expect(status(page)).to_have_text("No matches")


async def test_second_ctrl_f_is_left_to_the_browser(page):
    await open_session(page)
    taken = """() => { globalThis.taken = []; addEventListener("keydown", (event) =>
        event.code === "KeyF" && setTimeout(() => globalThis.taken.push(event.defaultPrevented))); }"""
    await page.evaluate(taken)
    await composer(page).press("Control+f")
    await find_box(page).press("Control+f")
    await page.evaluate("new Promise((resolve) => setTimeout(resolve))")
    assert await page.evaluate("globalThis.taken") == [True, False]


async def test_fifty_thousand_updates_stay_usable(page):
    frames = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: frames.append(len(data))))
    await page.reload()
    await expect(page.locator(".topbar-state")).to_contain_text("Connected")
    frames.clear()
    await open_session(page, LONG)
    assert sum(frames) < 1_000_000, f"{sum(frames)} bytes came before the last screen"
    assert await page.evaluate(LOADED) < 400
    await find(page, "word3-17")
    await expect(status(page)).to_have_text("1 of 1")
    await expect(agent_messages(page).filter(has_text="word3-17")).to_be_in_viewport()
    assert await page.evaluate(NODES) < MAX_NODES
    nodes = await page.evaluate(SCROLL_TO_START)
    assert nodes < MAX_NODES
    texts = await page.evaluate(TEXTS)
    assert [text for text in texts if text.startswith("Question")] == [f"Question {n}" for n in range(LONG // 50)]
    assert json.dumps(texts).count("word") == LONG // 50 * 43


async def test_long_session_on_a_phone_and_in_the_dark(visit):
    page = await visit(viewport=PHONE, color_scheme="dark", has_touch=True)
    await open_session(page)
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Find in this session").click()
    await find_box(page).fill("word40-3")
    await expect(status(page)).to_have_text("11 of 11")
    await expect(agent_messages(page).filter(has_text="word40-3").first).to_be_in_viewport()
    await page.evaluate(MARKED, "word40-3")
    await shoot(page, "long_find_phone_dark")
    assert await barriers(page) == []


async def test_older_parts_load_after_a_broken_connection(page, bridge):
    page.visitor.faults.allow(r"WebSocket|ERR_|Failed to load resource|net::")
    await open_session(page)
    bridge.proxy.cut()
    await expect(page.locator(".banner")).to_contain_text("The connection is lost")
    loaded = await page.evaluate(LOADED)
    await page.locator(".scroll").evaluate("(box) => { box.scrollTop = 0; }")
    await expect(page.get_by_role("button", name="Loading earlier messages…")).to_be_visible()
    bridge.proxy.mend()
    await expect(page.locator(".banner")).to_be_hidden()
    await page.evaluate(
        f"async (loaded) => {{ while ({LOADED} <= loaded) await new Promise(requestAnimationFrame); }}", loaded
    )
