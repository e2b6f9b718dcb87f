"""Servers that need a login, with a client that can show URLs."""

import asyncio

import httpx2
import pytest

from dragoman.agent.servers.server_pool import IdleHost
from dragoman.mcp import callback
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.login import log_in
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_COMPLETE, ELICITATION_CREATE
from tests.assistant.servers.talking import begin, call, connected, said, text
from tests.mcp import consenting
from tests.mcp.consenting import agree
from tests.mcp.servers.authorising import authorising

SHOWS_ADDRESSES = v1.ClientCapabilities(
    elicitation=v1.ElicitationCapabilities(url=v1.ElicitationUrlCapabilities()),
)


@pytest.fixture
def oauth():
    with authorising() as server:
        yield server


class User:
    """Is asked to log in. `visit` is what the user's browser does, and None declines."""

    def __init__(self, client, visit=agree):
        self.asked, self.completed, self.visit = [], asyncio.Queue(), visit
        self._visiting = []
        client.routes.on_request(ELICITATION_CREATE, self.answer)
        client.routes.on_notification(ELICITATION_COMPLETE, self.completed.put_nowait)

    async def answer(self, params):
        self.asked.append(params)
        if self.visit is None:
            return v1.ElicitationDeclineAction()
        self._visiting.append(asyncio.create_task(self.visit(params.url)))
        return v1.ElicitationAcceptAction()

    async def outcome(self):
        """Return how the next login ended, as reported to the client."""
        return (await self.completed.get()).meta["dragoman/oauth"]


def web(oauth, name="web"):
    return v1.McpServerHttp(name=name, url=f"{oauth.address}/mcp", headers=[])


def shows(place, *replies, **options):
    """Connect a client that can show URLs."""
    return connected(place, *replies, capabilities=SHOWS_ADDRESSES, **options)


async def failed_with(talk, words):
    """Wait until the server's reason contains these words."""
    await talk.client.wait_for(lambda _: words in (talk.statuses()["web"].get("reason") or ""))


async def test_tools_appear_in_the_session_after_a_login(place, oauth):
    async with shows(place, call("web__look"), text()) as (client, _):
        user = User(client)
        talk = await begin(client, place[0], web(oauth))
        assert await user.outcome() == {"server": "web", "outcome": "done"}
        await talk.until("ready")
        assert said((await talk.ask()).call) == "seen [hidden]"
    [asked] = user.asked
    assert asked.message == "web asks you to log in"
    assert asked.url.startswith(f"{oauth.address}/authorize?")
    assert asked.session_id == talk.id


async def test_client_without_url_elicitation_gets_the_login_command(place, oauth):
    async with connected(place) as (client, _):
        user = User(client)
        talk = await begin(client, place[0], web(oauth))
        await talk.until("failed")
        assert f"`dragoman mcp login --server-url {oauth.address}/mcp`" in talk.statuses()["web"]["reason"]
    assert user.asked == []
    assert oauth.clients == {}


async def test_sessions_sharing_a_server_log_in_once(place, oauth):
    async with shows(place) as (client, _):
        user = User(client)
        talks = [await begin(client, place[0], web(oauth, name)) for name in ("web", "other", "third")]
        for talk in talks:
            await talk.until("ready")
    assert len(user.asked) == 1
    assert oauth.grants == ["authorization_code"]


async def test_declined_login_is_repeated_only_on_request(place, oauth):
    async with shows(place) as (client, _):
        user = User(client, None)
        talk = await begin(client, place[0], web(oauth))
        await failed_with(talk, "you declined")
        assert "`/mcp restart web` asks again" in talk.statuses()["web"]["reason"]
        other = await begin(client, place[0], web(oauth))
        await other.until("failed")
        assert "you declined" in other.statuses()["web"]["reason"]
        assert (await talk.ask()).stop == "end_turn"
        assert len(user.asked) == 1
        user.visit = agree
        await talk.ask("/mcp restart web")
        await talk.until("ready")
        await other.until("ready")


@pytest.mark.parametrize(("answer", "words"), [(agree, "web is ready"), (None, "web failed again: you declined")])
async def test_mcp_restart_waits_for_a_running_login(place, oauth, answer, words):
    asked, answered = asyncio.Event(), asyncio.Event()

    class SlowUser(User):
        async def answer(self, params):
            asked.set()
            await answered.wait()
            return await super().answer(params)

    async with shows(place) as (client, _):
        SlowUser(client, answer)
        talk = await begin(client, place[0], web(oauth))
        await asked.wait()
        restarting = asyncio.create_task(talk.ask("/mcp restart web"))
        await failed_with(talk, "it is waiting for you to log in")
        answered.set()
        assert words in (await restarting).text


async def test_denied_consent_fails_only_that_server(place, oauth):
    oauth.denies = True
    async with shows(place) as (client, _):
        user = User(client)
        talk = await begin(client, place[0], web(oauth))
        outcome = await user.outcome()
        assert outcome == {"server": "web", "outcome": "failed", "reason": "you declined the login"}
        await failed_with(talk, "you declined")
        assert (await talk.ask()).text == "done"


async def test_unfinished_login_times_out(place, oauth, monkeypatch):
    monkeypatch.setattr(callback, "CONSENT_TIMEOUT_S", 0.3)

    async def go_nowhere(url):
        await agree(f"{url.partition('?')[0]}/elsewhere")

    async with shows(place) as (client, _):
        User(client, go_nowhere)
        talk = await begin(client, place[0], web(oauth))
        await failed_with(talk, "no login")


async def test_closing_a_session_cancels_its_login_question(place, oauth):
    async with shows(place) as (client, _):
        waiting, withdrawn = asyncio.Event(), asyncio.Event()

        async def wait(params, request):
            request.on_cancel = withdrawn.set
            waiting.set()
            await withdrawn.wait()
            return v1.ElicitationCancelAction()

        client.routes.on_incoming_request(ELICITATION_CREATE, wait)
        talk = await begin(client, place[0], web(oauth))
        await waiting.wait()
        await talk.close()
        await withdrawn.wait()


async def test_login_in_a_terminal_cancels_the_open_question(place, oauth):
    async with shows(place) as (client, _):
        waiting, withdrawn = asyncio.Event(), asyncio.Event()

        async def wait(params, request):
            request.on_cancel = withdrawn.set
            waiting.set()
            await withdrawn.wait()
            return v1.ElicitationCancelAction()

        client.routes.on_incoming_request(ELICITATION_CREATE, wait)
        talk = await begin(client, place[0], web(oauth))
        await waiting.wait()
        await log_in(HttpServer("web", f"{oauth.address}/mcp"), consenting.ConsentingUser(), IdleHost("/"))
        await talk.until("ready")
        await withdrawn.wait()


async def test_call_that_needs_more_rights_waits_for_the_user(place, oauth):
    oauth.wanted_scope = "write"
    async with shows(place, call("web__look"), text()) as (client, _):
        user = User(client)
        talk = await begin(client, place[0], web(oauth))
        await talk.until("ready")
        assert said((await talk.ask()).call) == "seen [hidden]"
    assert len(user.asked) == 2
    assert "scope=write" in user.asked[1].url


async def test_client_that_receives_the_redirect_passes_it_on(place, oauth):
    capabilities = v1.ClientCapabilities(elicitation=SHOWS_ADDRESSES.elicitation, meta={"dragoman/oauth": {}})
    back = "http://bridge.example/oauth/callback"

    async def redirect(params):
        return {"redirectUri": back}

    async def bring(url):
        async with httpx2.AsyncClient() as browser:
            location = (await browser.get(url)).headers["location"]
        assert location.startswith(back)
        came = callback.first_values(location.partition("?")[2])
        forged = await client.connection.call_extension("_dragoman/oauth/callback", {**came, "state": "another"})
        accepted = await client.connection.call_extension("_dragoman/oauth/callback", came)
        again = await client.connection.call_extension("_dragoman/oauth/callback", came)
        answers.extend([forged, accepted, again])

    answers = []
    async with connected(place, capabilities=capabilities) as (client, _):
        client.routes.on_extension("_dragoman/oauth/redirect", redirect)
        user = User(client, bring)
        talk = await begin(client, place[0], web(oauth))
        await talk.until("ready")
    assert [answer["taken"] for answer in answers] == [False, True, False]
    assert user.asked[0].meta["dragoman/oauth"]["state"] in user.asked[0].url
