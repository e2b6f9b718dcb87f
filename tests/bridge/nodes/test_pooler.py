"""Nodes on PgBouncer in transaction mode. The database cannot wake them, so they poll."""

from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import OPTIONS, join


async def test_session_works_through_both_nodes_and_survives_its_owner(bouncer, address, tmp_path):
    behind = bouncer.behind(address)
    async with node_of(behind, tmp_path, "two") as two:
        async with node_of(behind, tmp_path, "one") as one:
            here, there = await join(one, extensions=True), await join(two, extensions=True)
            session = await here.new()
            await there.load(session)
            await there.prompt(session, {"flood": 500})
            assert there.said(session) == [str(number) for number in range(500)]
            prompt = here.start_prompt(session, {"ask": OPTIONS})
            there.choose(await there.asked(), "no")
            assert (await here.answer(prompt))["result"]["stopReason"] == "end_turn"
            await there.until(lambda _: len(there.said(session)) == 501)
            assert here.said(session) == there.said(session)
        await there.prompt(session, {"say": "after"})
        assert there.said(session)[-1] == "after"
        assert session in two.sessions.by_id
