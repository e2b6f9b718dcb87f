"""An agent that is being stopped or takes its time to come back, and somebody who needs it just then."""

from dragoman.gateway.hub import keeper
from tests.gateway.hub.seeing import LOADING, RESUMING, Seer, agent, eventually, hub_of, seer


async def test_a_prompt_that_comes_while_an_idle_agent_is_being_stopped_waits_for_the_next(tmp_path):
    store, end = tmp_path / "store", tmp_path / "end"
    store.mkdir()
    spec = agent(capabilities=RESUMING, store=str(store), lingers=str(end))
    async with hub_of(tmp_path, spec, idle_stop_s=0.05, stop_timeout_s=20.0) as hub:
        one = await seer(hub)
        session = await one.new()
        await one.viewer.close()
        await eventually((tmp_path / "end.asked").exists)
        two = await seer(hub)
        prompt = two.start_prompt(session, {"say": "on"})
        end.touch()
        answer = await two.answer(prompt)
        assert answer["result"]["stopReason"] == "end_turn"
        assert two.said() == ["on"]


async def test_what_a_slow_agent_replays_after_all_is_not_history_twice(tmp_path):
    store, gate = tmp_path / "store", tmp_path / "gate"
    store.mkdir()
    spec = agent(capabilities=LOADING, store=str(store), load_waits=str(gate))
    async with hub_of(tmp_path, spec, backoff_min_s=0.01, open_timeout_s=0.05) as hub:
        one = await seer(hub, marked=True)
        session = await one.new()
        await one.prompt(session, {"say": "once"})
        await one.prompt(session, {"exit": 1})
        for _ in range(2):
            refused = await one.prompt(session, {"say": "never"})
            assert "has not answered session/load" in refused["error"]["message"]
        gate.touch()
        await eventually(lambda: hub.sessions[session].live and not hub.sessions[session].waking)
        await one.prompt(session, {"say": "twice"})
        two = await seer(hub)
        await two.load(session)
        assert two.said() == ["once", "twice"]


async def test_a_gateway_that_is_closed_while_its_agent_starts_does_not_wait_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(keeper, "_END_TIMEOUT_S", 3600)
    async with hub_of(tmp_path) as hub:
        Seer(hub).request("initialize", {"protocolVersion": 1})
        await eventually(lambda: hub.keeper.state == "starting")
