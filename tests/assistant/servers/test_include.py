"""Which tools of its own server a client includes for the model, and when."""

import pytest

from tests.assistant.servers.talking import (
    stdio,
    talking,
)


@pytest.mark.parametrize(
    ("wish", "given"),
    [
        (None, ["one__echo", "one__tool_00000"]),
        ("manual", []),
        ({"default": "manual", "tools": {"echo": "always"}}, ["one__echo"]),
        ({"tools": {"echo": "manual"}}, ["one__tool_00000"]),
    ],
)
async def test_client_chooses_the_include_mode_of_its_tools(place, wish, given):
    meta = None if wish is None else {"dragoman/include": wish}
    async with talking(place, servers=[stdio(tool_count=1, meta=meta)]) as (talk, model):
        await talk.ask()
        assert model.tools() == [given]
        await talk.ask("/include server:one")
        await talk.ask()
        assert model.tools()[-1] == ["one__echo", "one__tool_00000"]


async def test_searched_tools_are_sent_when_the_prompt_needs_them(place):
    tools = [
        {"name": "get_weather", "description": "Tells the weather forecast of a city"},
        {"name": "send_invoice", "description": "Sends an invoice to a customer"},
    ]
    async with talking(place, servers=[stdio(tools=tools, meta={"dragoman/include": "agent"})]) as (talk, model):
        await talk.ask("What is the weather forecast for the city of Bern?")
        assert "one__get_weather" in model.tools()[-1]
        assert "one__send_invoice" not in model.tools()[-1]
