"""Sessions that were created and not yet prompted survive ends of the agent and of the bridge."""

import pytest

from dragoman.store.block_log import BlockReader, read_head, reseal
from dragoman.store.disk import Disk
from tests.bridge.own_agent import kill_agent, own_agent, plain_prompt
from tests.bridge.viewers import LOADING, RESUMING, agent, join, serve
from tests.waiting import until


@pytest.fixture
def cwd(tmp_path):
    (tmp_path / "work").mkdir()
    return str(tmp_path / "work")


async def make_session(viewer, cwd):
    """Create a session in mode plan, without a prompt."""
    session = await viewer.new(cwd)
    assert "result" in await viewer.ask("session/set_mode", {"sessionId": session, "modeId": "plan"})
    return session


async def check_goes_on(viewer, session, cwd):
    """Check that the session can be opened, has the mode that was set, and answers."""
    opened = await viewer.load(session, cwd=cwd)
    assert opened["result"]["modes"]["currentModeId"] == "plan"
    assert (await plain_prompt(viewer, session, "begin"))["result"]["stopReason"] == "end_turn"
    assert "".join(viewer.said(session)) == "One. "


async def test_unprompted_session_survives_an_agent_crash(tmp_path, cwd):
    async with serve(tmp_path / "home", own_agent(tmp_path), backoff_min_s=0.01) as served:
        one = await join(served, extensions=True)
        session = await make_session(one, cwd)
        await kill_agent(served, one)
        assert (await plain_prompt(one, session, "begin"))["result"]["stopReason"] == "end_turn"
        assert "".join(one.said(session)) == "One. "
        two = await join(served)
        assert (await two.load(session, cwd=cwd))["result"]["modes"]["currentModeId"] == "plan"


async def test_unprompted_session_survives_an_idle_stop(tmp_path, cwd):
    async with serve(tmp_path / "home", own_agent(tmp_path), idle_stop_s=0.05) as served:
        one = await join(served)
        session = await make_session(one, cwd)
        await one.viewer.close()
        await until(lambda: served.host.status.state == "stopped")
        await check_goes_on(await join(served), session, cwd)


async def test_unprompted_session_survives_a_bridge_restart(tmp_path, cwd):
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        session = await make_session(await join(served), cwd)
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        await check_goes_on(await join(served), session, cwd)


async def test_unprompted_session_survives_a_close(tmp_path, cwd):
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        one = await join(served)
        session = await make_session(one, cwd)
        assert (await one.ask("session/close", {"sessionId": session}))["result"] == {}
        await check_goes_on(one, session, cwd)


@pytest.mark.parametrize("capabilities", [LOADING, RESUMING], ids=["loads", "resumes"])
async def test_agent_that_forgets_an_unprompted_session_is_reported(tmp_path, capabilities):
    forgetful = agent(capabilities=capabilities)
    words = "had no prompt yet and is lost: the agent could not reopen it: no such session here"
    async with serve(tmp_path, forgetful, backoff_min_s=0.01, idle_stop_s=0.05) as served:
        one = await join(served)
        session = await one.new()
        await one.viewer.close()
        await until(lambda: served.host.status.state == "stopped")
        two = await join(served)
        error = (await two.prompt(session, {"say": "hi"}))["error"]
        assert words in error["data"]
        assert error["data"].endswith("start a new session")
    async with serve(tmp_path, forgetful) as served:
        three = await join(served)
        await three.load(session)
        assert words in (await three.prompt(session, {"say": "hi"}))["error"]["data"]


async def test_prompt_waits_until_the_agent_has_reopened_the_session(tmp_path):
    gate, log = tmp_path / "gate", tmp_path / "log"
    async with serve(tmp_path, agent()) as served:
        session = await (await join(served)).new()
    async with serve(tmp_path, agent(capabilities=RESUMING, load_waits=str(gate), log=str(log))) as served:
        one = await join(served)
        await one.load(session)  # from the journal, while the agent reopens it
        await until(lambda: "session/resume" in log.read_text())
        prompt = one.start_prompt(session, {"say": "hi"})
        gate.touch()
        assert "no such session here" in (await one.answer(prompt))["error"]["data"]
    assert "session/prompt" not in log.read_text()


async def test_agent_that_cannot_reopen_sessions_is_reported(tmp_path):
    async with serve(tmp_path, agent(), backoff_min_s=0.01) as served:
        one = await join(served)
        session, other = await one.new(), await one.new()
        await one.prompt(other, {"exit": 1})
        error = (await one.prompt(session, {"say": "hi"}))["error"]
        assert "had no prompt yet" in error["data"]
        assert "the agent can neither load nor resume sessions; start a new session" in error["data"]


async def test_session_is_listed_while_viewed_or_once_prompted(tmp_path):
    def ids(answer):
        return [session["sessionId"] for session in answer["result"]["sessions"]]

    async with serve(tmp_path, agent()) as served:
        one, two = await join(served, extensions=True), await join(served, extensions=True)
        session, prompted = await one.new(), await one.new()
        await one.prompt(prompted, {"say": "hi"})
        for method in ("session/list", "_dragoman/sessions"):
            assert set(ids(await two.ask(method))) == {session, prompted}
        await one.viewer.close()
        for method in ("session/list", "_dragoman/sessions"):
            assert ids(await two.ask(method)) == [prompted]
    async with serve(tmp_path, agent()) as served:
        three = await join(served, extensions=True)
        assert ids(await three.ask("_dragoman/sessions")) == [prompted]


async def test_unprompted_journal_is_deleted_after_a_week(tmp_path):
    async with serve(tmp_path, agent()) as served:
        one = await join(served)
        session, prompted = await one.new(), await one.new()
        await one.prompt(prompted, {"say": "hi"})
        histories = {each: served.sessions.by_id[each].history.path for each in (session, prompted)}
    put_back_in_time(histories, days=6)
    async with serve(tmp_path, agent()) as served:
        assert set(served.delivery.histories.stored) == {session, prompted}
    put_back_in_time(histories, days=2)
    async with serve(tmp_path, agent()) as served:
        assert set(served.delivery.histories.stored) == {prompted}
    assert [path.exists() for path in histories.values()] == [False, True]


def put_back_in_time(histories, *, days):
    """Set the times of journals some days back."""
    for path in histories.values():
        with path.open("rb") as file:
            head = read_head(file.fileno(), path)
        reader = BlockReader(Disk(), path, head.start, None)
        blocks = reader.read()
        reader.close()
        parts, checksum = [path.read_bytes()[: head.start.offset]], head.start.checksum
        for block in blocks:
            block.time -= days * 24 * 3600 * 1000
            sealed, checksum = reseal(block, block.lines, checksum)
            parts.append(sealed)
        path.write_bytes(b"".join(parts))
