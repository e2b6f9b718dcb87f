"""A thousand sessions over three nodes, each with a viewer on a node that does not own it."""

import asyncio
import os
import time

import pytest

from tests.bridge.nodes.test_lists import walk
from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import join

SESSIONS = 1_000
AT_A_TIME = 25
PATIENCE_S = 1_500

soak = pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")


async def use_from_another_node(nodes, number):
    """Create a session at one node and prompt it through the next. Return both viewers, which stay connected."""
    owner, other = nodes[number % 3], nodes[(number + 1) % 3]
    here, there = await join(owner), await join(other)
    session = await here.new()
    await there.load(session)
    answer = await there.prompt(session, {"say": f"{number}"})
    assert "result" in answer, answer
    return session, here, there


@pytest.mark.soak
@soak
@pytest.mark.timeout(PATIENCE_S)
async def test_thousand_sessions_are_used_through_other_nodes(address, tmp_path, record_property):
    options = {"patience_s": PATIENCE_S, "max_viewers": 2 * SESSIONS}
    async with (
        node_of(address, tmp_path, "one", **options) as one,
        node_of(address, tmp_path, "two", **options) as two,
        node_of(address, tmp_path, "three", **options) as three,
    ):
        nodes, used = (one, two, three), []
        started = time.perf_counter()
        for first in range(0, SESSIONS, AT_A_TIME):
            numbers = range(first, min(SESSIONS, first + AT_A_TIME))
            used += await asyncio.gather(*(use_from_another_node(nodes, number) for number in numbers))
        opened_s = time.perf_counter() - started
        started = time.perf_counter()
        for first in range(0, SESSIONS, 4 * AT_A_TIME):
            some = used[first : first + 4 * AT_A_TIME]
            for answer in await asyncio.gather(
                *(there.prompt(session, {"say": "again"}) for session, _, there in some)
            ):
                assert "result" in answer, answer
        again_s = time.perf_counter() - started
        for number, (session, here, there) in enumerate(used):
            for viewer in (here, there):
                await viewer.until(lambda _, viewer=viewer, session=session: len(viewer.said(session)) == 2)
                assert viewer.said(session) == [f"{number}", "again"]
        assert sum(len(node.sessions.by_id) for node in nodes) == SESSIONS
        for node in nodes:
            listed = [each["sessionId"] for page in await walk(await join(node)) for each in page]
            assert sorted(listed) == sorted(session for session, _, _ in used)
    record_property("sessions opened, loaded and prompted elsewhere, a second", SESSIONS / opened_s)
    record_property("turns through other nodes, a second", SESSIONS / again_s)
    print(f"{SESSIONS / opened_s:.0f} sessions/s, then {SESSIONS / again_s:.0f} turns/s")
