"""The guard over real sockets, with raw requests of hostile pages, programs and name servers."""

import json

import h2.connection
import h2.events
import pytest

from tests.bridge.guard.serving import TIMEOUT_S, serving
from tests.table import each_row

CLOSED = ["GET /acp", "POST /acp", "DELETE /acp", "GET /config.json", "POST /render", "POST /link", "POST /logout"]
OPEN = ["GET /", "HEAD /", "GET /login", "GET /static/js/app/app.js"]
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
JSON = ("Content-Type: application/json", "Accept: application/json, text/event-stream")

FOREIGN_ORIGINS = [
    "http://evil.example",
    "null",
    "http://{host}.evil.example",
    "http://127.0.0.1.evil.example:{port}",
    "http://evil.localhost:{port}",
    "http://{host}0",
    "http://127.0.0.1:1",
    "http://127.0.0.1",
    "http://{host}@evil.example",
    "http://evil.example@{host}",
    "https://{host}",
    "http://{host}/",
    "http://localhost.:{port}",
    "http://127.1:{port}",
]

FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example:{port}",
    "127.0.0.1:1",
    "127.0.0.1",
    "localhost.:{port}",
    "127.1:{port}",
    "{host}@evil.example",
    "evil.example@{host}",
]


@pytest.fixture(scope="module")
def cookie(served):
    return f"Cookie: {served.log_in()}"


def fill(pattern, served):
    return pattern.format(host=served.host, port=served.port)


# ── without a credential ────────────────────────────────────────────────────────────────────────────


@each_row("line", [*CLOSED, "GET /nothing", "GET /acp/dragoman", "GET //acp", "OPTIONS /acp"])
def test_cve_2025_49596_every_path_needs_a_token(served, line):
    answer = served.ask(line)
    assert answer.status == 401
    assert answer.header("www-authenticate") == 'Bearer realm="dragoman"'
    assert answer.header("cache-control") == "no-store"


def test_cve_2026_22812_loopback_needs_a_token(served):
    assert served.ask("POST /acp", *JSON, body=INITIALIZE).status == 401
    assert served.upgrade().status == 401
    assert served.upgrade("Sec-WebSocket-Protocol: acp").status == 401


@pytest.mark.parametrize("name", ["Acp-Connection-Id", "Acp-Session-Id", "X-Forwarded-User"])
def test_cve_2026_52869_connection_id_is_not_a_credential(served, name):
    begun = served.ask("POST /acp", *JSON, served.bearer, body=INITIALIZE)
    assert begun.status == 200, begun
    known = begun.header("acp-connection-id")
    assert known
    for line in ("GET /acp", "DELETE /acp"):
        assert served.ask(line, f"{name}: {known}", "Accept: text/event-stream").status == 401
    assert served.ask("POST /acp", *JSON, f"{name}: {known}", body=INITIALIZE).status == 401
    assert served.upgrade(f"{name}: {known}").status == 401
    assert served.ask("DELETE /acp", f"Acp-Connection-Id: {known}", served.bearer).status < 300


# ── foreign pages and names ─────────────────────────────────────────────────────────────────────────


@each_row("pattern", FOREIGN_ORIGINS)
def test_cve_2025_52882_foreign_page_opens_no_websocket(served, cookie, pattern):
    origin = f"Origin: {fill(pattern, served)}"
    for credential in (cookie, served.bearer, f"Sec-WebSocket-Protocol: acp, dragoman.token.{served.token}"):
        answer = served.upgrade(origin, credential)
        assert answer.status == 403
        assert answer.header("upgrade") is None


@each_row("pattern", FOREIGN_ORIGINS)
def test_cve_2026_40110_similar_origin_is_refused(served, cookie, pattern):
    origin = f"Origin: {fill(pattern, served)}"
    for line in (*CLOSED, *OPEN, "OPTIONS /acp"):
        answer = served.ask(line, origin, cookie)
        assert answer.status == 403
        assert not [name for name, _ in answer.headers if name.startswith("access-control")]
    assert served.ask("GET /config.json", origin, served.bearer).status == 403


@each_row("pattern", FOREIGN_HOSTS)
def test_rebound_host_reaches_nothing(served, cookie, pattern):
    host = fill(pattern, served)
    for line in (*OPEN, "GET /config.json"):
        assert served.ask(line, cookie, f"Origin: http://{host}", host=host).status == 403
        assert served.ask(line, served.bearer, host=host).status == 403
    assert served.upgrade(served.bearer, host=host).status == 403


def test_a_rebound_host_is_refused_over_http2_as_well(served):
    assert ask_http2(served, "GET", "/config.json", served.host, authorization=f"Bearer {served.token}") == 200
    assert ask_http2(served, "GET", "/config.json", "evil.example", authorization=f"Bearer {served.token}") == 403
    assert ask_http2(served, "GET", "/", f"evil.example:{served.port}") == 403
    assert ask_http2(served, "GET", "/config.json", served.host) == 401


@pytest.mark.parametrize("host", ["LOCALHOST:{port}", "localhost:{port}", "[::1]:{port}", "[0:0::1]:{port}"])
def test_loopback_names_are_accepted(served, host):
    assert served.ask("GET /config.json", served.bearer, host=fill(host, served)).status == 200


@pytest.mark.parametrize("more", ["Host: evil.example", "Origin: http://evil.example"])
def test_a_second_host_or_origin_is_refused(served, more):
    own = f"Origin: {served.origin}"
    for headers in ([own, more], [more, own]):
        assert served.ask("GET /config.json", served.bearer, *headers).status == 400
        assert served.upgrade(served.bearer, *headers).status == 400


def test_a_request_without_a_host_is_refused(served):
    assert served.ask("GET /config.json", served.bearer, host="").status == 400


# ── credentials ─────────────────────────────────────────────────────────────────────────────────────


def test_websocket_token_subprotocol_is_not_echoed(served):
    answer = served.upgrade(f"Sec-WebSocket-Protocol: acp, dragoman.token.{served.token}", f"Origin: {served.origin}")
    assert answer.status == 101
    assert answer.header("sec-websocket-protocol") == "acp"
    assert served.token not in str(answer)


def test_websocket_cookie_works_only_for_our_page(served, cookie):
    assert served.upgrade(cookie, f"Origin: {served.origin}").status == 101
    assert served.upgrade(cookie).status == 403


def test_a_cookie_changes_nothing_without_an_origin(served, cookie):
    assert served.ask("GET /config.json", cookie).status == 200
    assert served.ask("POST /link", cookie, *JSON, body=b"{}").status == 403
    assert served.ask("POST /link", cookie, *JSON, f"Origin: {served.origin}", body=b"{}").status == 200


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_page_of_another_port_cannot_use_the_cookie(served, cookie, site):
    assert served.ask("GET /config.json", cookie, f"Sec-Fetch-Site: {site}").status == 403


@pytest.mark.parametrize("path", ["/acp", "/config.json", "/", "/login", "/static/js/app/app.js"])
def test_token_in_the_query_is_refused_everywhere(served, path):
    for query in (f"token={served.token}", f"access_token={served.token}", f"x={served.token}"):
        answer = served.ask(f"GET {path}?{query}", served.bearer)
        assert answer.status == 400
        assert b"never accepted" in answer.body
        assert served.token.encode() not in answer.body
    assert served.upgrade(path=f"{path}?token={served.token}").status == 400


def make_link(served):
    answer = served.ask("POST /link", served.bearer)
    assert answer.status == 200
    return f"/{json.loads(answer.body)['path']}"


def test_link_works_once_and_redirects_without_its_code(served):
    link = make_link(served)
    first = served.ask(f"GET {link}")
    assert (first.status, first.header("location")) == (303, "./")
    assert first.header("referrer-policy") == "no-referrer"
    assert first.header("cache-control") == "no-store"
    second = served.ask(f"GET {link}")
    assert second.status == 401
    assert second.header("set-cookie") is None


def test_preview_does_not_use_a_link(served):
    link = make_link(served)
    assert served.ask(f"HEAD {link}").header("set-cookie") is None
    assert served.ask(f"GET {link}", "Sec-Purpose: prefetch;prerender").header("set-cookie") is None
    assert served.ask(f"GET {link}", "Purpose: prefetch").header("set-cookie") is None
    assert served.ask(f"GET {link}").status == 303


def test_rebound_host_does_not_use_a_link(served):
    link = make_link(served)
    assert served.ask(f"GET {link}", host="evil.example").status == 403
    assert served.ask(f"GET {link}").status == 303


def test_the_cookie_is_strict_and_named_after_the_port(served):
    name, *traits = served.ask(f"GET {make_link(served)}").header("set-cookie").split("; ")
    assert name.startswith(f"dragoman_{served.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(traits)


def test_reader_cannot_create_links(served):
    made = served.ask("POST /shares", served.bearer, *JSON, body=b'{"hours": 1}')
    cookie = served.ask(f"GET /{json.loads(made.body)['path']}").header("set-cookie").partition(";")[0]
    headers = (f"Cookie: {cookie}", f"Origin: {served.origin}", *JSON)
    assert json.loads(served.ask("GET /config.json", f"Cookie: {cookie}").body)["role"] == "reader"
    assert served.ask("POST /link", *headers, body=b'{"role":"owner"}').status == 403


def test_login_form_accepts_only_the_token(served):
    good = served.ask("POST /login", *JSON, body=json.dumps({"token": served.token}).encode())
    assert good.header("set-cookie").startswith(f"dragoman_{served.port}=owner.")
    bad = served.ask("POST /login", *JSON, body=json.dumps({"token": served.token[:-1]}).encode())
    assert (bad.status, bad.header("set-cookie")) == (401, None)


def test_a_foreign_page_cannot_log_a_browser_in(served):
    body = json.dumps({"token": served.token}).encode()
    answer = served.ask("POST /login", *JSON, "Origin: http://evil.example", body=body)
    assert (answer.status, answer.header("set-cookie")) == (403, None)


def test_logging_out_removes_the_cookie(served):
    cookie = served.ask(f"GET {make_link(served)}").header("set-cookie").partition(";")[0]
    answer = served.ask("POST /logout", f"Cookie: {cookie}", f"Origin: {served.origin}")
    assert answer.status == 204
    assert answer.header("set-cookie").startswith(f"dragoman_{served.port}=; Max-Age=0")


def test_cookie_survives_a_restart_until_the_token_changes(tmp_path):
    with serving(tmp_path) as first:
        port = first.port
        cookie = f"Cookie: {first.log_in()}"
        assert first.stop() == 0
    with serving(tmp_path, port=port) as second:
        assert second.ask("GET /config.json", cookie).status == 200
        assert second.token == first.token
        assert second.stop() == 0
    (tmp_path / "bridge" / "token").unlink()
    with serving(tmp_path, port=port) as third:
        assert third.token != first.token
        assert third.ask("GET /config.json", cookie).status == 401
        assert third.ask("GET /config.json", first.bearer).status == 401


# ── headers of every answer ─────────────────────────────────────────────────────────────────────────


@each_row("line", [*OPEN, "GET /config.json", "GET /nothing", "PUT /", "GET /static/../token"])
@each_row("is_known", [True, False])
def test_every_answer_has_security_headers(served, line, is_known):
    answer = served.ask(line, *([served.bearer] if is_known else []))
    assert answer.all("x-content-type-options") == ["nosniff"]
    assert answer.all("referrer-policy") == ["no-referrer"]
    assert answer.all("cross-origin-resource-policy") == ["same-origin"]
    assert len(answer.all("content-security-policy")) == 1
    assert "default-src 'none'" in answer.header("content-security-policy")
    assert answer.header("server") is None
    assert not [name for name, _ in answer.headers if name.startswith("access-control")]


def test_the_page_has_the_strict_policy(served):
    answer = served.ask("GET /")
    assert answer.status == 200
    policy = answer.header("content-security-policy")
    assert "script-src 'self';" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy


def test_answers_for_one_client_are_not_cached(served):
    assert served.ask("GET /config.json", served.bearer).all("cache-control") == ["no-store"]
    assert served.ask("GET /config.json").all("cache-control") == ["no-store"]


def ask_http2(served, method, path, authority, **headers):
    """Send a request over HTTP/2 by prior knowledge and return the status."""
    import socket

    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    pseudo = [(":method", method), (":path", path), (":authority", authority), (":scheme", "http")]
    connection.send_headers(1, [*pseudo, *headers.items()], end_stream=True)
    with socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S) as link:
        link.sendall(connection.data_to_send())
        while data := link.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    return int(dict(event.headers)[b":status"])
            link.sendall(connection.data_to_send())
    raise AssertionError("no answer came")
