"""Servers that want a login, in a session whose client can show an address."""

import asyncio

import httpx2
import pytest

from dragoman.agent.server_pool import IdleHost
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


class Person:
    """Is asked to log in; `visit` is what their browser does, and None declines."""

    def __init__(self, client, visit=agree):
        self.asked, self.completed, self.visit = [], asyncio.Queue(), visit
        self._visiting = []
        client.routes.on_request(ELICITATION_CREATE, self._answer)
        client.routes.on_notification(ELICITATION_COMPLETE, self.completed.put_nowait)

    async def _answer(self, params, request):
        self.asked.append(params)
        if self.visit is None:
            return v1.ElicitationDeclineAction()
        self._visiting.append(asyncio.create_task(self.visit(params.url)))
        return v1.ElicitationAcceptAction()

    async def outcome(self):
        """Return how the next login ended, as the client is told."""
        return (await self.completed.get()).meta["dragoman/oauth"]


def web(oauth, name="web"):
    return v1.McpServerHttp(name=name, url=f"{oauth.address}/mcp", headers=[])


def shows(place, *replies, **options):
    """Connect a client that can show addresses."""
    return connected(place, *replies, capabilities=SHOWS_ADDRESSES, **options)


async def failed_with(talk, words):
    """Wait until the reason of the server has these words."""
    await talk.client.wait_for(lambda _: words in (talk.statuses()["web"].get("reason") or ""))


async def test_after_a_login_the_tools_come_into_the_session(place, oauth):
    async with shows(place, call("web__look"), text()) as (client, _):
        person = Person(client)
        talk = await begin(client, place[0], web(oauth))
        assert await person.outcome() == {"server": "web", "outcome": "done"}
        await talk.until("ready")
        assert said((await talk.ask()).call) == "seen [hidden]"
    [asked] = person.asked
    assert asked.message == "web wants you to log in"
    assert asked.url.startswith(f"{oauth.address}/authorize?")
    assert asked.session_id == talk.id


async def test_a_client_that_shows_no_addresses_is_told_the_command(place, oauth):
    async with connected(place) as (client, _):
        person = Person(client)
        talk = await begin(client, place[0], web(oauth))
        await talk.until("failed")
        assert "`dragoman mcp login web`" in talk.statuses()["web"]["reason"]
    assert person.asked == []
    assert oauth.clients == {}


async def test_sessions_that_need_the_same_server_log_in_once(place, oauth):
    async with shows(place) as (client, _):
        person = Person(client)
        talks = [await begin(client, place[0], web(oauth, name)) for name in ("web", "other", "third")]
        for talk in talks:
            await talk.until("ready")
    assert len(person.asked) == 1
    assert oauth.grants == ["authorization_code"]


async def test_a_person_who_declines_is_asked_again_only_when_they_want_it(place, oauth):
    async with shows(place) as (client, _):
        person = Person(client, None)
        talk = await begin(client, place[0], web(oauth))
        await failed_with(talk, "you declined")
        assert "`/mcp restart web` asks again" in talk.statuses()["web"]["reason"]
        other = await begin(client, place[0], web(oauth))
        await other.until("failed")
        assert "you declined" in other.statuses()["web"]["reason"]
        assert (await talk.ask()).stop == "end_turn"
        assert len(person.asked) == 1
        person.visit = agree
        await talk.ask("/mcp restart web")
        await talk.until("ready")
        await other.until("ready")


async def test_consent_that_is_denied_fails_that_server_alone(place, oauth):
    oauth.denies = True
    async with shows(place) as (client, _):
        person = Person(client)
        talk = await begin(client, place[0], web(oauth))
        outcome = await person.outcome()
        assert outcome == {"server": "web", "outcome": "failed", "reason": "you did not agree to the use of it"}
        await failed_with(talk, "you did not agree")
        assert (await talk.ask()).text == "done"


async def test_a_login_that_nobody_finishes_ends_by_itself(place, oauth, monkeypatch):
    monkeypatch.setattr(callback, "CONSENT_TIMEOUT_S", 0.3)

    async def go_nowhere(url):
        await agree(f"{url.partition('?')[0]}/elsewhere")

    async with shows(place) as (client, _):
        Person(client, go_nowhere)
        talk = await begin(client, place[0], web(oauth))
        await failed_with(talk, "nobody logged in")


async def test_a_session_that_is_closed_takes_its_question_back(place, oauth):
    async with shows(place) as (client, _):
        waiting, taken_back = asyncio.Event(), asyncio.Event()

        async def wait(params, request):
            request.on_cancel = taken_back.set
            waiting.set()
            await taken_back.wait()
            return v1.ElicitationCancelAction()

        client.routes.on_request(ELICITATION_CREATE, wait)
        talk = await begin(client, place[0], web(oauth))
        await waiting.wait()
        await talk.close()
        await taken_back.wait()


async def test_a_login_in_a_terminal_meanwhile_takes_the_question_back(place, oauth):
    async with shows(place) as (client, _):
        waiting, taken_back = asyncio.Event(), asyncio.Event()

        async def wait(params, request):
            request.on_cancel = taken_back.set
            waiting.set()
            await taken_back.wait()
            return v1.ElicitationCancelAction()

        client.routes.on_request(ELICITATION_CREATE, wait)
        talk = await begin(client, place[0], web(oauth))
        await waiting.wait()
        await log_in(HttpServer("web", f"{oauth.address}/mcp"), consenting.Person(), IdleHost("/"))
        await talk.until("ready")
        await taken_back.wait()


async def test_a_call_that_wants_more_rights_waits_for_the_person(place, oauth):
    oauth.wanted_scope = "write"
    async with shows(place, call("web__look"), text()) as (client, _):
        person = Person(client)
        talk = await begin(client, place[0], web(oauth))
        await talk.until("ready")
        assert said((await talk.ask()).call) == "seen [hidden]"
    assert len(person.asked) == 2
    assert "scope=write" in person.asked[1].url


async def test_a_client_that_takes_browsers_brings_what_they_came_with(place, oauth):
    capabilities = v1.ClientCapabilities(elicitation=SHOWS_ADDRESSES.elicitation, meta={"dragoman/oauth": {}})
    back = "http://bridge.example/oauth/callback"

    async def redirect(params, request):
        return {"redirectUri": back}

    async def bring(url):
        async with httpx2.AsyncClient() as browser:
            location = (await browser.get(url)).headers["location"]
        assert location.startswith(back)
        came = callback.first_values(location.partition("?")[2])
        forged = await client.connection.call_extension("_dragoman/oauth/callback", {**came, "state": "another"})
        taken = await client.connection.call_extension("_dragoman/oauth/callback", came)
        again = await client.connection.call_extension("_dragoman/oauth/callback", came)
        answers.extend([forged, taken, again])

    answers = []
    async with connected(place, capabilities=capabilities) as (client, _):
        client.routes.on_extension("_dragoman/oauth/redirect", redirect)
        person = Person(client, bring)
        talk = await begin(client, place[0], web(oauth))
        await talk.until("ready")
    assert [answer["taken"] for answer in answers] == [False, True, False]
    assert person.asked[0].meta["dragoman/oauth"]["state"] in person.asked[0].url
