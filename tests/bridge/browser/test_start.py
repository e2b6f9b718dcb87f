"""The start page with our own agent: its introduction, example prompts and connecting a model."""

import json
import os
import sys

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.assistant.models.loopback import Chat, Refusal, loopback
from tests.bridge.browser.axe import barriers
from tests.bridge.browser.conftest import DESK, Visitor
from tests.bridge.browser.pages import PHONE, agent_messages, composer, shoot
from tests.bridge.guard.serving import serving

KEY = "sk-canary-7b20d6e1"
CHAT = Chat()
TOO_WIDE = "() => document.documentElement.scrollWidth > innerWidth"

HIDDEN_OPTIONS = """() => {
    const edge = document.querySelector(".options").getBoundingClientRect();
    const parts = [...document.querySelectorAll(".options > *")];
    return parts.filter((part) => part.getBoundingClientRect().right > edge.right + 1).map((part) => part.textContent);
}"""
WITHOUT_LIBRARIES = """(install) => {
    const { connection } = dragoman;
    connection.request = (method, params) => (window.last = ask(method, params));
    const ask = async (method, params) => {
        const told = await Object.getPrototypeOf(connection).request.call(connection, method, params);
        const missing = install && { problem: "it is missing", install };
        if (method === "_dragoman/models/offers") for (const each of told.providers) Object.assign(each, missing);
        return told;
    };
}"""


ANSWERED_LATE = """() => {
    const { connection } = dragoman;
    const ask = connection.request;
    const held = new Promise((resolve) => { window.release = resolve; });
    connection.request = async (method, params) => {
        const told = await ask.call(connection, method, params);
        await held;
        return told;
    };
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def own(tmp_path, monkeypatch, no_keys):
    """`dragoman serve` without options in a small project, with one other agent on PATH."""
    work, programs = tmp_path / "work", tmp_path / "programs"
    programs.mkdir()
    (work / "src").mkdir(parents=True)
    (work / "README.md").write_text("# Door\n\nIt opens.\n")
    (work / "src" / "door.py").write_text("# TODO: a bell\n")
    (work / "Makefile").write_text("test:\n\techo all 3 passed\n")
    other = programs / "opencode"
    other.write_text(f"#!/bin/sh\nexec {sys.executable} -m dragoman agent\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    with serving(tmp_path / "home", "--cwd", str(work), agent=()) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def come(browser, own):
    """`await come(**options of the browser context)`: a page that logged in with a link."""
    visitors = []

    async def come(**options):
        role = options.pop("role", "owner")
        context = await browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
        visitors.append(Visitor(context, own.origin))
        path, body = ("/link", b"{}") if role == "owner" else ("/shares", b'{"hours": 1}')
        answer = own.ask(f"POST {path}", own.bearer, "Content-Type: application/json", body=body)
        return await visitors[-1].come("/" + json.loads(answer.body)["path"].removeprefix("./").removeprefix("/"))

    yield come
    for visitor in visitors:
        await visitor.context.close()
    assert [words for visitor in visitors for words in visitor.faults.unexpected] == []


def prompts(page):
    return page.get_by_role("region", name="Prompts to try").get_by_role("button")


async def open_dialog(page):
    await page.get_by_role("button", name="Connect a model").click()
    dialog = page.get_by_role("dialog", name="Connect a model")
    await expect(dialog.get_by_text("Found on this machine")).to_be_visible()
    return dialog


async def fill_server(dialog, server, *, key=KEY):
    await dialog.get_by_label("Provider").select_option("OpenAI-compatible server")
    await dialog.get_by_label("Address").fill(server.url)
    await dialog.get_by_label("Model", exact=True).fill("gpt-test")
    await dialog.get_by_label("Key", exact=True).fill(key)


@pytest.mark.basic
async def test_empty_page_offers_a_working_prompt(come, own):
    page = await come()
    await expect(page.get_by_role("heading", name="Start with Dragoman")).to_be_visible()
    await expect(page.locator(".start-model")).to_contain_text("No language model is connected")
    await expect(prompts(page)).to_have_count(5)
    assert await barriers(page) == []
    await shoot(page, "start")
    await prompts(page).filter(has_text="Find TODO in src").click()
    await expect(composer(page)).to_have_value("Find TODO in src")
    await expect(composer(page)).to_be_focused()
    await composer(page).press("Enter")
    await expect(agent_messages(page).last).to_contain_text("door.py")
    await expect(prompts(page)).to_have_count(0)
    picker = page.get_by_role("combobox", name="Model")
    await picker.select_option("Connect a model…")
    await expect(page.get_by_role("dialog", name="Connect a model")).to_be_visible()
    await expect(picker).to_have_value("guide")


@pytest.mark.parametrize(("name", "options"), [("phone", {"viewport": PHONE, "has_touch": True}), ("dark", {})])
async def test_start_page_and_dialog_fit_a_phone_and_dark_theme(come, name, options):
    page = await come(color_scheme="dark" if name == "dark" else "light", **options)
    await expect(prompts(page)).to_have_count(5)
    assert not await page.evaluate(TOO_WIDE)
    await prompts(page).last.scroll_into_view_if_needed()
    await shoot(page, f"start_{name}")
    dialog = await open_dialog(page)
    assert await barriers(page) == []
    assert not await page.evaluate(TOO_WIDE)
    await shoot(page, f"connect_{name}")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    assert await barriers(page) == []
    await composer(page).fill("help")
    await composer(page).press("Enter")
    await expect(agent_messages(page).last).to_be_in_viewport()
    await expect(page.get_by_role("switch", name="Show thoughts")).to_be_visible()
    assert await page.evaluate(HIDDEN_OPTIONS) == []
    await shoot(page, f"options_{name}")


async def test_missing_library_is_shown_with_its_install_command(come):
    page = await come(permissions=["clipboard-read", "clipboard-write"], color_scheme="dark")
    await page.evaluate(WITHOUT_LIBRARIES, "pip install openai")
    dialog = await open_dialog(page)
    for provider in ("Anthropic", "OpenAI-compatible server", "Ollama at another address"):
        await dialog.get_by_label("Provider").select_option(provider)
        await expect(dialog.get_by_role("status")).to_contain_text("needs a library that is not installed")
        await expect(dialog.get_by_role("status")).to_contain_text("No restart is needed")
        await expect(dialog.get_by_role("button", name="Test and use")).to_be_disabled()
    await dialog.get_by_role("button", name="Copy the command").click()
    await expect(page.get_by_role("status").filter(has_text="Command copied.")).to_be_attached()
    assert await page.evaluate("navigator.clipboard.readText()") == "pip install openai"
    assert await barriers(page) == []
    await shoot(page, "connect_install")
    await dialog.get_by_label("Model", exact=True).fill("my-model")
    again = dialog.get_by_role("button", name="Check again")
    button = await again.element_handle()
    await again.click()
    await page.evaluate("() => last.then(() => new Promise((resolve) => setTimeout(resolve)))")
    assert await button.evaluate("(button) => button.isConnected"), "a click on a button that is replaced is lost"
    await page.evaluate(ANSWERED_LATE)
    await again.click()
    await page.evaluate(WITHOUT_LIBRARIES, "")
    await again.click()
    await expect(dialog.get_by_role("button", name="Test and use")).to_be_enabled()
    await page.evaluate("() => { release(); return new Promise((resolve) => setTimeout(resolve)); }")
    await expect(dialog.get_by_role("button", name="Test and use")).to_be_enabled()
    await expect(dialog.get_by_label("Provider")).to_be_focused()
    await expect(dialog.get_by_label("Provider")).to_have_value("ollama")
    await expect(dialog.get_by_label("Model", exact=True)).to_have_value("my-model")


@pytest.mark.basic
async def test_connected_model_is_used_without_a_restart(come, own):
    async with loopback(Refusal(401, f"bad key {KEY}"), CHAT.reply(("text", "I am a **test**."))) as server:
        page = await come()
        await page.evaluate("() => dragoman.connection.request('_dragoman/inspect', {on: true})")
        wire = await page.evaluate_handle(
            "() => { const all = []; dragoman.connection.on('_dragoman/wire', (told) => all.push(told)); return all; }"
        )
        dialog = await open_dialog(page)
        await fill_server(dialog, server)
        await dialog.get_by_role("button", name="Test and use").click()
        await expect(dialog.get_by_role("status")).to_contain_text("did not accept the key")
        assert not (own.home / "keys.json").exists()
        await shoot(page, "connect_refused")
        await dialog.get_by_role("button", name="Test and use").click()
        await expect(dialog.get_by_role("status")).to_contain_text("openai:gpt-test answered")
        await expect(dialog.get_by_role("status")).to_contain_text("I am a **test**.")
        await expect(dialog.get_by_label("Key", exact=True)).to_have_count(0)
        await shoot(page, "connect_done")
        assert await barriers(page) == []
        await dialog.get_by_role("button", name="Done").click()
        await expect(page.locator(".start-model")).to_contain_text("The model is openai:gpt-test.")
        await prompts(page).first.click()
        await composer(page).press("Enter")
        await expect(agent_messages(page).last).to_have_text("I am a test.")
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert json.loads((own.home / "keys.json").read_text()) == {f"{server.url}/v1": KEY}
        shown = json.dumps(await wire.json_value())
        assert "_dragoman/models/connect" in shown
        assert KEY not in shown
    kept = [path for path in own.home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert kept == [own.home / "keys.json"]
    assert KEY not in own.stderr


async def test_local_agents_are_offered_and_connect_by_one_click(come, own):
    page = await come()
    dialog = await open_dialog(page)
    offered = dialog.locator(".offer")
    await expect(offered.filter(has_text="Anthropic")).to_contain_text("with the key in ANTHROPIC_API_KEY")
    await shoot(page, "connect")
    await offered.filter(has_text="Anthropic").get_by_role("button").click()
    await expect(dialog.get_by_role("status")).to_contain_text("Nothing answers")
    assert not (own.home / "preferences.json").exists(), "a model that does not answer is not chosen"
    await offered.filter(has_text="OpenCode").get_by_role("button").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("combobox", name="Agent")).to_have_value("opencode")
    await expect(page.locator(".topbar-state")).to_contain_text("Connected")
    assert json.loads((own.home / "preferences.json").read_text()) == {"agent": "opencode"}


async def test_reader_cannot_connect_models(come, own):
    page = await come(role="reader")
    await expect(page.get_by_role("heading", name="You have read-only access")).to_be_visible()
    await expect(page.get_by_role("button", name="Connect a model")).to_have_count(0)
    refused = await page.evaluate(
        """() => dragoman.connection.request("_dragoman/models/connect", {provider: "guide"})
            .then(() => "done", (error) => error.message)"""
    )
    assert "this viewer is read-only" in refused
