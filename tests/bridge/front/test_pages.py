"""The page's files, login and logout, and mounting the application."""

import asyncio
import re
import socket
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from dragoman.bridge import Bridge
from dragoman.bridge.front.app import Application
from dragoman.bridge.front.pages import WEB, StaticFiles
from tests.bridge.front.serving import TOKEN, make_guard, make_settings
from tests.table import each_row


@pytest.fixture
async def http(served):
    async with httpx2.AsyncClient(base_url=served.url) as http:
        yield http


async def test_page_and_its_files_are_public(http):
    page = await http.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    script = await http.get("/static/js/app/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    again = await http.get("/static/js/app/app.js", headers={"if-none-match": script.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""
    assert (await http.head("/")).content == b""


async def test_every_file_of_the_page_is_referenced(http):
    """A module that nothing imports, or an import of a file that is not served, is a mistake."""
    asked, waiting = set(), ["/", "/answer"]
    while waiting:
        address = waiting.pop()
        answer = await http.get(address)
        assert answer.status_code == 200, address
        # Workers are named in their folder, everything else relative to the file.
        named_in = [urljoin("/static/worker/", found) for found in re.findall(r'"(\w+\.js)"', answer.text)]
        named_in += [
            urljoin(address, found) for found in re.findall(r'(?:from|import\(|href=|src=)\s*"(\.[^"]+)"', answer.text)
        ]
        for named in named_in:
            if named not in asked:
                asked.add(named)
                waiting.append(named)
    there = {f"/static/{file.relative_to(WEB).as_posix()}" for file in WEB.rglob("*.*") if file.suffix != ".html"}
    assert asked == there


@each_row(
    "path",
    [
        "../settings.py",
        "..",
        "",
        "js",
        "js/",
        "/etc/passwd",
        "js/..%2f..%2fsettings.py",
        ".hidden.js",
        "js//app.js",
        "js/a\0.js",
    ],
)
def test_other_files_are_not_served(path):
    assert StaticFiles().find(path) is None


async def test_changed_file_is_read_again(tmp_path):
    (tmp_path / "one.js").write_text("1")
    files = StaticFiles(tmp_path)
    first = files.find("one.js")
    (tmp_path / "one.js").write_text("one and more")
    assert files.find("one.js").content == b"one and more"
    assert files.find("one.js").etag != first.etag
    (tmp_path / "link.js").symlink_to("/etc/passwd")
    assert files.find("link.js") is None


async def test_link_logs_in_one_browser_once(served, http):
    code = await served.guard.new_link_code()
    looked = await http.head("/login", params={"code": code})
    fetched = await http.get("/login", params={"code": code}, headers={"sec-purpose": "prefetch;prerender"})
    assert looked.status_code == fetched.status_code == 204
    entered = await http.get("/login", params={"code": code})
    assert entered.status_code == 303
    assert entered.headers["location"] == "./"
    config = await http.get("/config.json")
    assert config.json()["role"] == "owner"
    assert config.json()["agents"] == [{"name": "one", "title": "The first"}, {"name": "two", "title": "two"}]
    assert config.json()["cwd"] == "/somewhere"
    async with httpx2.AsyncClient(base_url=served.url) as other:
        again = await other.get("/login", params={"code": code})
        assert again.status_code == 401
        assert "link" in again.json()["error"]


@pytest.mark.parametrize(("query", "person"), [({}, "owner"), ({"for": "reader"}, "reader"), ({"for": "x"}, "owner")])
async def test_used_link_redirects_to_an_explanation(served, query, person):
    code = await served.guard.new_link_code()
    await served.guard.redeem_code(code)
    async with httpx2.AsyncClient(base_url=served.url, headers={"accept": "text/html,*/*;q=0.8"}) as browser:
        answer = await browser.get("/login", params={"code": code, **query})
        assert answer.status_code == 303
        assert answer.headers["location"] == f"./?refused={person}"
        assert "set-cookie" not in answer.headers
        assert (await browser.get("/config.json")).status_code == 401


async def test_wrong_links_are_rate_limited_for_browsers(served):
    async with httpx2.AsyncClient(base_url=served.url, headers={"accept": "text/html"}) as browser:
        answers = [await browser.get("/login", params={"code": f"guess-{number}"}) for number in range(50)]
    assert answers[0].status_code == 303
    assert answers[-1].status_code == 429


async def test_login_with_the_token_and_logout(served, http):
    origin = {"origin": served.url}
    wrong = await http.post("/login", json={"token": "w" * 43}, headers=origin)
    assert wrong.status_code == 401
    entered = await http.post("/login", json={"token": "t" * 43}, headers=origin)
    assert entered.status_code == 204
    assert (await http.get("/config.json")).status_code == 200
    assert (await http.post("/logout", headers=origin)).status_code == 204
    assert (await http.get("/config.json")).status_code == 401


async def test_only_the_owner_creates_links(served, http):
    origin = {"origin": served.url}
    await http.post("/login", json={"token": "t" * 43}, headers=origin)
    link = (await http.post("/shares", json={"hours": 1}, headers=origin)).json()
    async with httpx2.AsyncClient(base_url=served.url) as reader:
        assert (await reader.get("/" + link["path"])).status_code == 303
        assert (await reader.get("/config.json")).json()["role"] == "reader"
        for path in ("/link", "/shares"):
            refused = await reader.post(path, json={"hours": 1}, headers=origin)
            assert refused.status_code == 403
            assert "owner" in refused.json()["error"]


async def test_markdown_rendering_needs_a_credential(served, http):
    assert (await http.post("/render", json={"markdown": "*a*"})).status_code == 401
    answer = await http.post("/render", json={"markdown": "*a*"}, headers=served.headers)
    assert "<em>a</em>" in answer.json()["html"]
    wrong = await http.post("/render", json={"text": "*a*"}, headers=served.headers)
    assert wrong.status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/config.json", 401),
        ("POST", "/acp", 401),
        ("POST", "/", 405),
        ("GET", "/logout", 401),
        ("GET", "/x", 401),
    ],
)
async def test_other_paths_need_a_credential(http, method, path, status):
    answer = await http.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]


async def test_foreign_host_does_not_get_the_page(http):
    assert (await http.get("/", headers={"host": "rebound.example"})).status_code == 403


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@asynccontextmanager
async def on_another_server(make_app, **options):
    """Serve an application with another server, and yield its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(make_app(port), log_config=None, ws="websockets-sansio", **options))
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield port
    finally:
        server.should_exit = True
        await task
        listening.close()


async def test_application_can_be_mounted_on_another_server(served):
    def mount(port):
        app = Application(served.bridge, make_guard(port))
        return Starlette(routes=[Mount("/tools/agents", app=app)])

    async with on_another_server(mount) as port:
        base = f"http://127.0.0.1:{port}/tools/agents"
        async with httpx2.AsyncClient(follow_redirects=True) as http:
            page = await http.get(base)
            assert page.status_code == 200
            assert str(page.url) == base + "/"
            assert (await http.get(base + "/static/js/app/app.js")).status_code == 200
            assert (await http.get(base + "/config.json", headers=served.headers)).json()["role"] == "owner"
            answer = await http.post(base + "/acp", json=HELLO, headers=served.headers)
            assert answer.status_code == 200
            assert "Path=/tools/agents" in answer.headers["set-cookie"]
        async with connect(f"ws://127.0.0.1:{port}/tools/agents/acp", additional_headers=served.headers) as ws:
            assert ws.response.headers["Acp-Connection-Id"]
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{port}/tools/agents/acp")
        assert refused.value.response.status_code == 401


async def test_prefix_without_a_slash_redirects_to_the_page(served):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    host = [(b"host", f"127.0.0.1:{served.port}".encode())]
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "query_string": b""}
    await served.app(scope | {"path": "/deep/er", "root_path": "/deep/er", "headers": host}, receive, send)
    assert sent[0]["status"] == 307
    assert (b"location", b"er/") in sent[0]["headers"]


async def test_lifespan_opens_and_closes_the_bridge(tmp_path):
    settings = make_settings(tmp_path)

    def make(port):
        return Application(Bridge(settings), make_guard(port), opens_bridge=True)

    async with on_another_server(make, lifespan="on") as port, httpx2.AsyncClient() as http:
        headers = {"authorization": f"Bearer {TOKEN}"}
        answer = await http.post(f"http://127.0.0.1:{port}/acp", json=HELLO, headers=headers)
        assert answer.status_code == 200
    async with Bridge(settings) as again:  # the home is unlocked again
        assert again.agent() is not None
