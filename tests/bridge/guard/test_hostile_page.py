"""A logged-in browser opens a hostile page on another port, so that the browser sends the cookie."""

import http.server
import threading

import pytest
from playwright.sync_api import sync_playwright

from tests.bridge.guard.serving import serving
from tests.chromium import find_browser, launch_options

ATTACK = """
async ({origin, socket, token}) => {
  const open = (...words) => new Promise((done) => {
    const made = new WebSocket(socket, ...words);
    made.onopen = () => { made.close(); done("in"); };
    made.onerror = () => done("out");
  });
  const ask = (path, options) =>
    fetch(origin + path, {credentials: "include", ...options}).then(() => "in", () => "out");
  const show = (tag, path) => new Promise((done) => {
    const element = document.createElement(tag);
    element.onload = () => done("in");
    element.onerror = () => done("out");
    element.src = origin + path;
    document.body.append(element);
  });
  const post = {method: "POST", mode: "no-cors", headers: {"content-type": "text/plain"}, body: "{}"};
  const frame = document.createElement("iframe");
  frame.src = origin + "/";
  const framed = new Promise((done) => { frame.onload = done; });
  document.body.append(frame);
  await framed;
  return {
    "websocket with the cookie": await open(),
    "websocket with the token": await open(["acp", `dragoman.token.${token}`]),
    "reading": await ask("/config.json"),
    "reading blindly": await ask("/config.json", {mode: "no-cors"}),
    "posting": await ask("/link", {method: "POST", body: "{}"}),
    "posting blindly": await ask("/link", post),
    "with the token": await ask("/config.json", {headers: {authorization: `Bearer ${token}`}}),
    "script": await show("script", "/static/js/app/app.js"),
    "picture": await show("img", "/static/icon.svg"),
  };
}
"""

NULL_ATTACK = """
({socket, token}) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.srcdoc = `<script>
    const made = new WebSocket(${JSON.stringify(socket)}, ["acp", "dragoman.token." + ${JSON.stringify(token)}]);
    made.onopen = () => parent.postMessage("in", "*");
    made.onerror = () => parent.postMessage("out", "*");
  <\\/script>`;
  window.onmessage = (event) => done([event.origin, event.data]);
  document.body.append(frame);
})
"""


MAKE_MARKUP = """
() => {
  try { document.body.innerHTML = "<b>x</b>"; return "made"; } catch (error) { return error.name; }
}
"""

FILES = ("static/js/app/app.js", "static/icon.svg")


class Blank(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><body></body>")

    def log_message(self, *words):
        pass


@pytest.fixture
def hostile_origin():
    """The origin of a hostile page on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    if find_browser() is None:
        pytest.skip("no Chromium is here; `scripts/browser` installs it or says what to do")
    with sync_playwright() as playwright, playwright.chromium.launch(**launch_options()) as launched:
        yield launched


@pytest.fixture
def context(browser):
    with browser.new_context() as made:
        yield made


def test_hostile_page_gets_nothing_from_a_logged_in_browser(tmp_path, context, hostile_origin):
    with serving(tmp_path, DRAGOMAN_LOG="info") as served:
        own = context.new_page()
        own.goto(served.url)
        assert own.url == f"{served.origin}/"
        for path in ("config.json", *FILES):
            assert own.evaluate("(path) => fetch(path).then((answer) => answer.status)", path) == 200

        place = {"origin": served.origin, "socket": f"ws://{served.host}/acp", "token": served.token}
        hostile = context.new_page()
        hostile.goto(hostile_origin)
        assert hostile.evaluate(ATTACK, place) == {
            "websocket with the cookie": "out",
            "websocket with the token": "out",
            "reading": "out",
            "reading blindly": "out",
            "posting": "out",
            "posting blindly": "out",
            "with the token": "out",
            "script": "out",
            "picture": "out",
        }
        assert hostile.frames[1].url.startswith("chrome-error:")
        assert hostile.evaluate(NULL_ATTACK, place) == ["null", "out"]
        assert own.evaluate("() => fetch('config.json').then((answer) => answer.status)") == 200
        assert served.stop() == 0
    assert "another page sent this" in served.stderr
    assert "pages of that origin may not use" in served.stderr


def test_cookie_and_code_are_hidden_from_scripts(tmp_path, context):
    with serving(tmp_path) as served:
        page = context.new_page()
        page.goto(served.url)
        assert "code" not in page.url
        assert page.evaluate("() => document.cookie") == ""
        [cookie] = [one for one in context.cookies() if one["name"] == f"dragoman_{served.port}"]
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert page.evaluate(MAKE_MARKUP) == "TypeError"
