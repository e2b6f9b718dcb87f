import pytest

from dragoman.agent.turns.prepared_call import ToolError
from dragoman.protocol import v1
from tests.assistant.tools.working import working

ENTRIES = [
    {"content": "look", "priority": "high", "status": "completed"},
    {"content": "leap", "priority": "low", "status": "in_progress"},
]


async def test_plan_is_shown_completely_without_approval(tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("update_plan", entries=ENTRIES)
        assert (call.title, call.kind, call.action, call.inside) == ("Update the plan", "think", None, True)
        assert here.plans == []
        assert (await here.run(call)).text == "the plan is shown: 1 of 2 done"
        assert here.plans == [v1.Plan(entries=[v1.PlanEntry(**entry) for entry in ENTRIES])]


async def test_plan_can_be_cleared(tmp_path):
    async with working(tmp_path) as here:
        await here.call("update_plan", entries=[])
        assert here.plans == [v1.Plan(entries=[])]


@pytest.mark.parametrize("entry", [{**ENTRIES[0], "status": "done"}, {**ENTRIES[0], "content": ""}, {"content": "x"}])
async def test_invalid_step_is_refused_with_a_message(entry, tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="the arguments of update_plan do not fit"):
            await here.prepare("update_plan", entries=[entry])
