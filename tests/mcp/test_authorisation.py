"""Servers at an address that want a person to agree."""

import asyncio
import stat
import subprocess
import sys
from contextlib import asynccontextmanager
from urllib.parse import urlencode, urlsplit

import pytest

from dragoman.errors import ServerFailure
from dragoman.mcp.callback import open_loopback
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.server import ServerConnection
from dragoman.mcp.token_store import TokenStore
from tests.mcp.connecting import Answers
from tests.mcp.consenting import Person, agree
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


async def log_in(oauth, person=None):
    """Connect with a person there; return how that ended, and the person."""
    person = person or Person()
    async with connected(oauth, person) as server:
        return server.state, server.reason


async def test_without_a_login_the_server_fails_alone_and_says_what_to_do(oauth):
    async with connected(oauth) as server:
        assert server.state == "failed"
        assert "`dragoman mcp login web`" in server.reason


async def test_after_a_login_every_session_has_the_tokens_in_a_file_of_its_owner(oauth, home):
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


async def test_a_token_that_the_server_takes_no_more_is_refreshed_without_a_person(oauth):
    await log_in(oauth)
    oauth.token = "another"
    async with connected(oauth) as server:
        assert server.state == "ready"
    assert oauth.grants == ["authorization_code", "refresh_token"]


async def test_a_refresh_that_is_refused_is_not_tried_again_with_each_connection(oauth):
    await log_in(oauth)
    oauth.token, oauth.refuses_refresh = "another", 400
    for _ in range(2):
        async with connected(oauth) as server:
            assert "`dragoman mcp login web`" in server.reason
            assert server.wants_login
    assert oauth.grants == ["authorization_code", "refresh_token"]


async def test_a_server_for_authorisations_that_is_down_costs_no_login(oauth):
    await log_in(oauth)
    oauth.token, oauth.refuses_refresh = "another", 503
    async with connected(oauth) as server:
        assert "answered 503" in server.reason
        assert not server.wants_login
    oauth.refuses_refresh = None
    async with connected(oauth) as server:
        assert server.state == "ready"


async def test_processes_that_refresh_at_once_use_the_refresh_token_once(oauth, home):
    await log_in(oauth)
    oauth.token = "another"
    command = [sys.executable, "-m", "dragoman", "mcp", "call", "--url", f"{oauth.address}/mcp", "look"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    processes = [await asyncio.create_subprocess_exec(*command, **pipes) for _ in range(3)]
    ends = await asyncio.gather(*(process.communicate() for process in processes))
    assert [process.returncode for process in processes] == [0, 0, 0], ends
    assert oauth.grants == ["authorization_code", "refresh_token"]


async def test_a_call_that_wants_more_rights_asks_once_for_calls_at_the_same_time(oauth):
    person = Person()
    oauth.wanted_scope = "write"
    async with connected(oauth, person) as server:
        results = await asyncio.gather(*(server.call("look", {}) for _ in range(3)))
        assert all(result.content for result in results)
    assert [asked.get("scope") for asked in oauth.asked] == [None, "write"]


async def test_a_client_that_was_registered_for_another_way_back_is_registered_anew(oauth):
    for _ in range(2):
        person = Person()
        assert await log_in(oauth, person) == ("ready", None)
        oauth.token, oauth.refuses_refresh = None, 400
    assert len(oauth.clients) == 2


async def test_each_issuer_of_a_server_has_its_own_file(home):
    store = TokenStore("https://example.org/mcp")
    await store.save("https://one.example", {"tokens": {"access_token": "first"}})
    await store.save("https://two.example", {"tokens": {"access_token": "second"}})
    assert (await store.load())["tokens"] == {"access_token": "second"}
    assert len(list((home / "mcp-tokens").glob("*.json"))) == 2
    assert await store.remove()
    assert not store.exists()


async def test_tokens_that_others_can_read_are_not_used(oauth, home):
    await log_in(oauth)
    [kept] = (home / "mcp-tokens").glob("*.json")
    kept.chmod(0o644)
    async with connected(oauth) as server:
        assert f"run `chmod 600 {kept}`" in server.reason


async def test_a_token_that_the_server_repeats_is_hidden(oauth):
    async with connected(oauth, Person()) as server:
        [block] = (await server.call("look", {})).content
    assert block.text == "seen [hidden]"


async def test_a_person_who_refuses_fails_the_server_in_words(oauth):
    oauth.denies = True
    state, reason = await log_in(oauth)
    assert state == "failed"
    assert "you did not agree" in reason
    assert len(oauth.asked) == 1


async def test_an_answer_with_another_state_is_no_way_back(oauth):
    answers = []

    async def forge(url):
        forged = urlencode({"code": "mine", "state": "forged"})
        answers.append(await agree(f"{person.redirect_uri}?{forged}"))
        await agree(url)

    person = Person(forge)
    assert await log_in(oauth, person) == ("ready", None)
    assert answers[0].status_code == 400
    assert "does not belong" in answers[0].text


async def test_logging_out_forgets_the_tokens(oauth):
    await log_in(oauth)
    assert await TokenStore(f"{oauth.address}/mcp").remove()
    async with connected(oauth) as server:
        assert server.state == "failed"
        with pytest.raises(ServerFailure, match="log in"):
            await server.call("look", {})


async def test_a_request_that_is_no_way_back_is_answered_and_changes_nothing():
    async with open_loopback() as callback:
        came = callback.expect("s")
        for target in ("http://[", "/", "/callback?state=other&code=c"):
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(callback.redirect_uri).port)
            writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 40")
            writer.close()
        assert not came.done()
