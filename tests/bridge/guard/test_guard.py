"""The guard checks Host, Origin and credential. Each known bypass has a test with its name."""

import pytest

from dragoman.bridge.guard import AccessDenial, Grant, new_token
from tests.bridge.guard.asking import (
    HOST,
    ORIGIN,
    PORT,
    ask,
    ask_websocket,
    bearer,
    cookie_of,
    make_guard,
    make_strict_guard,
    status_of,
)
from tests.table import each_row

OWN_ORIGINS = [
    f"http://127.0.0.1:{PORT}",
    f"http://localhost:{PORT}",
    f"http://[::1]:{PORT}",
    f"HTTP://LOCALHOST:{PORT}",
]

FOREIGN_ORIGINS = [
    "http://evil.example",
    "null",
    f"http://127.0.0.1:{PORT}.evil.example",
    f"http://127.0.0.1.evil.example:{PORT}",
    f"http://localhost.evil.example:{PORT}",
    f"http://evil-localhost:{PORT}",
    f"http://evil.localhost:{PORT}",
    f"http://127.0.0.1:{PORT}0",
    f"http://127.0.0.1:{PORT - 1}",
    f"http://127.0.0.1:{PORT}@evil.example",
    f"http://evil.example@127.0.0.1:{PORT}",
    f"https://127.0.0.1:{PORT}",
    f"http://127.0.0.1:{PORT}/",
    f"http://127.0.0.1:{PORT}, http://evil.example",
    "http://127.0.0.1",
    f"http://localhost.:{PORT}",
    f"http://2130706433:{PORT}",
    f"http://127.1:{PORT}",
    f"http://0.0.0.0:{PORT}",
    f"ws://127.0.0.1:{PORT}",
    "file://",
    "",
]

FOREIGN_HOSTS = [
    f"evil.example:{PORT}",
    "evil.example",
    f"127.0.0.1.evil.example:{PORT}",
    f"evil.example.127.0.0.1:{PORT}",
    f"localhost.evil.example:{PORT}",
    f"127.0.0.1:{PORT}@evil.example",
    f"evil.example@127.0.0.1:{PORT}",
    f"127.0.0.1:{PORT - 1}",
    "127.0.0.1",
    f"localhost.:{PORT}",
    f"127.1:{PORT}",
    f"0.0.0.0:{PORT}",
    f"127.0.0.1:{PORT}, evil.example",
    f"[::1]:{PORT - 1}",
    f"[::ffff:127.0.0.1]:{PORT}",
]


# ── admission ───────────────────────────────────────────────────────────────────────────────────────


def test_program_is_admitted_with_the_token(guard, token):
    for method in ("GET", "POST", "DELETE"):
        assert guard.admit(ask(method, authorization=bearer(token))) == Grant("owner", "bearer")
    assert guard.admit(ask_websocket(authorization=bearer(token))) == Grant("owner", "bearer")


def test_bearer_scheme_is_case_insensitive(guard, token):
    assert guard.admit(ask(authorization=f"bEARER {token.reveal()}")) == Grant("owner", "bearer")


def test_browser_is_admitted_with_a_cookie_from_our_page(guard, cookie):
    assert guard.admit(ask("POST", origin=ORIGIN, cookie=cookie)) == Grant("owner", "cookie")
    assert guard.admit(ask_websocket("acp", origin=ORIGIN, cookie=cookie)) == Grant("owner", "cookie")
    assert guard.admit(ask(cookie=cookie, sec_fetch_site="same-origin")) == Grant("owner", "cookie")


def test_websocket_is_admitted_with_a_token_subprotocol(guard, token):
    scope = ask_websocket("acp", f"dragoman.token.{token.reveal()}", origin=ORIGIN)
    assert guard.admit(scope) == Grant("owner", "subprotocol")
    assert guard.accepted_subprotocol(scope) == "acp"


def test_token_subprotocol_needs_the_acp_subprotocol(guard, token):
    scope = ask_websocket(f"dragoman.token.{token.reveal()}")
    assert status_of(guard.admit(scope)) == 400
    assert guard.accepted_subprotocol(scope) is None


def test_subprotocols_of_plain_requests_are_ignored(guard, token):
    scope = {**ask(sec_websocket_protocol=f"acp, dragoman.token.{token.reveal()}"), "subprotocols": []}
    assert status_of(guard.admit(scope)) == 401


async def test_reader_is_admitted_until_the_share_is_revoked(guard):
    share, code = await guard.shares.make(3600, "one", "session")
    cookie = cookie_of(await guard.redeem_share(code))
    assert await guard.redeem_share(code) is None
    grant = guard.admit(ask(cookie=cookie))
    assert (grant.role, grant.is_scoped, grant.share_id) == ("reader", True, share.id)
    assert (grant.reaches("one"), grant.reaches("two"), grant.reaches("one", "other")) == (True, False, False)
    await guard.shares.withdraw(share.id)
    assert status_of(guard.admit(ask(cookie=cookie))) == 401


def test_only_the_right_token_returns_a_cookie(guard, token):
    assert guard.admit(ask(cookie=cookie_of(guard.redeem_token(token.reveal())))) == Grant("owner", "cookie")
    assert guard.redeem_token(new_token().reveal()) is None


async def test_code_returns_one_cookie(guard):
    code = await guard.new_link_code()
    assert guard.admit(ask(cookie=cookie_of(await guard.redeem_code(code)))) == Grant("owner", "cookie")
    assert await guard.redeem_code(code) is None


def test_cookie_is_valid_after_a_restart(token, cookie):
    assert make_guard(token).admit(ask(cookie=cookie)) == Grant("owner", "cookie")


def test_cookie_is_invalid_after_the_token_changes(cookie):
    assert status_of(make_guard().admit(ask(cookie=cookie))) == 401


def test_separate_cookie_headers_are_joined(guard, cookie):
    assert guard.admit(ask(cookie="other=1", more=[("cookie", cookie)])) == Grant("owner", "cookie")


@pytest.mark.parametrize("host", ["LOCALHOST:8421", "[::1]:8421", "[0:0:0:0:0:0:0:1]:8421", "127.0.0.1:8421"])
def test_loopback_names_are_case_insensitive(guard, token, host):
    assert guard.admit(ask(host=host, authorization=bearer(token))) == Grant("owner", "bearer")


@pytest.mark.parametrize("origin", OWN_ORIGINS)
def test_own_origins_are_accepted(guard, cookie, origin):
    assert guard.admit(ask("POST", origin=origin, cookie=cookie)) == Grant("owner", "cookie")


def test_page_needs_no_credential(guard):
    assert guard.admit_public(ask()) is None


# ── refusal ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "192.0.2.7"])
def test_cve_2025_49596_local_requests_need_a_token(guard, peer):
    for scope in (ask(peer=peer), ask("POST", peer=peer), ask_websocket("acp", peer=peer)):
        answer = guard.admit(scope)
        assert status_of(answer) == 401
        assert (b"www-authenticate", b'Bearer realm="dragoman"') in answer.headers


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic Og==", "Bearer null", "Bearer undefined"])
def test_cve_2026_22812_empty_credential_is_refused(guard, authorization):
    assert status_of(guard.admit(ask("POST", authorization=authorization))) == 401
    assert status_of(guard.admit(ask_websocket("acp", "dragoman.token."))) == 401


@pytest.mark.parametrize(
    "change", [str.swapcase, lambda value: value[:-1], lambda value: value + "A", lambda _: "x" * 43]
)
def test_almost_correct_token_is_refused(guard, token, change):
    wrong = change(token.reveal())
    assert status_of(guard.admit(ask(authorization=f"Bearer {wrong}"))) == 401
    assert status_of(guard.admit(ask_websocket("acp", f"dragoman.token.{wrong}"))) == 401


def test_token_with_another_scheme_is_refused(guard, token):
    assert status_of(guard.admit(ask(authorization=f"Basic {token.reveal()}"))) == 401
    assert status_of(guard.admit(ask(authorization=token.reveal()))) == 401


@each_row("origin", FOREIGN_ORIGINS)
def test_cve_2025_52882_foreign_websocket_is_always_refused(guard, token, cookie, origin):
    word = f"dragoman.token.{token.reveal()}"
    assert status_of(guard.admit(ask_websocket("acp", origin=origin, cookie=cookie))) == 403
    assert status_of(guard.admit(ask_websocket("acp", word, origin=origin))) == 403
    assert status_of(guard.admit(ask_websocket("acp", origin=origin, authorization=bearer(token)))) == 403


@each_row("origin", FOREIGN_ORIGINS)
def test_cve_2026_40110_partial_origin_match_is_foreign(guard, token, cookie, origin):
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        assert status_of(guard.admit(ask(method, origin=origin, cookie=cookie))) == 403
        assert status_of(guard.admit(ask(method, origin=origin, authorization=bearer(token)))) == 403
        assert status_of(guard.admit_public(ask(method, origin=origin))) == 403


@each_row("host", FOREIGN_HOSTS)
def test_rebound_host_is_refused_even_with_a_matching_origin(guard, token, cookie, host):
    origin = f"http://{host}"
    for scope in (ask(host=host, origin=origin, cookie=cookie), ask(host=host, authorization=bearer(token))):
        assert status_of(guard.admit(scope)) == 403
    assert status_of(guard.admit(ask_websocket("acp", host=host, origin=origin, cookie=cookie))) == 403
    assert status_of(guard.admit_public(ask(host=host))) == 403


@pytest.mark.parametrize("header", ["acp_connection_id", "acp_session_id", "mcp_session_id", "x_forwarded_for"])
def test_cve_2026_52869_id_is_not_a_credential(guard, header):
    known = {header: "5f2b0d5e-5d0d-4c38-9a0e-0f3f6cf3f3a1"}
    for method in ("GET", "POST", "DELETE"):
        assert status_of(guard.admit(ask(method, **known))) == 401
    assert status_of(guard.admit(ask_websocket("acp", **known))) == 401


@each_row("name", ["token", "TOKEN", "access_token", "auth_token", "auth", "bearer", "api_key", "%74oken"])
def test_query_token_is_refused_despite_other_credentials(guard, token, name):
    query = f"x=1&{name}={token.reveal()}".encode()
    for answer in (guard.admit(ask(query=query, authorization=bearer(token))), guard.admit_public(ask(query=query))):
        assert status_of(answer) == 400
        assert "never accepted" in answer.reason
        assert "replace it" in answer.reason
    assert status_of(guard.admit(ask_websocket("acp", query=query))) == 400


@pytest.mark.parametrize("value", ["", "wrong"])
def test_query_token_is_refused_whether_right_or_wrong(guard, token, value):
    scope = ask(query=f"token={value}".encode(), authorization=bearer(token))
    assert status_of(guard.admit(scope)) == 400
    assert status_of(guard.admit_public(scope)) == 400


def test_query_token_is_found_under_any_name(guard, token):
    plain = token.reveal()
    spelt = "".join(f"%{ord(letter):02x}" for letter in plain)
    for value in (plain, spelt):
        assert status_of(guard.admit_public(ask(query=f"code={value}".encode()))) == 400


async def test_query_code_is_not_a_credential(guard):
    assert status_of(guard.admit(ask(query=f"code={await guard.new_link_code()}".encode()))) == 401


@pytest.mark.parametrize("query", [b"x" * 5000, b"&".join([b"a=1"] * 100)])
def test_too_long_query_is_refused(guard, token, query):
    assert status_of(guard.admit(ask(query=query, authorization=bearer(token)))) == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", HOST),
        ("host", "evil.example"),
        ("origin", ORIGIN),
        ("origin", "null"),
        ("Origin", "http://evil.example"),
    ],
)
def test_repeated_header_is_refused_even_if_equal(guard, token, name, value):
    scope = ask(origin=ORIGIN, authorization=bearer(token), more=[(name, value)])
    assert status_of(guard.admit(scope)) == 400
    assert status_of(guard.admit_public(scope)) == 400


def test_two_authorizations_are_refused(guard, token):
    scope = ask(authorization="Bearer x", more=[("authorization", bearer(token))])
    assert status_of(guard.admit(scope)) == 400


@pytest.mark.parametrize("host", [None, "", " "])
def test_a_request_without_a_host_is_refused(guard, token, host):
    assert status_of(guard.admit(ask(host=host, authorization=bearer(token)))) == 400


def test_a_cookie_without_an_origin_changes_nothing(guard, cookie):
    for scope in (ask("POST", cookie=cookie), ask("DELETE", cookie=cookie), ask_websocket("acp", cookie=cookie)):
        assert status_of(guard.admit(scope)) == 403
    assert isinstance(guard.admit(ask(cookie=cookie)), Grant)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "anything"])
def test_page_of_another_port_cannot_use_the_cookie(guard, cookie, site):
    """For a browser, two ports of one host are the same site, and SameSite=Strict lets the cookie through."""
    assert status_of(guard.admit(ask(cookie=cookie, sec_fetch_site=site))) == 403


def test_allowed_panel_uses_the_cookie_only_at_its_path(token):
    """marimo's panel connects from another port of the host, with the cookie as its only credential."""
    marimo, other = f"http://127.0.0.1:{PORT + 1}", f"http://127.0.0.1:{PORT + 2}"
    guard = make_guard(token, allow_origins=[marimo])
    cookie = cookie_of(guard.redeem_token(token.reveal()))

    def connect(origin, *, site="same-site", for_panel=True, **headers):
        scope = ask_websocket(origin=origin, sec_fetch_site=site, **headers)
        return guard.admit(scope, for_panel=for_panel)

    assert connect(marimo, cookie=cookie) == Grant("owner", "cookie")
    for site in ("same-site", None):  # browsers send no Sec-Fetch-Site with a WebSocket
        assert connect(marimo, cookie=cookie, site=site) == Grant("owner", "cookie")
        assert status_of(connect(marimo, cookie=cookie, site=site, for_panel=False)) == 403
    assert status_of(guard.admit(ask(cookie=cookie, origin=marimo))) == 403
    assert connect(marimo, authorization=bearer(token), for_panel=False) == Grant("owner", "bearer")
    assert status_of(connect(marimo, cookie=cookie, site="cross-site")) == 403
    assert status_of(connect(other, cookie=cookie)) == 403
    assert status_of(connect(None, cookie=cookie)) == 403
    assert status_of(connect(marimo)) == 401


def test_proxy_name_may_be_allowed_as_host_and_origin(token):
    guard = make_guard(token, allow_hosts=["proxy:9000"], allow_origins=["http://proxy:9000"])
    cookie = cookie_of(guard.redeem_token(token.reveal()))
    scope = ask_websocket(host="proxy:9000", origin="http://proxy:9000", cookie=cookie)
    assert guard.admit(scope) == Grant("owner", "cookie")


def test_wrong_token_is_refused_despite_a_cookie(guard, cookie):
    scope = ask("POST", origin=ORIGIN, cookie=cookie, authorization="Bearer wrong")
    assert status_of(guard.admit(scope)) == 401


def test_http_login_is_invalid_under_tls(token, cookie):
    secure = make_guard(token, is_tls=True)
    assert status_of(secure.admit(ask(cookie=cookie))) == 401
    made = cookie_of(secure.redeem_token(token.reveal()))
    assert secure.admit(ask("POST", origin=f"https://{HOST}", cookie=made)) == Grant("owner", "cookie")
    assert status_of(secure.admit(ask("POST", origin=ORIGIN, cookie=made))) == 403


# ── rates, and the text of refusals ─────────────────────────────────────────────────────────────────


def test_wrong_tokens_are_rate_limited_by_address(token):
    guard = make_strict_guard(token, failures=3)
    wrong = ask(authorization="Bearer wrong", peer="192.0.2.7")
    answers = [guard.admit(wrong) for _ in range(5)]
    assert [answer.status for answer in answers] == [401, 401, 401, 429, 429]
    assert answers[-1].headers[1][0] == b"retry-after"
    assert status_of(guard.admit(ask(authorization="Bearer wrong", peer="192.0.2.8"))) == 401


def test_wrong_codes_and_cookies_are_rate_limited(token):
    guard = make_strict_guard(token, failures=4)
    assert [guard.admit(ask(cookie=f"dragoman_{PORT}=wrong")).status for _ in range(2)] == [401, 401]
    assert [guard.refuse_login(ask()).status for _ in range(3)] == [401, 401, 429]


def test_failures_of_a_neighbor_do_not_lock_the_owner_out(token, cookie):
    guard = make_strict_guard(token, failures=1)
    assert [guard.admit(ask(authorization="Bearer wrong")).status for _ in range(2)] == [401, 429]
    assert guard.admit(ask(authorization=bearer(token))) == Grant("owner", "bearer")
    assert guard.admit(ask(cookie=cookie)) == Grant("owner", "cookie")


def test_anonymous_rate_does_not_limit_admitted_clients(token, cookie):
    guard = make_strict_guard(token, anonymous=2)
    assert [status_of(guard.admit_public(ask())) for _ in range(3)] == [None, None, 429]
    assert guard.admit_public(ask(cookie=cookie)) is None
    assert guard.admit(ask(authorization=bearer(token))) == Grant("owner", "bearer")
    assert guard.admit_public(ask(peer="192.0.2.8")) is None


def test_runaway_client_is_rate_limited(token):
    guard = make_strict_guard(token, admitted=2)
    assert [status_of(guard.admit(ask(authorization=bearer(token)))) for _ in range(3)] == [None, None, 429]


def test_missing_credential_is_not_a_failed_login(token):
    guard = make_strict_guard(token, failures=1)
    assert [guard.admit(ask()).status for _ in range(3)] == [401, 401, 401]


def test_a_refusal_quotes_nothing_and_is_not_cached(guard, token, cookie):
    marker = "m4rk3r.example"
    scopes = [
        ask(host=marker),
        ask(origin=f"http://{marker}"),
        ask(authorization=f"Bearer {marker}"),
        ask(query=f"token={marker}".encode()),
        ask(cookie=f"dragoman_{PORT}={marker}"),
        ask_websocket("acp", f"dragoman.token.{marker}"),
    ]
    for scope in scopes:
        refusal = guard.admit(scope)
        assert isinstance(refusal, AccessDenial)
        assert marker not in refusal.reason
        assert token.reveal() not in refusal.reason
        assert (b"cache-control", b"no-store") in refusal.headers


def test_log_of_refusals_quotes_no_request(guard, token, cookie, caplog):
    caplog.set_level("DEBUG")
    secret = token.reveal()
    guard.admit({**ask(host="evil.example", authorization=bearer(token), cookie=cookie), "path": f"/{secret}"})
    guard.admit(ask(query=f"token={secret}".encode()))
    guard.admit(ask_websocket(f"dragoman.token.{secret}"))
    assert caplog.text.count("refused") == 3
    assert secret not in caplog.text
    assert cookie.partition("=")[2] not in caplog.text
