"""The programs in the documentation of the frameworks run, with a scripted model instead of a provider's."""

import re
from pathlib import Path

import pytest

from dragoman.client.events import ToolCallChanged
from dragoman.client.policies import allow_all
from tests.agent.adapters.script import Reply, Script

PAGE = Path(__file__).parents[3] / "docs" / "frameworks.md"
MODELS = {
    "pydantic-ai": ('"openai:gpt-5"', "scripted_pydantic_model"),
    "LangGraph and LangChain": ('"openai:gpt-5"', "ScriptedChat"),
    "OpenAI Agents SDK": ('"gpt-5"', "ScriptedOpenAI"),
}


@pytest.mark.extended
@pytest.mark.asyncio
@pytest.mark.parametrize("framework", MODELS)
async def test_example_program_of_the_framework_runs(framework, tmp_path, monkeypatch):
    import agents

    from tests.agent.adapters import scripted_frameworks

    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    agents.set_tracing_disabled(disabled=True)
    name, model = MODELS[framework]
    section = PAGE.read_text().partition(f"\n## {framework}\n")[2].partition("\n## ")[0]
    [program] = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert program.count(name) == 1
    script = Script([Reply(calls=[("lend", {"book": "Emma"})]), Reply("Here you are.")])
    names = {"__name__": "librarian", "scripted_model": getattr(scripted_frameworks, model)(script=script)}
    exec(compile(program.replace(name, "scripted_model"), PAGE.name, "exec"), names)
    async with names["agent"].connect(policy=allow_all()) as remote:
        session = await remote.new_session(tmp_path)
        events = [event async for event in session.prompt("May I have Emma?")]
    [call] = [event.call for event in events if isinstance(event, ToolCallChanged) and event.call.status == "completed"]
    assert [part.content.text for part in call.content] == ["Emma is lent for three weeks"]
    assert events[-1].text.strip() == "Here you are."
