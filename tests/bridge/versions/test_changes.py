"""An agent that changes its version: journals, cursors and viewers continue."""

import json
import sys
from pathlib import Path

import pytest

from dragoman.bridge import AgentSpec
from tests.bridge.versions.pairs import both_on, join_v2, texts
from tests.bridge.viewers import LOADING, join, serve
from tests.waiting import until

EITHER = Path(__file__).parent.parent / "agents" / "either.py"


@pytest.fixture
def either(tmp_path):
    """Return an agent and the file with the version of its next life."""
    (tmp_path / "store").mkdir()
    version = tmp_path / "version"
    version.write_text("1")
    behaviour = {"store": str(tmp_path / "store"), "capabilities": {**LOADING, "sessionCapabilities": {"resume": {}}}}
    return AgentSpec("one", (sys.executable, str(EITHER), str(version), json.dumps(behaviour))), version


async def restart(served):
    await served.host.stop()
    await until(lambda: served.host.status.state == "stopped")


def agents_words(viewer):
    return "".join(texts(viewer))


@pytest.mark.parametrize(("before", "after"), [("1", "2"), ("2", "1")])
async def test_session_continues_with_an_agent_of_another_version(tmp_path, either, before, after):
    spec, version = either
    version.write_text(before)
    async with serve(tmp_path / "home", spec) as served:
        session, one, two = await both_on(served)
        await one.prompt(session, {"say": "old "})
        await restart(served)
        version.write_text(after)
        refused = await one.prompt(session, {"say": "lost"})
        assert f"speaks version {after}" in refused["error"]["message"]
        assert (await one.prompt(session, {"say": "new "}))["result"]["stopReason"] == "end_turn"
        await two.turn(session, {"say": "newer"})
        for viewer in (one, two):
            await viewer.until(lambda _, viewer=viewer: agents_words(viewer).endswith("newer"))
        assert agents_words(one) == agents_words(two) == "old new newer"
        for viewer in (await join(served), await join_v2(served)):
            await (viewer.load(session) if viewer.viewer.version == 1 else viewer.resume(session))
            assert agents_words(viewer) == "old new newer"


@pytest.mark.parametrize(("before", "after"), [("1", "2"), ("2", "1")])
async def test_journal_of_the_other_version_is_readable(tmp_path, either, before, after):
    spec, version = either
    home = tmp_path / "home"
    version.write_text(before)
    async with serve(home, spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "a"}, {"say": "b"})
    version.write_text(after)
    async with serve(home, spec) as served:
        two = await join_v2(served, extensions=True)
        await two.resume(session)
        assert agents_words(two) == "ab"
        marked = [
            each for each in two.params_of("session/update") if each["update"]["sessionUpdate"] == "agent_message_chunk"
        ]
        chunks = [each for each in marked if each["update"]["content"]["text"] == "a"]
        cursor = chunks[0]["_meta"]["dragoman"]["cursor"]
        await two.turn(session, {"say": "c"})
        again = await join(served, extensions=True)
        await again.load(session, after=cursor)
        assert agents_words(again) == "bc"
    async with serve(home, spec) as served:  # the journal has the version of each record
        last = await join(served)
        await last.load(session)
        assert agents_words(last) == "abc"


async def test_fork_keeps_the_versions_of_its_history(tmp_path, either):
    spec, version = either
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "old "})
        await restart(served)
        version.write_text("2")
        await one.prompt(session, {"say": "lost"})
        await one.prompt(session, {"say": "new "})
        await restart(served)
        version.write_text("1")
        await one.prompt(session, {"say": "lost"})
        await one.prompt(session, {"say": "newer "})
        fork = (await one.ask("session/fork", {"sessionId": session, "cwd": "/work", "mcpServers": []}))["result"]
        await one.prompt(fork["sessionId"], {"say": "forked"})
        two = await join_v2(served)
        await two.resume(fork["sessionId"])
        assert agents_words(two) == "old new newer forked"
