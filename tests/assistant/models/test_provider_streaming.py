import pytest

from dragoman.assistant.models.message import AssistantMessage, ToolUse
from dragoman.assistant.models.model import (
    LONG_ARGUMENTS_CHARS,
    ReplyStop,
    ReplyText,
    ReplyThought,
    TokenUsage,
    ToolDefinition,
    ToolStart,
)
from tests.assistant.models.asking import asked, only, parts_of, prompt, text_of, thought_of
from tests.assistant.models.loopback import Anthropic, Chat, Google, Responses
from tests.table import each_row

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
formats_with_text_arguments = pytest.mark.parametrize("wire", WIRES[:3], ids=lambda wire: type(wire).__name__)
READ = ToolDefinition(
    "read_file", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)


@every_format
async def test_text_streams_as_it_is_sent(wire):
    async with asked(wire, wire.reply(("text", "Hel", "lo ", "you"))) as (_, model):
        parts = await parts_of(model)
    assert [part.text for part in only(ReplyText, parts)] == ["Hel", "lo ", "you"]


@every_format
async def test_thoughts_come_before_the_answer_and_separately(wire):
    async with asked(wire, wire.reply(("thought", "Let me ", "see."), ("text", "Yes."))) as (_, model):
        parts = await parts_of(model)
    assert thought_of(parts) == "Let me see."
    assert text_of(parts) == "Yes."
    assert len(only(ReplyThought, parts)) == 2


@every_format
async def test_tool_is_requested_when_its_arguments_are_complete(wire):
    call = ("call", "id-1", "read_file", '{"pa', 'th": "REA', 'DME.md"}')
    async with asked(wire, wire.reply(call, finish="tools" if wire.model != Responses.model else "stop")) as (_, model):
        parts = await parts_of(model, tools=[READ])
    [use] = [part for part in parts if isinstance(part, ToolStart | ToolUse)]
    assert (use.name, use.arguments, use.problem) == ("read_file", {"path": "README.md"}, None)


@formats_with_text_arguments
async def test_tool_with_long_arguments_is_announced_early(wire):
    path = "a/" * LONG_ARGUMENTS_CHARS
    call = ("call", "id-1", "read_file", '{"path": "', path, '"}')
    async with asked(wire, wire.reply(call, finish="tools" if wire.model != Responses.model else "stop")) as (_, model):
        parts = await parts_of(model, tools=[READ])
    start, use = [part for part in parts if isinstance(part, ToolStart | ToolUse)]
    assert start == ToolStart(use.id, "read_file")
    assert use.arguments == {"path": path}


@every_format
async def test_one_reply_may_call_several_tools(wire):
    calls = [("call", f"id-{n}", "read_file", f'{{"path": "{n}"}}') for n in range(3)]
    async with asked(wire, wire.reply(("text", "Reading."), *calls)) as (_, model):
        parts = await parts_of(model, tools=[READ])
    assert [use.arguments["path"] for use in only(ToolUse, parts)] == ["0", "1", "2"]
    assert len({use.id for use in only(ToolUse, parts)}) == 3


async def test_fragments_of_parallel_calls_may_interleave():
    wire = Chat()
    calls = [("id-0", "read_file", '{"path"', ': "a"}'), ("id-1", "read_file", '{"path"', ': "b"}')]
    async with asked(wire, wire.reply(("calls_in_turns", *calls))) as (_, model):
        parts = await parts_of(model, tools=[READ])
    assert {use.id: use.arguments for use in only(ToolUse, parts)} == {"id-0": {"path": "a"}, "id-1": {"path": "b"}}


@every_format
async def test_tool_without_arguments_is_called_with_none(wire):
    async with asked(wire, wire.reply(("call", "id-1", "list"))) as (_, model):
        [use] = only(ToolUse, await parts_of(model))
    assert use.arguments == {}
    assert use.problem is None


@formats_with_text_arguments
@each_row("arguments", ['{"path": "READ', "[1, 2]", "nonsense"])
async def test_arguments_that_are_not_a_json_object_are_explained(wire, arguments):
    async with asked(wire, wire.reply(("call", "id-1", "read_file", arguments))) as (_, model):
        [use] = only(ToolUse, await parts_of(model, tools=[READ]))
    assert use.arguments == {}
    assert arguments in use.problem
    assert "JSON object" in use.problem


@every_format
async def test_usage_is_reported_at_the_end(wire):
    async with asked(wire, wire.reply(("text", "Hi"), usage=(120, 45))) as (_, model):
        [usage] = only(TokenUsage, await parts_of(model))
    assert (usage.input, usage.output) == (120, 45)


async def test_cache_and_thought_tokens_are_reported_if_known():
    wire = Chat()
    details = {
        "prompt_tokens_details": {"cached_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    async with asked(wire, wire.reply(("text", "Hi"), usage=(120, 45), details=details)) as (_, model):
        [usage] = only(TokenUsage, await parts_of(model))
    assert (usage.input, usage.cached_read, usage.output, usage.thought) == (120, 100, 45, 40)


async def test_cost_is_reported_if_known():
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi"), usage=(1_000_000, 100))) as (_, model):
        [usage] = only(TokenUsage, await parts_of(model))
    assert usage.cost_usd is not None
    assert usage.cost_usd > 1


async def test_custom_address_has_no_known_cost():
    wire = Chat()
    async with asked(wire, wire.reply(("text", "Hi"))) as (_, model):
        [usage] = only(TokenUsage, await parts_of(model))
    assert usage.cost_usd is None


@every_format
@each_row(("finish", "reason"), [("length", "max_tokens"), ("refusal", "refusal")])
async def test_cut_reply_reports_the_reason(wire, finish, reason):
    async with asked(wire, wire.reply(("text", "Well, "), finish=finish)) as (_, model):
        parts = await parts_of(model)
    assert only(ReplyStop, parts) == [ReplyStop(reason)]


async def test_text_of_a_refusal_is_shown():
    wire = Chat()
    refusal = wire.chunk({"refusal": "I will not."})
    async with asked(wire, wire.reply(("raw", refusal))) as (_, model):
        parts = await parts_of(model)
    assert text_of(parts) == "I will not."
    assert only(ReplyStop, parts) == [ReplyStop("refusal")]


@every_format
async def test_complete_reply_has_no_stop_reason(wire):
    async with asked(wire, wire.reply(("text", "Done."))) as (_, model):
        assert only(ReplyStop, await parts_of(model)) == []


async def test_reused_call_id_is_made_unique():
    wire = Chat()
    call = ("call", "call_0", "read_file", '{"path": "', "a" * LONG_ARGUMENTS_CHARS, '"}')
    async with asked(wire, wire.reply(call)) as (_, model):
        before = AssistantMessage(tool_uses=[ToolUse("call_0", "read_file", {"path": "z"})])
        parts = await parts_of(model, prompt("read z"), before, prompt("read a"))
    [start], [use] = only(ToolStart, parts), only(ToolUse, parts)
    assert start.id == use.id != "call_0"


@formats_with_text_arguments
async def test_chosen_options_reach_the_provider(wire):
    async with asked(wire, wire.reply(("text", "Hi")), headers={"x-team": "red"}) as (provider, model):
        await parts_of(model, tools=[READ], instructions="Be brief.", max_output_tokens=99)
    [request] = provider.requests
    assert request.path == wire.path
    assert request.headers["x-team"] == "red"
    assert "Be brief." in str(request.body)
    assert 99 in request.body.values()
    [tool] = request.body["tools"]
    assert READ.parameters in (
        tool.get("input_schema"),
        tool.get("parameters"),
        tool.get("function", {}).get("parameters"),
    )


async def test_chosen_options_reach_google():
    wire = Google()
    async with asked(wire, wire.reply(("text", "Hi")), headers={"x-team": "red"}, thought_level="low") as (
        provider,
        model,
    ):
        await parts_of(model, tools=[READ], instructions="Be brief.", max_output_tokens=99)
    [request] = provider.requests
    assert request.path == wire.path
    assert request.headers["x-team"] == "red"
    assert request.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert request.body["generationConfig"]["maxOutputTokens"] == 99
    assert request.body["generationConfig"]["thinkingConfig"]["include_thoughts"] is True
    [tool] = request.body["tools"][0]["functionDeclarations"]
    assert (tool["name"], tool["parameters_json_schema"]) == (READ.name, READ.parameters)


async def test_thought_level_reaches_the_provider():
    wire = Responses()
    async with asked(wire, wire.reply(("text", "Hi")), thought_level="low") as (provider, model):
        await parts_of(model)
        await parts_of(model, thought_level="high")
    assert [request.body["reasoning"]["effort"] for request in provider.requests] == ["low", "high"]
