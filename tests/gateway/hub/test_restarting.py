"""The gateway was ended and began again: a session's journal and what the agent has of it become one history."""

import json
from contextlib import asynccontextmanager

from tests.gateway.hub.seeing import LOADING, agent, go_on_elsewhere, hub_of, seer

ELSEWHERE = ["answer 0", "answer 1", "answer 2"]


class Before:
    """What a gateway has left behind: a session with two turns, and a cursor into it between them."""

    def __init__(self, home, spec, store):
        self.home, self.spec, self.store = home, spec, store
        self.id = self.cursor = self.path = None

    async def make(self):
        async with hub_of(self.home, self.spec) as hub:
            one = await seer(hub, marked=True)
            self.id = await one.new()
            await one.prompt(self.id, {"say": "first"})
            self.cursor = one.told("session/update")[-1]["_meta"]["dragoman"]["cursor"]
            await one.prompt(self.id, {"say": "second"})
            self.path = hub.sessions[self.id].journal.path
        return self

    @property
    def at_agent(self):
        return self.store / self.id

    @asynccontextmanager
    async def again(self):
        async with hub_of(self.home, self.spec, backoff_min_s=0.01) as hub:
            yield hub


async def before(tmp_path, **behaviour):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), **behaviour)
    return await Before(tmp_path / "home", spec, store).make()


async def test_what_the_agent_has_forgotten_is_in_the_journal(tmp_path):
    old = await before(tmp_path)
    old.at_agent.write_text("")
    async with old.again() as hub:
        one = await seer(hub)
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        await one.prompt(old.id, {"say": "third"})
        assert one.said() == ["first", "second", "third"]
    async with old.again() as hub:
        two = await seer(hub)
        await two.load(old.id)
        assert two.said() == ["first", "second", "third"]
    assert [path.suffix for path in old.path.parent.iterdir() if path.is_file()] == [".jsonl"]


async def test_a_cursor_from_before_goes_on_where_it_was(tmp_path):
    old = await before(tmp_path)
    async with old.again() as hub:
        one = await seer(hub, marked=True)
        await one.load(old.id, after=old.cursor)
        assert one.said() == ["second"]
        assert not any(news.get("reset") for news in one.told("_dragoman/session"))


async def test_the_id_of_an_event_is_a_cursor_too(tmp_path):
    old = await before(tmp_path)
    async with old.again() as hub:
        one = await seer(hub)
        await one.load(old.id, after=f"{old.cursor}.7")
        assert one.said() == ["second"]


async def test_a_session_that_the_agent_has_no_more_can_be_read(tmp_path):
    old = await before(tmp_path)
    old.at_agent.unlink()
    journal = old.path.read_bytes()
    async with old.again() as hub:
        one = await seer(hub)
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        error = (await one.prompt(old.id, {"say": "more"}))["error"]
        assert "can only be read" in error["data"]
        assert "no such session here" in error["data"]
    assert old.path.read_bytes().startswith(journal)


async def test_what_was_said_elsewhere_since_is_shown(tmp_path):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    async with old.again() as hub:
        one = await seer(hub, marked=True)
        await one.load(old.id, after=old.cursor)
        assert one.said() == ["first", "second", *ELSEWHERE]
        assert any(news.get("reset") for news in one.told("_dragoman/session"))
        await one.prompt(old.id, {"say": "on"})
    async with old.again() as hub:
        two = await seer(hub)
        await two.load(old.id)
        assert two.said() == ["first", "second", *ELSEWHERE, "on"]


async def test_an_agent_that_wants_a_login_first_is_asked_again_after_it(tmp_path):
    login = tmp_path / "login"
    old = await before(tmp_path, login=str(login))
    async with old.again() as hub:
        one = await seer(hub)
        assert (await one.load(old.id))["error"]["code"] == -32000
        await one.ask("authenticate", {"methodId": "any"})
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        assert (await one.prompt(old.id, {"say": "third"}))["result"] == {"stopReason": "end_turn"}


async def test_a_prompt_that_comes_while_the_session_is_loaded_waits_for_it(tmp_path):
    go = tmp_path / "go"
    old = await before(tmp_path, load_waits=str(go))
    async with old.again() as hub:
        one, two = await seer(hub), await seer(hub)
        loading = one.request("session/load", {"sessionId": old.id, "cwd": "/work", "mcpServers": []})
        while old.id not in hub.sessions:
            await two.ask("_echo")
        prompting = two.start_prompt(old.id, {"say": "third"})
        go.touch()
        assert "result" in await two.answer(prompting)
        assert "result" in await one.answer(loading)
        await one.until(lambda message: "third" in one.said())
        assert one.said() == ["first", "second", "third"]
        assert two.said() == ["third"]


async def test_a_crash_in_the_middle_of_a_load_leaves_the_journal_alone(tmp_path):
    old = await before(tmp_path, load_dies=str(tmp_path / "died"))
    journal = old.path.read_bytes()
    async with old.again() as hub:
        one = await seer(hub)
        assert "exited with code 5" in json.dumps((await one.load(old.id))["error"])
        assert old.path.read_bytes() == journal
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
