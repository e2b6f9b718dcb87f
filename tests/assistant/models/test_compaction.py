"""Summarizing a conversation with tool calls, in the formats of real providers."""

import json

import pytest

from dragoman.assistant.compaction import MAX_PIECE, write_transcript
from dragoman.assistant.models.message import AssistantMessage, SummaryMessage, ToolMessage, ToolResult, ToolUse
from dragoman.protocol import v1
from tests.assistant.models.asking import asked, prompt
from tests.assistant.models.loopback import Anthropic, Chat, Google, Refusal, Responses
from tests.assistant.running import session_in

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
TOO_LONG = Refusal(400, "prompt is too long: 250000 tokens > 200000 maximum")
TOOL_WORDS = ("tool_use", "tool_result", "tool_calls", "tool_call_id", "function_call", "functionCall", "thinking")


def said_in(request):
    """Return all messages of a request as JSON, without the request to summarize."""
    body = {key: value for key, value in request.body.items() if key in ("messages", "input", "contents")}
    return json.dumps(body, ensure_ascii=False)


def reading(wire):
    return wire.reply(("thought", "Hm."), ("text", "I look."), ("call", "c1", "read_file", '{"path": "a.txt"}'))


@every_format
async def test_conversation_with_tools_is_summarized_without_tools(wire, tmp_path):
    (tmp_path / "a.txt").write_text("the file says this")
    words = ("Done.", "We read a.txt.", "Going on.")
    async with (
        asked(wire, reading(wire), *[wire.reply(("text", each)) for each in words]) as (provider, model),
        session_in(tmp_path, model=model) as (client, session_id),
    ):
        await client.prompt(session_id, "read it")
        await client.prompt(session_id, "/compact")
        await client.prompt(session_id, "and now?")
    summing, after = provider.requests[2:]
    assert not summing.body.get("tools")
    assert not any(word in said_in(summing) for word in TOOL_WORDS)
    for words in ("read it", "I look.", "You called read_file", "a.txt", "the file says this", "Done."):
        assert words in said_in(summing)
    assert after.body["tools"]
    assert "We read a.txt." in said_in(after)
    assert not any(word in said_in(after) for word in TOOL_WORDS)


@every_format
async def test_overlong_conversation_is_summarized_in_less_and_continues(wire, tmp_path):
    answers = [reading(wire), TOO_LONG, TOO_LONG, wire.reply(("text", "In short.")), wire.reply(("text", "Done."))]
    (tmp_path / "a.txt").write_text("line\n" * 20_000)
    async with (
        asked(wire, *answers, context_size=4_000) as (provider, model),
        session_in(tmp_path, model=model) as (client, session_id),
    ):
        answer = await client.prompt(session_id, "read it")
        assert "was summarized to make room" in client.notices()[-1]
        assert client.text() == "I look.Done."
    assert answer.stop_reason == "end_turn"
    refused, shorter, last = (said_in(request) for request in provider.requests[2:])
    assert len(shorter) < len(refused)
    assert "[… cut …]" in shorter
    assert "In short." in last
    assert "read it" in last


async def test_without_a_possible_summary_the_prompts_are_kept(tmp_path):
    wire = Chat()
    async with (
        asked(wire, wire.reply(("text", "Hi.")), *[TOO_LONG] * 4, wire.reply(("text", "Yes."))) as (provider, model),
        session_in(tmp_path, model=model) as (client, session_id),
    ):
        await client.prompt(session_id, "my first words")
        await client.prompt(session_id, "/compact")
        await client.prompt(session_id, "and now?")
        assert client.text().endswith("Yes.")
    assert "The user asked:\\n- my first words" in said_in(provider.requests[-1])


async def test_retry_while_summarizing_is_shown_and_its_cost_counted(tmp_path):
    wire = Chat()
    limited = Refusal(429, "slow down", {"retry-after-ms": "10"})
    answers = [wire.reply(("text", "Hi."), usage=(10, 1)), limited, wire.reply(("text", "Short."), usage=(100, 20))]
    async with (
        asked(wire, *answers) as (_, model),
        session_in(tmp_path, model=model) as (client, session_id),
    ):
        await client.prompt(session_id, "hello")
        summed_up = await client.prompt(session_id, "/compact")
        assert summed_up.usage == v1.Usage(total_tokens=120, input_tokens=100, output_tokens=20)
        assert "slow down; trying again in 0 s" in client.notices()[-1]
        await client.prompt(session_id, "/usage")
        assert "110 tokens in, 21 out" in client.text()


def test_transcript_says_who_said_and_did_what():
    messages = [
        SummaryMessage("They met."),
        prompt("look at", v1.ResourceLink(name="a", uri="file:///a"), v1.ImageContent(data="", mime_type="image/png")),
        AssistantMessage(
            "I look.", "secret thought", [ToolUse("1", "read_file", {"path": "a"}), ToolUse("2", "x", {})]
        ),
        ToolMessage([ToolResult("1", "hi"), ToolResult("2", "no", failed=True)]),
    ]
    assert write_transcript(messages, 10_000) == (
        "A summary of the earlier conversation: They met.\n\n"
        "The user: look at\n[a](file:///a)\n[a picture]\n\n"
        'You: I look.\n\nYou called read_file: {"path": "a"}\n\nYou called x: {}\n\n'
        "read_file returned: hi\n\nx failed: no"
    )


def test_long_transcript_keeps_its_beginning_and_end():
    file = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="file:///a", text="b" + "x" * 50_000 + "e"))
    text = write_transcript([prompt(file)], 10_000)
    assert len(text) < MAX_PIECE + 100
    assert '<resource uri="file:///a">\nbx' in text
    assert "xe\n</resource>" in text
    assert len(write_transcript([prompt("y" * 900)] * 90, 5_000)) <= 5_000
