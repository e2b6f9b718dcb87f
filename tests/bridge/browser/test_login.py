"""A login at an MCP server of our own agent, from the card on the page to a tool call.

The browser uses a proxy, as on another machine, and returns from the login to the proxy's address.
"""

import json
import shlex

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.bridge.browser.axe import barriers
from tests.bridge.browser.conftest import DESK
from tests.bridge.browser.pages import PHONE, agent_messages, composer, say, shoot
from tests.bridge.cuttable_proxy import CuttableProxy
from tests.bridge.guard.serving import serving
from tests.mcp.servers.authorising import authorising
from tests.mcp.servers.commands import scripted

SCRIPT = """
- - text: "Hello."
- - tool: {name: tickets__look, arguments: {}}
- - text: "It was called."
"""


@pytest.fixture
def oauth():
    with authorising() as server:
        server.shows_page = True
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def proxied(tmp_path, oauth):
    """Our own agent with a server that needs a login, served by a bridge and a proxy."""
    home, work, script = tmp_path / "bridge-home", tmp_path / "work", tmp_path / "script.yaml"
    home.mkdir(mode=0o700)
    work.mkdir()
    script.write_text(SCRIPT)
    tickets = {"type": "http", "url": f"{oauth.address}/mcp", "permission": "allow"}
    broken = {"command": "sh", "args": ["-c", f"test -e {work}/mended && exec {shlex.join(scripted())}; exit 3"]}
    (home / "dragoman.yaml").write_text(json.dumps({"mcpServers": {"tickets": tickets, "broken": broken}}))
    proxy = CuttableProxy()
    await proxy.open()
    options = ["--cwd", str(work), "--model", f"script:{script}"]
    names = ["--allow-host", proxy.host, "--allow-origin", proxy.origin]
    with serving(home, *options, *names, agent=()) as served:
        proxy.port_beyond = served.port
        yield served, proxy
    await proxy.close()


@pytest_asyncio.fixture(loop_scope="session")
async def begin(browser, proxied):
    """`await begin(**options of the browser context)`: a page with a session and the login card."""
    served, proxy = proxied
    contexts = []

    async def begin(**options):
        context = await browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
        contexts.append(context)
        page = await context.new_page()
        await page.goto(proxy.origin + served.url.removeprefix(served.origin))
        await expect(composer(page)).to_be_visible()
        await say(page, "Hello")
        await expect(question(page)).to_contain_text("tickets asks you to log in")
        return page

    yield begin
    for context in contexts:
        await context.close()


def question(page):
    return page.locator(".question.elicitation")


async def go_to_consent(page):
    """Follow the card's link and return the server's page."""
    async with page.context.expect_page() as opening:
        await question(page).get_by_role("link", name="Log in at").click()
    return await opening.value


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_login_from_the_card_to_a_tool_call(begin, proxied, oauth, scheme):
    page = await begin(color_scheme=scheme)
    await shoot(page, f"login-card-{scheme}")
    consent = await go_to_consent(page)
    await expect(question(page)).to_contain_text("Waiting for you to finish")
    await shoot(page, f"login-waiting-{scheme}")
    await consent.get_by_role("link", name="Agree").click()
    await expect(consent.get_by_role("heading")).to_have_text("You are logged in to tickets")
    assert consent.url.startswith(f"{proxied[1].origin}/oauth/callback?")
    await shoot(consent, f"login-returned-{scheme}")
    await expect(question(page)).to_contain_text("You are logged in to tickets")
    await shoot(page, f"login-done-{scheme}")
    await say(page, "Look")
    await expect(agent_messages(page).last).to_contain_text("It was called.")
    assert oauth.grants == ["authorization_code"]
    again = await consent.reload()
    assert again.status == 400
    await expect(consent.get_by_role("heading")).to_have_text("No login is waiting for this page")


@pytest.mark.basic
async def test_declined_login_is_shown_on_the_card(begin, proxied):
    page = await begin(viewport=PHONE, has_touch=True, is_mobile=True)
    await shoot(page, "login-card-phone")
    consent = await go_to_consent(page)
    await consent.get_by_role("link", name="Refuse").click()
    await expect(consent.get_by_role("heading")).to_have_text("You declined the login at tickets")
    await shoot(consent, "login-returned-phone")
    await expect(question(page)).to_contain_text("The login at tickets failed: you declined the login.")
    await shoot(page, "login-failed-phone")
    await page.get_by_role("button", name="MCP servers: 2, 2 not working").tap()
    await expect(page.get_by_role("button", name="Log in at tickets")).to_be_visible()
    await shoot(page, "servers-phone")
    await page.get_by_role("button", name="Log in at tickets").tap()
    await expect(question(page).last).to_contain_text("tickets asks you to log in")


async def test_failed_server_is_restarted_from_the_panel(begin, tmp_path):
    page = await begin()
    button = page.get_by_role("button", name="MCP servers: 2, 2 not working")
    await button.press("Enter")
    panel = page.get_by_role("region", name="MCP servers")
    await expect(panel.locator(".server", has_text="broken")).to_contain_text("exited with code 3")
    await expect(panel.locator(".server", has_text="tickets").get_by_role("button")).to_have_text("Log in")
    assert await barriers(page) == []
    (tmp_path / "work" / "mended").touch()
    await panel.get_by_role("button", name="Restart broken").press("Enter")
    tools = panel.locator(".server", has_text="broken").locator("details")
    await expect(tools.locator("summary")).to_have_text("1 tool")
    await tools.locator("summary").click()
    await expect(tools).to_contain_text("echo")
    await shoot(page, "servers")
    await page.reload()
    await page.get_by_role("button", name="MCP servers: 2, 1 not working").click()
    await expect(panel.get_by_role("button", name="Restart broken")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(page.get_by_role("button", name="MCP servers")).to_be_focused()
