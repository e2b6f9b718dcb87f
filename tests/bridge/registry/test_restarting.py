"""The bridge was ended and began again: a session's journal and what the agent has of it become one history."""

import errno
import itertools
import json
import os
from contextlib import asynccontextmanager

import pytest

from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, GatedDisk, RecordedViewer, agent, go_on_elsewhere, join, serve
from tests.waiting import until

ELSEWHERE = ["answer 0", "answer 1", "answer 2"]


class Before:
    """What a bridge has left behind: a session with two turns, and a cursor into it between them."""

    def __init__(self, home, spec, store):
        self.home, self.spec, self.store = home, spec, store
        self.id = self.cursor = self.path = None

    async def make(self):
        async with serve(self.home, self.spec) as served:
            one = await join(served, extensions=True)
            self.id = await one.new()
            await one.prompt(self.id, {"say": "first"})
            self.cursor = one.told("session/update")[-1]["_meta"]["dragoman"]["cursor"]
            await one.prompt(self.id, {"say": "second"})
            self.path = getattr(served.registry.sessions[self.id].journal, "path", None)  # a database has none
        return self

    def read(self):
        """Read its file; None if it is in a database."""
        return None if self.path is None else self.path.read_bytes()

    def files(self):
        """Give the kinds of files that there are, of all journals; None if they are in a database."""
        return None if self.path is None else [path.suffix for path in self.path.parent.iterdir() if path.is_file()]

    @property
    def at_agent(self):
        return self.store / self.id

    @asynccontextmanager
    async def again(self, **changes):
        async with serve(self.home, self.spec, backoff_min_s=0.01, **changes) as served:
            yield served

    def load(self, viewer):
        """Begin to load it."""
        return viewer.request("session/load", {"sessionId": self.id, "cwd": "/work", "mcpServers": []})


async def before(tmp_path, **behaviour):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), **behaviour)
    return await Before(tmp_path / "home", spec, store).make()


async def test_what_the_agent_has_forgotten_is_in_the_journal(tmp_path):
    old = await before(tmp_path)
    old.at_agent.write_text("")
    async with old.again() as served:
        one = await join(served)
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        await one.prompt(old.id, {"say": "third"})
        assert one.said() == ["first", "second", "third"]
    async with old.again() as served:
        two = await join(served)
        await two.load(old.id)
        assert two.said() == ["first", "second", "third"]
    assert old.files() in ([".jsonl"], None)


async def test_a_cursor_from_before_goes_on_where_it_was(tmp_path):
    old = await before(tmp_path)
    async with old.again() as served:
        one = await join(served, extensions=True)
        await one.load(old.id, after=old.cursor)
        assert one.said() == ["second"]
        assert not any(news.get("reset") for news in one.told("_dragoman/session"))


async def test_the_id_of_an_event_is_a_cursor_too(tmp_path):
    old = await before(tmp_path)
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id, after=f"{old.cursor}.7")
        assert one.said() == ["second"]


async def test_a_session_that_the_agent_has_no_more_can_be_read(tmp_path):
    old = await before(tmp_path)
    old.at_agent.unlink()
    journal = old.read()
    async with old.again() as served:
        one = await join(served)
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        error = (await one.prompt(old.id, {"say": "more"}))["error"]
        assert "can only be read" in error["data"]
        assert "no such session here" in error["data"]
    assert journal is None or old.read().startswith(journal)


async def test_what_was_said_elsewhere_since_is_shown(tmp_path):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served, extensions=True)
        await one.load(old.id, after=old.cursor)
        assert one.said() == ["first", "second", *ELSEWHERE]
        assert any(news.get("reset") for news in one.told("_dragoman/session"))
        await one.prompt(old.id, {"say": "on"})
    async with old.again() as served:
        two = await join(served)
        await two.load(old.id)
        assert two.said() == ["first", "second", *ELSEWHERE, "on"]


async def test_an_agent_that_wants_a_login_first_is_asked_again_after_it(tmp_path):
    login = tmp_path / "login"
    old = await before(tmp_path, login=str(login))
    async with old.again() as served:
        one = await join(served)
        assert (await one.load(old.id))["error"]["code"] == -32000
        await one.ask("authenticate", {"methodId": "any"})
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        assert (await one.prompt(old.id, {"say": "third"}))["result"] == {"stopReason": "end_turn"}


async def test_a_prompt_that_comes_while_the_session_is_loaded_waits_for_it(tmp_path):
    go = tmp_path / "go"
    old = await before(tmp_path, load_waits=str(go))
    async with old.again() as served:
        one, two = await join(served), await join(served)
        loading = old.load(one)
        while old.id not in served.registry.sessions:
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
    journal = old.read()
    async with old.again() as served:
        one = await join(served)
        assert "exited with code 5" in json.dumps((await one.load(old.id))["error"])
        assert old.read() == journal
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]


async def test_a_load_that_was_cancelled_can_be_tried_again(tmp_path):
    old = await before(tmp_path, load_fails=[str(tmp_path / "failed"), -32800])
    async with old.again() as served:
        one = await join(served)
        assert (await one.load(old.id))["error"]["code"] == -32800
        assert "result" in await one.load(old.id)
        assert (await one.prompt(old.id, {"say": "third"}))["result"]
        assert one.said() == ["first", "second", "third"]


@pytest.mark.parametrize("loads", [1, 2])
async def test_an_agent_that_failed_once_is_asked_again_by_the_next_load_or_prompt(tmp_path, loads):
    old = await before(tmp_path, load_fails=[str(tmp_path / "failed"), -32603])
    async with old.again() as served:
        one = await join(served)
        for _ in range(loads):
            one.forget()
            assert "result" in await one.load(old.id)
        assert (await one.prompt(old.id, {"say": "third"}))["result"]
        assert one.said() == ["first", "second", "third"]


async def test_a_session_that_the_agent_refuses_can_be_read_until_the_next_load(tmp_path):
    old = await before(tmp_path, load_fails=[str(tmp_path / "failed"), -32002])
    async with old.again() as served:
        one = await join(served)
        assert "result" in await one.load(old.id)
        assert "not now" in (await one.prompt(old.id, {"say": "never"}))["error"]["data"]
        one.forget()
        assert "result" in await one.load(old.id)
        assert (await one.prompt(old.id, {"say": "third"}))["result"]
        assert one.said() == ["first", "second", "third"]


async def test_a_reader_that_came_first_is_shown_what_was_said_elsewhere_too(tmp_path):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        page, plain = await join(served, read_only=True, extensions=True), await join(served, read_only=True)
        for reader in (page, plain):
            await reader.load(old.id)
            assert reader.said() == ["first", "second"]
            reader.forget()
        one = await join(served)
        await one.load(old.id)
        assert one.said() == ["first", "second", *ELSEWHERE]
        await one.prompt(old.id, {"say": "on"})
        for reader in (page, plain):
            await reader.until(lambda message, reader=reader: "on" in reader.said())
        assert any(news.get("reset") for news in page.told("_dragoman/session"))
        assert page.said() == ["first", "second", *ELSEWHERE, "on"]
        assert plain.said() == ["on"]


async def test_a_login_hides_nothing_of_what_was_said_elsewhere(tmp_path):
    old = await before(tmp_path, login=str(tmp_path / "login"))
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served)
        assert "error" in await one.load(old.id)
        await one.ask("authenticate", {"methodId": "any"})
        await one.load(old.id)
        assert one.said() == ["first", "second", *ELSEWHERE]


async def test_a_session_that_is_deleted_while_it_is_loaded_stays_deleted(tmp_path):
    go = tmp_path / "go"
    old = await before(tmp_path, load_holds=str(go))
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served)
        loading = old.load(one)
        await until(lambda: old.id in served.registry.sessions and served.registry.sessions[old.id].heard >= 8)
        served.registry.delete(old.id)  # as when the agent has answered session/delete before the load
        go.touch()
        assert "was deleted while it was opened" in (await one.answer(loading))["error"]["message"]
        assert not served.registry.knows(old.id)
    assert old.files() in ([], None)


class HeadersOnly(Disk):
    """A disk on which journals can begin and not go on."""

    fault = 0

    def write(self, fd, data):
        if self.fault and b'{"jsonrpc":' in bytes(data):
            raise OSError(self.fault, os.strerror(self.fault))
        return super().write(fd, data)


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
async def test_what_cannot_be_written_takes_the_place_of_nothing(tmp_path, fault):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    journal, disk = old.path.read_bytes(), HeadersOnly()
    async with old.again(disk=disk) as served:
        one = await join(served)
        disk.fault = fault
        await one.load(old.id)
        assert one.said()[:2] == ["first", "second"]
    assert old.path.read_bytes() == journal


async def test_settings_and_title_come_along_when_the_agent_has_more(tmp_path):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id)
        await one.prompt(old.id, {"update": {"sessionUpdate": "session_info_update", "title": "A name"}})
    async with old.again() as served:
        reader = await join(served, read_only=True, extensions=True)
        result = (await reader.load(old.id))["result"]
        assert result["modes"]["currentModeId"] == "ask"
        assert result["_meta"]["dragoman"]["title"] == "A name"


class FewFiles(Disk):
    """A disk on which, for a moment, no more files can be opened."""

    is_out = False

    def open(self, path, flags):
        if self.is_out:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, flags)


async def test_a_journal_that_cannot_be_read_just_now_is_not_given_up(tmp_path):
    old = await before(tmp_path)
    journal, disk = old.path.read_bytes(), FewFiles()
    async with old.again(disk=disk) as served:
        one = await join(served)
        disk.is_out = True
        assert "Too many open files" in (await one.load(old.id))["error"]["data"]
        disk.is_out = False
        assert old.path.read_bytes() == journal
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]


async def test_an_agent_that_is_started_again_while_a_journal_is_read_is_asked_then(tmp_path):
    old, disk = await before(tmp_path), GatedDisk()
    async with old.again(disk=disk) as served:
        one = await join(served)
        disk.shut()
        loading = old.load(one)
        await until(lambda: disk.waited == 1)
        two = RecordedViewer(served)
        greeting = two.request("initialize", {"protocolVersion": 1, "clientCapabilities": {"terminal": True}})
        assert served.supervisor.status.state == "stopped"  # it is started again for the terminals
        disk.open_gate()
        assert "result" in await one.answer(loading)
        assert "result" in await two.answer(greeting)
        assert one.said() == ["first", "second"]


ASIDE = (
    {"sessionUpdate": "current_mode_update", "currentModeId": "code"},
    {"sessionUpdate": "config_option_update", "configOptions": []},
    {"sessionUpdate": "available_commands_update", "availableCommands": []},
    {"sessionUpdate": "session_info_update", "title": "Door"},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2},
)


def updated(served, session_id):
    return served.registry.lists.describe(served.registry.lists.find(session_id))["updatedAt"]


async def test_settings_that_the_agent_tells_do_not_make_an_old_session_a_new_one(tmp_path, monkeypatch):
    clock = itertools.count(1_763_000_000_000, 1_000)
    monkeypatch.setattr("dragoman.bridge.delivery.file_journal.now_ms", lambda: next(clock))
    spec = agent(capabilities=LOADING)
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served, extensions=True)
        old = await one.new()
        await one.prompt(old, {"update": {"sessionUpdate": "session_info_update", "title": "Door"}}, {"say": "first"})
        new = await one.new()  # by its answer the end of the turn is written, too
        before = updated(served, old)
        told = [{"notify": ["session/update", {"sessionId": old, "update": update}]} for update in ASIDE]
        await one.prompt(new, *told, {"say": "second"})
        assert one.updates(old)[-len(ASIDE) :] == list(ASIDE)
        assert updated(served, old) == before < updated(served, new)
    async with serve(tmp_path / "home", spec) as served:
        assert updated(served, old) == before < updated(served, new)
