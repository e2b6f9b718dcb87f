"""Servers at a URL that require the user's consent."""

import asyncio
import stat
import subprocess
import sys
from contextlib import asynccontextmanager
from urllib.parse import urlencode, urlsplit

import pytest

from dragoman.errors import McpServerError
from dragoman.mcp.callback import open_loopback
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.http_errors import check_reach
from dragoman.mcp.server import ServerConnection
from dragoman.mcp.token_store import TokenStore
from tests.mcp.connecting import Answers
from tests.mcp.consenting import ConsentingUser, agree
from tests.mcp.servers.authorising import authorising


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def oauth():
    with authorising() as server:
        yield server


@asynccontextmanager
async def connected(oauth, authoriser=None):
    definition = HttpServer("web", f"{oauth.address}/mcp")
    environment = ServerEnvironment("/", None, authoriser=authoriser)
    server = ServerConnection(definition, environment, Answers(), lambda _: None)
    server.start()
    try:
        async with asyncio.timeout(30):
            await server.settled()
            yield server
    finally:
        await server.stop()


async def log_in(oauth, user=None):
    """Connect with a user present. Return the outcome and the user."""
    user = user or ConsentingUser()
    async with connected(oauth, user) as server:
        return server.state, server.reason


async def test_server_without_login_fails_and_names_the_fix(oauth):
    async with connected(oauth) as server:
        assert server.state == "failed"
        assert f"`dragoman mcp login --server-url {oauth.address}/mcp`" in server.reason


async def test_login_stores_tokens_in_a_private_file_for_all_sessions(oauth, home):
    assert await log_in(oauth) == ("ready", None)
    [asked] = oauth.asked
    assert asked["resource"] == f"{oauth.address}/mcp"
    assert asked["code_challenge_method"] == "S256"
    [kept] = (home / "mcp-tokens").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    async with connected(oauth) as server:
        assert server.state == "ready"
        assert (await server.call("look", {})).content
    assert oauth.grants == ["authorization_code"]


async def test_rejected_token_is_refreshed_without_asking_the_user(oauth):
    await log_in(oauth)
    oauth.token = "another"
    async with connected(oauth) as server:
        assert server.state == "ready"
    assert oauth.grants == ["authorization_code", "refresh_token"]


async def test_refused_refresh_is_not_retried_on_each_connection(oauth):
    await log_in(oauth)
    oauth.token, oauth.refuses_refresh = "another", 400
    for _ in range(2):
        async with connected(oauth) as server:
            assert f"`dragoman mcp login --server-url {oauth.address}/mcp`" in server.reason
            assert server.wants_login
    assert oauth.grants == ["authorization_code", "refresh_token"]


async def test_unavailable_authorisation_server_keeps_the_login(oauth):
    await log_in(oauth)
    oauth.token, oauth.refuses_refresh = "another", 503
    async with connected(oauth) as server:
        assert "answered 503" in server.reason
        assert not server.wants_login
    oauth.refuses_refresh = None
    async with connected(oauth) as server:
        assert server.state == "ready"


@pytest.mark.extended
async def test_concurrent_processes_use_a_refresh_token_once(oauth, home):
    await log_in(oauth)
    oauth.token = "another"
    command = [sys.executable, "-m", "dragoman", "mcp", "call", "--server-url", f"{oauth.address}/mcp", "look"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    processes = [await asyncio.create_subprocess_exec(*command, **pipes) for _ in range(3)]
    ends = await asyncio.gather(*(process.communicate() for process in processes))
    assert [process.returncode for process in processes] == [0, 0, 0], ends
    assert oauth.grants == ["authorization_code", "refresh_token"]


async def test_concurrent_calls_that_need_more_rights_ask_once(oauth):
    user = ConsentingUser()
    oauth.wanted_scope = "write"
    async with connected(oauth, user) as server:
        results = await asyncio.gather(*(server.call("look", {}) for _ in range(3)))
        assert all(result.content for result in results)
    assert [asked.get("scope") for asked in oauth.asked] == [None, "write"]


async def test_client_is_registered_again_for_another_redirect_address(oauth):
    for _ in range(2):
        user = ConsentingUser()
        assert await log_in(oauth, user) == ("ready", None)
        oauth.token, oauth.refuses_refresh = None, 400
    assert len(oauth.clients) == 2


UNSAFE_LOGINS = {
    "another host": (
        {"challenge": 'Bearer resource_metadata="https://other.example/meta"'},
        "at other.example; expected",
    ),
    "link-local": ({"resource": {"authorization_servers": ["https://169.254.169.254"]}}, "an address of this machine"),
    "not encrypted": ({"resource": {"authorization_servers": ["http://10.0.0.1"]}}, "which is not encrypted"),
    "long resource": ({"resource": {"x": "y" * 300_000}}, "longer than the limit of 262144 bytes"),
    "long issuer": ({"issuer": {"x": "y" * 300_000}}, "longer than the limit of 262144 bytes"),
    "far endpoint": ({"issuer": {"authorization_endpoint": "http://10.0.0.1/x"}}, "which is not encrypted"),
    "far token": ({"issuer": {"token_endpoint": "http://[fe80::1]/token"}}, "which is not encrypted"),
    "far registration": ({"issuer": {"registration_endpoint": "https://169.254.1.1/"}}, "an address of this machine"),
    "plain PKCE": ({"issuer": {"code_challenge_methods_supported": ["plain"]}}, "offers PKCE only with plain"),
    "no PKCE": ({"issuer": {"code_challenge_methods_supported": None}}, "offers no PKCE, expected S256"),
}


async def test_unsafe_logins_are_refused_with_a_reason():
    wrong = {}
    for name, (changes, words) in UNSAFE_LOGINS.items():
        with authorising() as oauth:
            for field, value in changes.items():
                setattr(oauth, field, value)
            state, reason = await log_in(oauth)
            if state != "failed" or words not in reason or oauth.token or len(oauth.clients) > (name.startswith("far")):
                wrong[name] = f"{state}: {reason}"
    assert wrong == {}


async def test_login_address_is_not_closer_than_the_servers_own():
    own = {"public": "https://93.184.216.34/mcp", "private": "http://10.1.1.1/mcp", "loopback": "http://127.0.0.1/mcp"}
    targets = {
        "https://93.184.216.35/": "public private loopback",
        "https://93.184.216.34:444/": "public private loopback",
        "http://93.184.216.34/": "",
        "https://10.0.0.1/": "private loopback",
        "http://10.1.1.1:9/": "private",
        "https://127.0.0.1:9/": "loopback",
        "http://localhost:9/": "loopback",
        "https://[::ffff:127.0.0.1]/": "loopback",
        "https://0.0.0.0/": "loopback",
        "https://169.254.169.254/": "",
        "https://[fe80::1]/": "",
        "file:///etc/passwd": "",
    }
    wrong = {}
    for target, allowed in targets.items():
        for near, server in own.items():
            try:
                await check_reach(target, server)
            except McpServerError as failure:
                if near in allowed.split():
                    wrong[near, target] = str(failure)
            else:
                if near not in allowed.split():
                    wrong[near, target] = "allowed"
    assert wrong == {}


async def test_each_issuer_has_its_own_token_file(home):
    store = TokenStore("https://example.org/mcp")
    await store.save("https://one.example", {"tokens": {"access_token": "first"}})
    await store.save("https://two.example", {"tokens": {"access_token": "second"}})
    assert (await store.load())["tokens"] == {"access_token": "second"}
    assert len(list((home / "mcp-tokens").glob("*.json"))) == 2
    assert await store.remove()
    assert not store.exists()


async def test_tokens_readable_by_others_are_not_used(oauth, home):
    await log_in(oauth)
    [kept] = (home / "mcp-tokens").glob("*.json")
    kept.chmod(0o644)
    async with connected(oauth) as server:
        assert f"run `chmod 600 {kept}`" in server.reason


async def test_token_repeated_by_the_server_is_redacted(oauth):
    async with connected(oauth, ConsentingUser()) as server:
        [block] = (await server.call("look", {})).content
    assert block.text == "seen [hidden]"


async def test_refused_login_fails_the_server_with_a_reason(oauth):
    oauth.denies = True
    state, reason = await log_in(oauth)
    assert state == "failed"
    assert "you declined" in reason
    assert len(oauth.asked) == 1


async def test_redirect_with_another_state_is_refused(oauth):
    answers = []

    async def forge(url):
        forged = urlencode({"code": "mine", "state": "forged"})
        answers.append(await agree(f"{user.redirect_uri}?{forged}"))
        await agree(url)

    user = ConsentingUser(forge)
    assert await log_in(oauth, user) == ("ready", None)
    assert answers[0].status_code == 400
    assert "does not belong" in answers[0].text


async def test_logout_deletes_the_tokens(oauth):
    await log_in(oauth)
    assert await TokenStore(f"{oauth.address}/mcp").remove()
    async with connected(oauth) as server:
        assert server.state == "failed"
        with pytest.raises(McpServerError, match="requires a login"):
            await server.call("look", {})


async def test_other_requests_to_the_redirect_port_change_nothing():
    async with open_loopback() as callback:
        came = callback.expect("s")
        for target in ("http://[", "/", "/callback?state=other&code=c"):
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(callback.redirect_uri).port)
            writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 40")
            writer.close()
        assert not came.done()
