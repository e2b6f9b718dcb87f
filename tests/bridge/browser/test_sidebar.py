"""The sessions on the left: found, begun with tools, forked, shared and deleted."""

import json
import re

import pytest
from playwright.async_api import expect

from dragoman.testing import steps
from tests.bridge.browser.pages import agent_messages, composer, say, shoot, user_messages
from tests.bridge.guard.serving import scripted, serving

SERVERS = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "hunter2"}},
        "web": {"type": "http", "url": "https://tools.example/mcp", "headers": {"Authorization": "Bearer hunter3"}},
    }
}


async def talk(page, agent, text, title):
    await say(page, text)
    turn = await agent.next_turn()
    turn.title(title)
    turn.say(f"Answer to {text}")
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.locator(".session-title").filter(has_text=title)).to_be_visible()


async def begin_another(page):
    await page.get_by_role("button", name="New session", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Start").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_sessions_are_searched_grouped_and_opened_by_keys(page, agent):
    await talk(page, agent, "one", "Apples")
    await begin_another(page)
    await talk(page, agent, "two", "Pears")
    titles = page.locator(".session-title")
    await expect(titles).to_have_text(["Pears", "Apples"])
    await page.get_by_role("searchbox", name="Search sessions").fill("app")
    await expect(titles).to_have_text(["Apples"])
    await page.get_by_role("searchbox", name="Search sessions").fill("kiwi")
    await expect(page.get_by_text("No session fits the search.")).to_be_visible()
    await page.get_by_role("searchbox", name="Search sessions").fill("")
    await page.get_by_role("combobox", name="Group sessions by").select_option("By directory")
    await expect(page.get_by_role("heading", name="work", exact=True)).to_be_visible()
    await page.get_by_role("searchbox", name="Search sessions").focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("button", name=re.compile("^Apples"))).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(user_messages(page)).to_have_text("one")
    await expect(page.locator("[aria-current]")).to_contain_text("Apples")
    await shoot(page, "sessions")


async def test_an_agent_that_begins_no_session_without_a_login_is_quoted_once(page, agent):
    words = "Please run `auggie login` to sign in."
    agent.refusals["session/new"] = {"code": -32000, "message": f"Authentication required: {words}", "data": words}
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_have_text(words)
    await dialog.get_by_role("button", name="Cancel").click()


async def test_a_session_begins_with_the_servers_that_were_written_in(page, agent, tmp_path):
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Directory").fill("not a whole path")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("must be a whole path")
    await dialog.get_by_label("Directory").fill(str(tmp_path))
    await dialog.get_by_role("button", name="Add a server").click()
    await dialog.get_by_label("Name", exact=True).fill("github")
    await dialog.get_by_label("Command").fill("npx")
    await dialog.get_by_label("Arguments").fill("-y\nserver")
    await dialog.get_by_role("button", name="Add a variable").click()
    await dialog.get_by_label("Variable name").fill("TOKEN")
    await dialog.get_by_label("Variable value").fill("hunter2")
    await expect(dialog.get_by_label("Variable value")).to_have_attribute("type", "password")
    await shoot(page, "new_session")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_role("listitem")).to_contain_text("1 hidden value")
    await expect(dialog).not_to_contain_text("hunter2")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_have_count(0)
    env = [{"name": "TOKEN", "value": "hunter2"}]
    server = {"name": "github", "command": "npx", "args": ["-y", "server"], "env": env}
    assert agent.params_of("session/new") == {"cwd": str(tmp_path), "mcpServers": [server]}
    await expect(composer(page)).to_be_focused()


async def test_servers_are_pasted_as_editors_keep_them(page, agent):
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Paste JSON").click()
    await dialog.get_by_label("JSON of an editor's settings").fill("{")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_text("This is not JSON")).to_be_visible()
    await dialog.get_by_label("JSON of an editor's settings").fill(json.dumps(SERVERS))
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_role("listitem")).to_have_count(2)
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_have_count(0)
    headers = [{"name": "Authorization", "value": "Bearer hunter3"}]
    assert agent.params_of("session/new")["mcpServers"] == [
        {"name": "files", "command": "npx", "args": ["-y", "files"], "env": [{"name": "KEY", "value": "hunter2"}]},
        {"type": "http", "name": "web", "url": "https://tools.example/mcp", "headers": headers},
    ]


async def test_a_server_that_the_agent_cannot_reach_is_refused_in_words(page, agent):
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Paste JSON").click()
    old = {"mcpServers": {"old": {"type": "sse", "url": "https://tools.example/sse"}}}
    await dialog.get_by_label("JSON of an editor's settings").fill(json.dumps(old))
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("does not take servers by SSE")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


@pytest.mark.usefixtures("own_bridge")
async def test_a_session_is_forked_and_deleted_where_the_agent_can(agent, visit):
    agent.capabilities["sessionCapabilities"] = {"fork": {}, "delete": {}}
    page = await visit()
    await talk(page, agent, "one", "Apples")
    await page.get_by_role("button", name="More for Apples").click()
    await page.get_by_role("menuitem", name="Fork").click()
    await expect(page.locator(".session-item")).to_have_count(2)
    assert agent.params_of("session/fork")["sessionId"] == "session-1"
    await page.locator(".session-item[data-session=session-1] .session-more").click()
    await page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Apples")
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    await shoot(page, "delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.locator(".session-item")).to_have_count(1)
    assert agent.params_of("session/delete") == {"sessionId": "session-1"}


async def test_without_that_ability_nothing_is_offered(page, agent):
    await talk(page, agent, "one", "Apples")
    await page.get_by_role("button", name="More for Apples").click()
    await expect(page.get_by_role("menuitem")).to_have_text(["Share to read"])


async def test_a_shared_link_lets_somebody_read_and_nothing_else(page, visit, agent, proxy):
    await talk(page, agent, "one", "Apples")
    await page.get_by_role("button", name="More for Apples").click()
    await page.get_by_role("menuitem", name="Share to read").click()
    link = await page.get_by_role("dialog").get_by_label("Link").input_value()
    await shoot(page, "share")
    assert link.startswith(f"{proxy.origin}/login?code=")
    reader = await visit(link.removeprefix(proxy.origin))
    await expect(agent_messages(reader)).to_have_text("Answer to one")
    await expect(composer(reader)).to_be_disabled()
    await expect(reader.get_by_role("button", name="New session", exact=True)).to_have_count(0)
    await expect(reader.get_by_role("button", name="More for Apples")).to_have_count(0)
    await shoot(reader, "reader")


async def test_the_agent_can_be_changed_in_the_sidebar(browser, tmp_path):
    commands = {name: scripted([steps.Say(f"I am {name}.")]) for name in ("one", "two")}
    agents = {name: {"command": program, "args": rest} for name, (program, *rest) in commands.items()}
    file = tmp_path / "agents.json"
    file.write_text(json.dumps({"agents": agents}))
    with serving(tmp_path / "home", "--cwd", str(tmp_path), "--agents", str(file), agent=()) as running:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(running.url)
        await say(page, "Who are you?")
        await expect(agent_messages(page)).to_have_text("I am one.")
        await page.get_by_label("Agent whose sessions are shown").select_option("two")
        await say(page, "Who are you?")
        await expect(agent_messages(page)).to_have_text("I am two.")
        await context.close()
