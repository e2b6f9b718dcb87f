"""The programs on the pages about adapters run, with a scripted model in place of the provider's."""

import re
from pathlib import Path

import agents
import pytest

from dragoman.client import ToolChanged, allow_all
from tests.agent.adapters.scripted_frameworks import (
    Reply,
    Script,
    ScriptedChat,
    ScriptedOpenAI,
    scripted_pydantic_model,
)

DOCS = Path(__file__).parents[3] / "docs"
MODELS = {
    "kit-pydantic-ai.md": ('"openai:gpt-5"', scripted_pydantic_model),
    "kit-langgraph.md": ('"openai:gpt-5"', lambda script: ScriptedChat(script=script)),
    "kit-openai-agents.md": ('"gpt-5"', ScriptedOpenAI),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("page", MODELS)
async def test_the_program_of_the_page_lends_a_book(page, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    agents.set_tracing_disabled(disabled=True)
    name, make_model = MODELS[page]
    [program] = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    assert program.count(name) == 1
    script = Script([Reply(calls=[("lend", {"book": "Emma"})]), Reply("Here you are.")])
    names = {"__name__": "librarian", "scripted_model": make_model(script)}
    exec(compile(program.replace(name, "scripted_model"), page, "exec"), names)
    async with names["agent"].connect(policy=allow_all()) as remote:
        session = await remote.new_session(tmp_path)
        events = [event async for event in session.prompt("May I have Emma?")]
    [call] = [event.call for event in events if isinstance(event, ToolChanged) and event.call.status == "completed"]
    assert [part.content.text for part in call.content] == ["Emma is lent for three weeks"]
    assert events[-1].text.strip() == "Here you are."
