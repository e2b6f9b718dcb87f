"""Servers at an address that want a person to agree."""

import asyncio
import stat
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import httpx2
import pytest

from dragoman.errors import ServerFailure
from dragoman.mcp.authorisation import TokenFile
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.loopback_authoriser import open_loopback
from dragoman.mcp.server import ServerConnection
from tests.mcp.connecting import Answers
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


def browser(tasks):
    """Return what shows a page: a browser whose person agrees at once, as far as the server lets them."""

    async def visit(url):
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            await client.get(url)

    def show(server, url):
        tasks.append(asyncio.create_task(visit(url)))

    return show


async def log_in(oauth):
    tasks = []
    async with open_loopback(browser(tasks)) as authoriser, connected(oauth, authoriser) as server:
        state, reason = server.state, server.reason
    await asyncio.gather(*tasks)
    return state, reason


async def test_without_a_login_the_server_fails_alone_and_says_what_to_do(oauth):
    async with connected(oauth) as server:
        assert server.state == "failed"
        assert "`dragoman mcp login web`" in server.reason


async def test_after_a_login_every_session_has_the_tokens_in_a_file_of_its_owner(oauth, home):
    assert await log_in(oauth) == ("ready", None)
    [asked] = oauth.asked
    assert asked["resource"] == f"{oauth.address}/mcp"
    assert asked["code_challenge_method"] == "S256"
    [kept] = (home / "mcp-tokens").iterdir()
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


async def test_a_person_who_refuses_fails_the_server_in_words(oauth):
    oauth.denies = True
    state, reason = await log_in(oauth)
    assert state == "failed"
    assert "you did not agree" in reason


async def test_an_answer_with_another_state_is_no_way_back(oauth):
    answers = []

    async def forge(url):
        async with httpx2.AsyncClient() as client:
            forged = urlencode({"code": "mine", "state": "forged"})
            answers.append(await client.get(f"{authoriser.redirect_uri}?{forged}"))
            await client.get(url, follow_redirects=True)

    tasks = []
    async with open_loopback(lambda _, url: tasks.append(asyncio.create_task(forge(url)))) as authoriser:
        async with connected(oauth, authoriser) as server:
            assert server.state == "ready"
        await asyncio.gather(*tasks)
    assert answers[0].status_code == 400
    assert "does not belong" in answers[0].text


async def test_logging_out_forgets_the_tokens(oauth):
    await log_in(oauth)
    assert TokenFile(f"{oauth.address}/mcp").remove()
    async with connected(oauth) as server:
        assert server.state == "failed"
        with pytest.raises(ServerFailure, match="log in"):
            await server.call("look", {})
