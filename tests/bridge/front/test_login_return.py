"""Browsers that return to the bridge from a login at an MCP server."""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from dragoman.bridge import AgentSpec
from dragoman.bridge.router import PendingLogins
from tests.bridge.clock import Clock
from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import call, dial, open_session, order, until_answer

STATE = "s" * 43
LOGIN_AGENT = AgentSpec("one", (sys.executable, str(Path(__file__).with_name("login_agent.py"))))


@asynccontextmanager
async def asked_to_log_in(tmp_path, state=STATE, *, prefix="", **dialling):
    """Yield a browser for a bridge whose agent waits for a login, and a function that returns the agent's texts."""
    path = f"{prefix}/acp"
    async with (
        serving(tmp_path, agents=(LOGIN_AGENT,), prefix=prefix) as served,
        dial(served, path, **dialling) as socket,
    ):
        session = await open_session(socket)
        await socket.send(order(session, state=state))
        taken = await until_answer(socket, 2)

        async def said(count):
            while len(texts := texts_of(taken)) < count:
                taken.append(json.loads(await socket.recv()))
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}}))
            taken.extend(await until_answer(socket, 9))
            assert texts_of(taken) == texts, "the agent was told more"
            return texts

        async with httpx2.AsyncClient(base_url=served.url + prefix) as browser:
            yield browser, said


def texts_of(messages):
    """Return the agent's texts."""
    updates = [one["params"]["update"] for one in messages if one.get("method") == "session/update"]
    chunks = [update for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    return [json.loads(chunk["content"]["text"]) for chunk in chunks]


async def come_back(browser, **query):
    return await browser.get("/oauth/callback", params={"state": STATE, **query})


async def test_agent_receives_the_callback_url_and_the_login_result(tmp_path):
    async with asked_to_log_in(tmp_path) as (browser, said):
        answer = await come_back(browser, code="a-code", iss="https://issuer.example", other="x")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        assert "You are logged in to &lt;i&gt;tickets&lt;/i&gt;" in answer.text
        assert "a-code" not in answer.text
        redirect, brought = await said(2)
    assert redirect == {"redirectUri": str(browser.base_url.join("/oauth/callback"))}
    expected = {"sessionId": "session-1", "state": STATE, "code": "a-code", "iss": "https://issuer.example"}
    assert brought == expected


async def test_callback_url_includes_the_prefix(tmp_path):
    async with asked_to_log_in(tmp_path, prefix="/agents") as (browser, said):
        [redirect] = await said(1)
        assert redirect["redirectUri"].endswith("/agents/oauth/callback")
        assert (await come_back(browser, code="a-code")).status_code == 200


async def test_login_state_works_once(tmp_path):
    async with asked_to_log_in(tmp_path) as (browser, said):
        assert (await browser.head("/oauth/callback", params={"state": STATE})).status_code == 204
        prefetch = await browser.get("/oauth/callback", params={"state": STATE}, headers={"sec-purpose": "prefetch"})
        assert prefetch.status_code == 204
        assert (await come_back(browser, error="access_denied")).status_code == 200
        again = await come_back(browser, code="a-code")
        assert again.status_code == 400
        assert "No login is waiting for this page" in again.text
        await said(2)


async def test_finished_login_is_reported_to_the_browser(tmp_path):
    async with asked_to_log_in(tmp_path) as (browser, _):
        answer = await come_back(browser, code="late")
        assert answer.status_code == 410
        assert "has ended" in answer.text


async def test_guessable_states_are_refused(tmp_path):
    async with asked_to_log_in(tmp_path, "short") as (browser, said):
        assert (await come_back(browser, state="short", code="a-code")).status_code == 400
        await said(1)


async def test_many_wrong_states_are_rate_limited(tmp_path):
    async with asked_to_log_in(tmp_path) as (browser, _):
        answers = [await come_back(browser, state="x" * 43) for _ in range(40)]
        assert {answer.status_code for answer in answers} == {400, 429}


async def test_wrong_host_and_method_are_refused(tmp_path):
    async with asked_to_log_in(tmp_path) as (browser, said):
        elsewhere = await browser.get("/oauth/callback", params={"state": STATE}, headers={"host": "evil.example"})
        assert elsewhere.status_code == 403
        assert (await browser.post("/oauth/callback", params={"state": STATE})).status_code == 405
        await said(1)


@pytest.mark.parametrize(("later_s", "is_good"), [(599, True), (601, False)])
def test_login_state_expires_after_ten_minutes(later_s, is_good):
    clock = Clock()
    logins = PendingLogins(None, clock)
    meta = {"dragoman/oauth": {"state": STATE, "server": "tickets"}}
    logins.note(json.dumps({"_meta": meta}).encode(), SESSION)
    clock.now += later_s
    assert (logins.redeem(STATE) is not None) is is_good


class _Session:
    id = "session-1"


SESSION = _Session()


async def test_bridge_advertises_its_login_callback(tmp_path):
    async with serving(tmp_path, agents=(LOGIN_AGENT,)) as served, dial(served) as socket:
        params = {"protocolVersion": 1, "clientCapabilities": {"_meta": {"dragoman/oauth": {"redirect": "mine"}}}}
        answer = await call(socket, id=0, method="initialize", params=params)
    told = answer["result"]["agentCapabilities"]["_meta"]["told"]["dragoman/oauth"]
    assert told == {}
