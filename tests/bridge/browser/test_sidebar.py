"""The sidebar: sessions are searched, started with servers, forked, shared and deleted."""

import asyncio
import json
import os
import re
import sys

import pytest
from playwright.async_api import expect

from dragoman.testing import steps
from tests.bridge.browser.axe import barriers
from tests.bridge.browser.pages import agent_messages, composer, say, session_path, shoot, user_messages
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


@pytest.mark.basic
async def test_sessions_are_searched_grouped_and_opened_by_keys(page, agent):
    await talk(page, agent, "one", "Apples")
    await begin_another(page)
    await talk(page, agent, "two", "Pears")
    titles = page.locator(".session-title")
    await expect(titles).to_have_text(["Pears", "Apples"])
    await page.get_by_role("searchbox", name="Search sessions").fill("app")
    await expect(titles).to_have_text(["Apples"])
    await page.get_by_role("searchbox", name="Search sessions").fill("kiwi")
    await expect(page.get_by_text("No title matches.")).to_be_visible()
    await page.get_by_role("searchbox", name="Search sessions").fill("")
    await page.get_by_role("combobox", name="Group sessions by").select_option("By project")
    await expect(page.get_by_role("heading", name="work", exact=True)).to_be_visible()
    await expect(titles).to_have_text(["Pears", "Apples"])  # the bridge's list of projects has arrived
    await page.get_by_role("searchbox", name="Search sessions").focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("button", name=re.compile("^Apples"))).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(user_messages(page)).to_have_text("one")
    await expect(page.locator("[aria-current]")).to_contain_text("Apples")
    await shoot(page, "sessions")


async def rename(page, title):
    field = page.get_by_role("textbox", name="Title of the session")
    await expect(field).to_be_focused()
    await field.fill(title)
    return field


async def test_session_is_renamed_for_all_viewers(page, agent):
    await talk(page, agent, "one", "Apples")
    other = await page.visitor.come(await session_path(page))
    await page.get_by_role("button", name="More actions for Apples").click()
    await page.get_by_role("menuitem", name="Rename").click()
    field = await rename(page, "Pears")
    await shoot(page, "rename")
    await field.press("Enter")
    for each in (page, other):
        await expect(each.locator(".session-title")).to_have_text("Pears")
        await expect(each.get_by_role("heading", level=1)).to_have_text("Pears")
    await expect(page.get_by_role("button", name=re.compile("^Pears"))).to_be_focused()
    await page.keyboard.press("F2")
    await (await rename(page, "Plums")).press("Escape")
    await expect(page.locator(".session-title")).to_have_text("Pears")
    await page.keyboard.press("F2")
    await rename(page, "Cherries")
    await composer(page).focus()
    await expect(page.locator(".session-title")).to_have_text("Cherries")
    await page.reload()
    await expect(page.locator(".session-title")).to_have_text("Cherries")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Cherries")


async def test_archived_session_returns_with_its_next_message(page, agent):
    await talk(page, agent, "one", "Apples")
    await begin_another(page)
    await talk(page, agent, "two", "Pears")
    titles = page.locator(".session-title")
    await page.get_by_role("button", name="More actions for Pears").click()
    await page.get_by_role("menuitem", name="Archive").click()
    await expect(titles).to_have_text(["Apples"])
    await expect(page.get_by_text("This session is archived.")).to_be_visible()
    fold = page.get_by_role("button", name="Archived 1")
    await expect(fold).to_have_attribute("aria-expanded", "false")
    assert await barriers(page) == []
    await fold.focus()
    await page.keyboard.press("Enter")
    await expect(titles).to_have_text(["Apples", "Pears"])
    await expect(fold).to_be_focused()
    await shoot(page, "archived")
    assert await barriers(page) == []
    await fold.click()
    await page.get_by_role("searchbox", name="Search sessions").fill("pea")
    await expect(titles).to_have_text(["Pears"])
    await page.get_by_role("searchbox", name="Search sessions").fill("")
    await page.reload()
    await expect(titles).to_have_text(["Apples"])
    await expect(page.get_by_text("This session is archived.")).to_be_visible()
    await say(page, "three")
    turn = await agent.next_turn()
    turn.end()
    await expect(titles).to_have_text(["Pears", "Apples"])
    await expect(page.get_by_text("This session is archived.")).to_have_count(0)
    await page.get_by_role("button", name="More actions for Apples").click()
    await page.get_by_role("menuitem", name="Archive").click()
    await fold.click()
    await page.get_by_role("button", name="More actions for Apples").click()
    await page.get_by_role("menuitem", name="Unarchive").click()
    await expect(fold).to_have_count(0)


async def test_login_needed_for_a_session_is_quoted_once(page, agent):
    words = "Please run `auggie login` to sign in."
    agent.refusals["session/new"] = {"code": -32000, "message": f"Authentication required: {words}", "data": words}
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_have_text(words)
    await dialog.get_by_role("button", name="Cancel").click()


async def test_session_starts_with_the_entered_servers(page, agent, tmp_path):
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Directory").fill("not an absolute path")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("must be an absolute path")
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


async def test_servers_can_be_pasted_in_editor_formats(page, agent):
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Paste JSON").click()
    await dialog.get_by_label("MCP servers as JSON").fill("{")
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_text("This is not valid JSON")).to_be_visible()
    await dialog.get_by_label("MCP servers as JSON").fill(json.dumps(SERVERS))
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await expect(dialog.get_by_role("listitem")).to_have_count(2)
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog).to_have_count(0)
    headers = [{"name": "Authorization", "value": "Bearer hunter3"}]
    assert agent.params_of("session/new")["mcpServers"] == [
        {"name": "files", "command": "npx", "args": ["-y", "files"], "env": [{"name": "KEY", "value": "hunter2"}]},
        {"type": "http", "name": "web", "url": "https://tools.example/mcp", "headers": headers},
    ]


async def test_unreachable_server_is_refused_with_a_reason(page, agent):
    await page.get_by_role("button", name="New session", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Paste JSON").click()
    old = {"mcpServers": {"old": {"type": "sse", "url": "https://tools.example/sse"}}}
    await dialog.get_by_label("MCP servers as JSON").fill(json.dumps(old))
    await dialog.get_by_role("button", name="Add", exact=True).click()
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("does not support SSE servers")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


@pytest.mark.usefixtures("own_bridge")
async def test_session_is_forked_and_deleted_if_supported(agent, visit):
    agent.capabilities["sessionCapabilities"] = {"fork": {}, "delete": {}}
    page = await visit()
    await talk(page, agent, "one", "Apples")
    await page.get_by_role("button", name="More actions for Apples").click()
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


async def test_unsupported_actions_are_not_offered(page, agent):
    await talk(page, agent, "one", "Apples")
    await page.get_by_role("button", name="More actions for Apples").click()
    await expect(page.get_by_role("menuitem")).to_have_text(["Rename", "Export…", "Read-only link…", "Archive"])


async def make_share(page, title, what):
    await page.get_by_role("button", name=f"More actions for {title}").click()
    await page.get_by_role("menuitem", name="Read-only link").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Access to").select_option(what)
    await dialog.get_by_label("Valid for").select_option("7 days")
    return dialog


@pytest.mark.basic
async def test_shared_link_allows_reading_until_revoked(page, visit, agent, proxy):
    await talk(page, agent, "one", "Apples")
    await begin_another(page)
    await talk(page, agent, "two", "Pears")
    dialog = await make_share(page, "Apples", "one")
    assert await barriers(page) == []
    await shoot(page, "share")
    await dialog.get_by_role("button", name="Create a link").click()
    link = await dialog.get_by_label("Link", exact=True).input_value()
    await expect(dialog).to_contain_text("This link works only on this machine: the bridge listens on 127.0.0.1")
    assert await barriers(page) == []
    await shoot(page, "share-link")
    assert link.startswith(f"{proxy.origin}/login?code=")
    await dialog.get_by_role("button", name="Done").click()
    reader = await visit(link.removeprefix(proxy.origin))
    await expect(agent_messages(reader)).to_have_text("Answer to one")
    await expect(composer(reader)).to_be_disabled()
    await expect(reader.locator(".session-title")).to_have_text(["Apples"])
    for name in ("New session", "Select sessions", "More actions for Apples"):
        await expect(reader.get_by_role("button", name=name, exact=True)).to_have_count(0)
    assert await barriers(reader) == []
    await shoot(reader, "reader")
    await reader.goto(link)
    await expect(agent_messages(reader)).to_have_text("Answer to one")
    assert "refused" not in reader.url, "this browser was let in before"
    reader.visitor.faults.allow("401")
    dialog = await make_share(page, "Pears", "all")
    await expect(dialog.get_by_text("opened · until")).to_be_visible()
    await shoot(page, "shares")
    await dialog.get_by_role("button", name="Revoke Apples").click()
    await expect(dialog.get_by_role("button", name="Revoke Apples")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(reader.get_by_text("This browser is no longer signed in.")).to_be_visible()
    await expect(reader.get_by_text("Answer to one")).to_have_count(0)


async def test_search_shows_the_matching_message(page, agent):
    await say(page, "one")
    turn = await agent.next_turn()
    turn.title("Apples")
    turn.say("The needle is here.")
    for number in range(150):
        turn.start_call(f"call-{number}")
        turn.finish_call(f"call-{number}")
    turn.say("The end.")
    turn.end()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await begin_another(page)
    await talk(page, agent, "two", "Pears")
    await page.get_by_role("searchbox", name="Search sessions").fill("NEEDLE")
    hit = page.get_by_role("region", name="In conversations").get_by_role("button")
    await expect(hit).to_have_text("ApplesAgent: The needle is here.")
    await expect(hit.locator("mark")).to_have_text("needle")
    assert await barriers(page) == []
    await shoot(page, "found")
    await page.get_by_role("searchbox", name="Search sessions").press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Apples")
    await expect(agent_messages(page).first).to_be_in_viewport()
    await expect(page.get_by_text("The needle is here.").last).to_be_in_viewport()
    await page.get_by_role("searchbox", name="Search sessions").fill("session-1")
    await expect(page.get_by_text("No conversation contains this.")).to_be_visible()


@pytest.mark.usefixtures("own_bridge")
async def test_many_sessions_are_deleted_with_one_confirmation(agent, visit):
    agent.capabilities["sessionCapabilities"] = {"delete": {}}
    page = await visit()
    for number, title in enumerate(("Apples", "Pears", "Plums")):
        if number:
            await begin_another(page)
        await talk(page, agent, title, title)
    await page.get_by_role("button", name="Select sessions").click()
    bar = page.get_by_role("group", name="Selected sessions")
    await expect(bar.get_by_role("button", name="Delete")).to_be_disabled()
    await page.get_by_role("checkbox", name="Select Apples").check()
    await page.get_by_role("button", name=re.compile("^Plums")).click()
    await expect(bar).to_contain_text("2 selected")
    assert await barriers(page) == []
    await shoot(page, "select")
    await bar.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("listitem")).to_have_text(["Apples", "Plums"])
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    assert await barriers(page) == []
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.locator(".session-title")).to_have_text(["Pears"])
    await expect(page.get_by_role("checkbox")).to_have_count(0)
    deleted = [each["params"]["sessionId"] for each in agent.received if each.get("method") == "session/delete"]
    assert deleted == ["session-1", "session-3"]


async def test_session_is_saved_as_a_self_contained_file(page, agent, browser, tmp_path):
    await talk(page, agent, "one <script>alert(1)</script>", "Apples")
    await page.get_by_role("button", name="More actions for Apples").click()
    await page.get_by_role("menuitem", name="Export").click()
    async with page.expect_download() as saved:
        await page.get_by_role("dialog").get_by_role("button", name="Export").click()
    download = await saved.value
    assert download.suggested_filename == "Apples.html"
    context = await browser.new_context()
    alone = await context.new_page()
    asked = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("dialog", lambda dialog: asked.append(dialog.message))
    await download.save_as(tmp_path / "alone.html")
    await alone.goto((tmp_path / "alone.html").as_uri())
    await expect(alone.get_by_role("heading", level=1)).to_have_text("Apples")
    await expect(alone.get_by_text("Answer to one")).to_be_visible()
    await alone.emulate_media(media="print")
    await shoot(alone, "export-print")
    assert len(asked) == 1
    await context.close()


async def test_sessions_of_run_are_in_a_folded_group(page, agent, bridge):
    await talk(page, agent, "one", "Apples")
    command = [sys.executable, "-m", "dragoman", "run", "two", "--url", bridge.served.acp, "--cwd", "/"]
    environment = {**os.environ, "DRAGOMAN_TOKEN": bridge.served.token}
    run = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.DEVNULL)
    turn = await agent.next_turn()
    turn.title("A run")
    turn.end()
    assert await run.wait() == 0
    fold = page.get_by_role("button", name="Runs 1")
    await expect(fold).to_have_attribute("aria-expanded", "false")
    await expect(page.locator(".session-title")).to_have_text(["Apples"])
    await fold.click()
    await expect(page.locator(".session-title")).to_have_text(["Apples", "A run"])
    await shoot(page, "runs")
    await page.reload()
    await expect(fold).to_be_visible()


async def test_the_agent_can_be_changed_in_the_sidebar(browser, tmp_path):
    commands = {name: scripted([steps.Say(f"I am {name}.")]) for name in ("one", "two")}
    agents = {name: {"command": program, "args": rest} for name, (program, *rest) in commands.items()}
    file = tmp_path / "agents.json"
    file.write_text(json.dumps({"agents": agents}))
    with serving(tmp_path / "home", "--cwd", str(tmp_path), "--agents-file", str(file), agent=()) as running:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(running.url)
        await say(page, "Who are you?")
        await expect(agent_messages(page)).to_have_text("I am one.")
        await page.get_by_label("Agent filter").select_option("two")
        await say(page, "Who are you?")
        await expect(agent_messages(page)).to_have_text("I am two.")
        await context.close()
