"""After a restart of the bridge, a session's journal and the agent's replay become one history."""

import errno
import itertools
import json
import os
from contextlib import asynccontextmanager

import pytest

from dragoman.store.disk import Disk
from tests.bridge.viewers import LOADING, GatedDisk, RecordedViewer, agent, go_on_elsewhere, join, serve, steps_text
from tests.waiting import until

SAID = {"sessionUpdate": "agent_message_chunk"}
ELSEWHERE = ["answer 0", "answer 1", "answer 2"]


class Before:
    """The files of an earlier bridge: a session with two turns, and a cursor between them."""

    def __init__(self, home, spec, store):
        self.home, self.spec, self.store = home, spec, store
        self.id = self.cursor = self.path = None

    async def make(self):
        async with serve(self.home, self.spec) as served:
            one = await join(served, extensions=True)
            self.id = await one.new()
            await one.prompt(self.id, {"say": "first"})
            self.cursor = one.params_of("session/update")[-1]["_meta"]["dragoman"]["cursor"]
            await one.prompt(self.id, {"say": "second"})
            self.path = getattr(served.sessions.by_id[self.id].history, "path", None)  # a database has none
        return self

    def read(self):
        """Return the bytes of the journal, or None if it is in a database."""
        return None if self.path is None else self.path.read_bytes()

    def files(self):
        """Return the suffixes of all journal files, or None if journals are in a database."""
        if self.path is None:
            return None
        return [path.suffix for path in self.path.parent.iterdir() if path.is_file() and path.name != "search.db"]

    @property
    def at_agent(self):
        return self.store / self.id

    @asynccontextmanager
    async def again(self, **changes):
        async with serve(self.home, self.spec, backoff_min_s=0.01, **changes) as served:
            yield served

    def load(self, viewer):
        """Start to load the session."""
        return viewer.request("session/load", {"sessionId": self.id, "cwd": "/work", "mcpServers": []})


async def before(tmp_path, **behaviour):
    store = tmp_path / "store"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), **behaviour)
    return await Before(tmp_path / "home", spec, store).make()


async def test_journal_has_what_the_agent_has_forgotten(tmp_path):
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


async def test_cursor_from_before_the_restart_continues_at_its_place(tmp_path):
    old = await before(tmp_path)
    async with old.again() as served:
        one = await join(served, extensions=True)
        await one.load(old.id, after=old.cursor)
        assert one.said() == ["second"]
        assert not any(news.get("reset") for news in one.params_of("_dragoman/session"))


async def test_event_id_can_be_used_as_a_cursor(tmp_path):
    old = await before(tmp_path)
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id, after=f"{old.cursor}.7")
        assert one.said() == ["second"]


async def test_session_that_the_agent_no_longer_has_is_readable(tmp_path):
    old = await before(tmp_path)
    old.at_agent.unlink()
    history = old.read()
    async with old.again() as served:
        one = await join(served)
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        error = (await one.prompt(old.id, {"say": "more"}))["error"]
        assert "is read-only" in error["data"]
        assert "no such session here" in error["data"]
    assert history is None or old.read().startswith(history)


async def test_updates_from_elsewhere_are_shown(tmp_path):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served, extensions=True)
        await one.load(old.id, after=old.cursor)
        assert one.said() == ["second", *ELSEWHERE]
        assert not any(news.get("reset") for news in one.params_of("_dragoman/session"))
        await one.prompt(old.id, {"say": "on"})
    for _ in range(2):  # each restart replays the whole session
        async with old.again() as served:
            two = await join(served)
            await two.load(old.id)
            assert two.said() == ["first", "second", *ELSEWHERE, "on"]


INTERRUPTION = "[Request interrupted by user]"
USAGE = {"sessionUpdate": "usage_update", "used": 1, "size": 2}


def users(*texts):
    """Return user messages for a replay."""
    return [{"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}} for text in texts]


def replay_also(old, *updates):
    """Append updates to the agent's replay."""
    with old.at_agent.open("a") as file:
        for update in updates:
            params = {"sessionId": old.id, "update": update}
            file.write(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}) + "\n")


async def loaded(old):
    """Load the session in a new run of the bridge, and return its updates."""
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id)
        return one.updates()


@pytest.mark.parametrize("is_worked_on", [True, False])
async def test_text_added_to_a_cancelled_turn_replaces_no_history(tmp_path, is_worked_on):
    old = await before(tmp_path)
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id)
        said = [{"say": "half"}] if is_worked_on else []
        turn = one.start_prompt(
            old.id, *said, {"notify": ["session/update", {"sessionId": old.id, "update": USAGE}]}, {"cancel": True}
        )
        await one.until(lambda _: USAGE in one.updates())
        one.send({"method": "session/cancel", "params": {"sessionId": old.id}})
        await one.answer(turn)
    whole = await loaded(old)
    assert USAGE in whole
    replay_also(old, *users(INTERRUPTION))
    assert await loaded(old) == whole
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id)
        assert one.updates()[: len(whole)] == whole
        assert one.said()[-3:] == ELSEWHERE


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_repeated_prompt_is_found_in_the_replay(tmp_path, is_elsewhere):
    old = await before(tmp_path)
    async with old.again() as served:
        one = await join(served)
        await one.load(old.id)
        await one.prompt(old.id, {"say": "second"})
        said = one.said()
    if is_elsewhere:
        replay_also(old, *users(steps_text({"say": "second"})), {**SAID, "content": {"type": "text", "text": "third"}})
    updates = await loaded(old)
    texts = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
    assert texts == [*said, *(["third"] if is_elsewhere else [])]


async def test_agent_that_needs_a_login_is_asked_again_after_it(tmp_path):
    login = tmp_path / "login"
    old = await before(tmp_path, login=str(login))
    async with old.again() as served:
        one = await join(served)
        assert (await one.load(old.id))["error"]["code"] == -32000
        await one.ask("authenticate", {"methodId": "any"})
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]
        assert (await one.prompt(old.id, {"say": "third"}))["result"] == {"stopReason": "end_turn"}


async def test_prompt_during_a_load_waits_for_it(tmp_path):
    go = tmp_path / "go"
    old = await before(tmp_path, load_waits=str(go))
    async with old.again() as served:
        one, two = await join(served), await join(served)
        loading = old.load(one)
        while old.id not in served.sessions.by_id:
            await two.ask("_echo")
        prompting = two.start_prompt(old.id, {"say": "third"})
        go.touch()
        assert "result" in await two.answer(prompting)
        assert "result" in await one.answer(loading)
        await one.until(lambda message: "third" in one.said())
        assert one.said() == ["first", "second", "third"]
        assert two.said() == ["third"]


async def test_crash_during_a_load_leaves_the_journal_unchanged(tmp_path):
    old = await before(tmp_path, load_dies=str(tmp_path / "died"))
    history = old.read()
    async with old.again() as served:
        one = await join(served)
        assert "exited with code 5" in json.dumps((await one.load(old.id))["error"])
        assert old.read() == history
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]


async def test_cancelled_load_can_be_retried(tmp_path):
    old = await before(tmp_path, load_fails=[str(tmp_path / "failed"), -32800])
    async with old.again() as served:
        one = await join(served)
        assert (await one.load(old.id))["error"]["code"] == -32800
        assert "result" in await one.load(old.id)
        assert (await one.prompt(old.id, {"say": "third"}))["result"]
        assert one.said() == ["first", "second", "third"]


@pytest.mark.parametrize(("loads", "code"), [(1, -32603), (2, -32603), (1, -32600)])
async def test_next_load_or_prompt_retries_a_failed_agent(tmp_path, loads, code):
    old = await before(tmp_path, load_fails=[str(tmp_path / "failed"), code])
    async with old.again() as served:
        one = await join(served)
        for _ in range(loads):
            one.forget()
            assert "result" in await one.load(old.id)
        assert (await one.prompt(old.id, {"say": "third"}))["result"]
        assert one.said() == ["first", "second", "third"]


async def test_session_that_the_agent_refuses_is_readable_until_the_next_load(tmp_path):
    old = await before(tmp_path, load_fails=[str(tmp_path / "failed"), -32002])
    async with old.again() as served:
        one = await join(served)
        assert "result" in await one.load(old.id)
        assert "not now" in (await one.prompt(old.id, {"say": "never"}))["error"]["data"]
        one.forget()
        assert "result" in await one.load(old.id)
        assert (await one.prompt(old.id, {"say": "third"}))["result"]
        assert one.said() == ["first", "second", "third"]


async def test_earlier_reader_sees_updates_from_elsewhere(tmp_path):
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
        assert page.said() == plain.said() == [*ELSEWHERE, "on"]


async def test_required_login_hides_no_updates_from_elsewhere(tmp_path):
    old = await before(tmp_path, login=str(tmp_path / "login"))
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served)
        assert "error" in await one.load(old.id)
        await one.ask("authenticate", {"methodId": "any"})
        await one.load(old.id)
        assert one.said() == ["first", "second", *ELSEWHERE]


async def test_session_deleted_during_its_load_stays_deleted(tmp_path):
    go = tmp_path / "go"
    old = await before(tmp_path, load_holds=str(go))
    go_on_elsewhere(old.store, old.id)
    async with old.again() as served:
        one = await join(served)
        loading = old.load(one)
        await until(lambda: old.id in served.sessions.by_id and served.sessions.by_id[old.id].received >= 8)
        served.sessions.delete(old.id)  # as when the agent has answered session/delete before the load
        go.touch()
        assert "was deleted while it was opened" in (await one.answer(loading))["error"]["message"]
        assert not served.sessions.knows(old.id)
    assert old.files() in ([], None)


class HeadersOnly(Disk):
    """A disk on which only the headers of journals can be written."""

    fault = 0

    def write(self, fd, data):
        if self.fault and b'{"jsonrpc":' in bytes(data):
            raise OSError(self.fault, os.strerror(self.fault))
        return super().write(fd, data)


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
async def test_failed_write_replaces_no_history(tmp_path, fault):
    old = await before(tmp_path)
    go_on_elsewhere(old.store, old.id)
    history, disk = old.path.read_bytes(), HeadersOnly()
    async with old.again(disk=disk) as served:
        one = await join(served)
        disk.fault = fault
        await one.load(old.id)
        assert one.said()[:2] == ["first", "second"]
    assert old.path.read_bytes() == history


async def test_longer_replay_brings_settings_and_title(tmp_path):
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
    """A disk on which no files can be opened for a moment."""

    is_out = False

    def open(self, path, flags):
        if self.is_out:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, flags)


async def test_temporarily_unreadable_journal_is_kept(tmp_path):
    old = await before(tmp_path)
    history, disk = old.path.read_bytes(), FewFiles()
    async with old.again(disk=disk) as served:
        one = await join(served)
        disk.is_out = True
        assert "Too many open files" in (await one.load(old.id))["error"]["data"]
        disk.is_out = False
        assert old.path.read_bytes() == history
        assert "result" in await one.load(old.id)
        assert one.said() == ["first", "second"]


async def test_agent_restarted_during_a_journal_read_is_asked(tmp_path):
    old, disk = await before(tmp_path), GatedDisk()
    async with old.again(disk=disk) as served:
        one = await join(served)
        disk.shut()
        loading = old.load(one)
        await until(lambda: disk.waited == 1)
        two = RecordedViewer(served)
        greeting = two.request("initialize", {"protocolVersion": 1, "clientCapabilities": {"terminal": True}})
        assert served.host.status.state == "stopped"  # it restarts with the terminal capability
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
    return served.sessions.lists.describe(served.sessions.lists.find(session_id))["updatedAt"]


async def test_settings_from_the_agent_do_not_update_the_session_time(tmp_path, monkeypatch):
    clock = itertools.count(1_763_000_000_000, 1_000)
    monkeypatch.setattr("dragoman.store.history_file.now_ms", lambda: next(clock))
    spec = agent(capabilities=LOADING)
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served, extensions=True)
        old = await one.new()
        await one.prompt(old, {"update": {"sessionUpdate": "session_info_update", "title": "Door"}}, {"say": "first"})
        new = await one.new()  # the end of the turn is written before this answer
        before = updated(served, old)
        notices = [{"notify": ["session/update", {"sessionId": old, "update": update}]} for update in ASIDE]
        await one.prompt(new, *notices, {"say": "second"})
        assert one.updates(old)[-len(ASIDE) :] == list(ASIDE)
        assert updated(served, old) == before < updated(served, new)
    async with serve(tmp_path / "home", spec) as served:
        assert updated(served, old) == before < updated(served, new)
