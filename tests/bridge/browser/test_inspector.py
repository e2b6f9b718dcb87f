"""The inspector, which shows and exports the messages between bridge and agent."""

import json
import re
from xml.etree import ElementTree as ET

import pytest
from playwright.async_api import expect

from tests.bridge.browser.pages import PHONE, agent_messages, say, shoot

pytestmark = pytest.mark.usefixtures("own_bridge")


async def talk(page, agent, answer="Hello."):
    await say(page, "Hi")
    turn = await agent.next_turn()
    turn.say(answer)
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def turn_inspector(page):
    """Open or close the inspector by its button, or on a phone by the menu."""
    more = page.get_by_role("button", name="More", exact=True)
    if await more.is_visible():
        await more.click()
        await page.get_by_role("menuitem", name="Wire inspector").click()
    else:
        await page.get_by_role("button", name="Wire inspector").click()


async def inspect(page):
    await turn_inspector(page)
    await expect(page.get_by_role("listbox", name="Messages")).to_be_visible()
    return page.get_by_role("listbox", name="Messages").get_by_role("option")


async def count_of_a_turn(rows):
    """Wait for all messages of a turn and return their number. The prompt's answer is the last one."""
    await expect(rows.filter(has_text="session/prompt").filter(has_text="response")).to_be_visible()
    return await rows.count()


@pytest.mark.basic
async def test_inspector_lists_messages_of_both_directions(page, agent):
    await talk(page, agent)
    rows = await inspect(page)
    await expect(rows.filter(has_text="initialize").first).to_contain_text("→")
    answer = rows.filter(has_text="session/prompt").filter(has_text="response")
    await expect(answer).to_contain_text("←")
    await expect(answer).to_contain_text("ms")
    await answer.click()
    detail = page.get_by_role("region", name="Message", exact=True)
    await expect(detail).to_contain_text('"stopReason": "end_turn"')
    await shoot(page, "inspector")
    await detail.get_by_role("button", name="Show the request").click()
    await expect(detail).to_contain_text('"text": "Hi"')
    await page.keyboard.press("Escape")
    await expect(detail).to_be_hidden()


async def test_inspector_updates_live_unless_paused(page, agent):
    await talk(page, agent)
    rows = await inspect(page)
    await expect(rows.filter(has_text="session/prompt")).to_have_count(2)
    other = await page.visitor.come()
    await talk(other, agent)
    await page.bring_to_front()
    await expect(rows.filter(has_text="session/prompt")).to_have_count(4)
    await page.get_by_role("button", name="Pause").click()
    await talk(other, agent)
    await expect(page.locator(".wire-count")).to_contain_text("paused")
    await expect(rows.filter(has_text="session/prompt")).to_have_count(4)
    await page.get_by_role("button", name="Resume").click()
    await expect(rows.filter(has_text="session/prompt")).to_have_count(6)
    await page.get_by_role("button", name="Clear the list").click()
    await expect(page.get_by_text("No messages between the bridge")).to_be_visible()


async def test_inspector_filters_messages(page, agent):
    await talk(page, agent, "needle in the hay")
    await say(page, "Fail")
    turn = await agent.next_turn()
    agent.send({"id": turn.id, "error": {"code": -32000, "message": "no luck today"}})
    await expect(page.get_by_text("no luck today").first).to_be_visible()
    rows = await inspect(page)
    await page.get_by_role("searchbox", name="Search messages").fill("NEEDLE")
    await expect(rows).to_have_count(1)
    await page.get_by_role("searchbox", name="Search messages").fill("")
    await page.get_by_role("combobox", name="Method").select_option("session/new")
    await expect(rows).to_have_count(2)
    await page.get_by_role("combobox", name="Direction").select_option("From the agent")
    await expect(rows).to_have_count(1)
    await page.get_by_role("combobox", name="Method").select_option("All methods")
    await page.get_by_role("checkbox", name="Errors only").check()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("error")
    await page.get_by_role("searchbox", name="Search messages").fill("nothing like it")
    await expect(page.get_by_text("No message matches the filter.")).to_be_visible()


async def test_inspector_rows_are_selected_by_keyboard(page, agent):
    await talk(page, agent)
    rows = await inspect(page)
    await count_of_a_turn(rows)
    await page.get_by_role("listbox", name="Messages").focus()
    await page.keyboard.press("Home")
    await expect(rows.first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowDown")
    await expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("End")
    await expect(rows.last).to_have_attribute("aria-selected", "true")


async def test_inspector_draws_a_sequence_diagram(page, agent):
    await talk(page, agent)
    count = await count_of_a_turn(await inspect(page))
    await page.get_by_role("button", name="Diagram", exact=True).click()
    await expect(page.locator(".seq-message")).to_have_count(count)
    await expect(page.locator(".seq-heads")).to_contain_text("The played agent")
    await expect(page.locator(".seq-bar").first).to_be_attached()
    await shoot(page, "inspector_diagram")
    await page.locator(".seq-message").filter(has_text="session/prompt").first.click()
    await expect(page.get_by_role("region", name="Message", exact=True)).to_contain_text('"text": "Hi"')


async def test_inspector_exports_messages_and_diagram(page, agent):
    await talk(page, agent)
    count = await count_of_a_turn(await inspect(page))
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Export the messages shown as NDJSON").click()
    download = await started.value
    assert download.suggested_filename.endswith(".ndjson")
    lines = [json.loads(line) for line in (await download.path()).read_text().splitlines()]
    assert len(lines) == count
    assert {line["direction"] for line in lines} == {"to_agent", "from_agent"}
    assert lines[0]["message"]["method"] == "initialize"
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Export the diagram as SVG").click()
    drawing = ET.fromstring((await (await started.value).path()).read_text())
    colours = drawing.find("{http://www.w3.org/2000/svg}style").text
    assert ".seq-paper { fill: rgb(252, 251, 249); }" in colours
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "session/prompt" in texts
    assert "The played agent" in texts


async def test_inspector_renders_only_visible_rows(page, agent):
    await say(page, "Much")
    turn = await agent.next_turn()
    for number in range(4_000):
        turn.say(f"word{number} ")
    turn.end()
    await expect(agent_messages(page)).to_contain_text("word3999")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    rows = await inspect(page)
    await expect(rows.last).to_have_attribute("aria-setsize", re.compile(r"40\d\d"))
    await expect(rows.last).to_have_attribute("aria-posinset", await rows.last.get_attribute("aria-setsize"))
    assert await rows.count() < 100
    await page.get_by_role("listbox", name="Messages").focus()
    await page.keyboard.press("Home")
    await expect(rows.first).to_have_attribute("aria-posinset", "1")
    await page.get_by_role("button", name="Diagram", exact=True).click()
    await expect(page.locator(".seq-message").first).to_be_attached()
    assert await page.locator(".seq-message").count() < 100


async def test_inspector_fits_a_phone(visit, agent):
    page = await visit(viewport=PHONE, has_touch=True, color_scheme="dark")
    await talk(page, agent)
    rows = await inspect(page)
    await rows.filter(has_text="session/prompt").first.click()
    await expect(page.get_by_role("region", name="Message", exact=True)).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await shoot(page, "inspector_phone")
    await turn_inspector(page)
    await expect(agent_messages(page)).to_be_visible()
