import base64

import msgspec
import pytest

from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
)
from dragoman.protocol import v1
from tests.assistant.models.asking import asked, kept_of, only, parts_of, prompt, text_of, thought_of
from tests.assistant.models.loopback import Anthropic, Chat, Google, Responses
from tests.table import each_row

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nnot much of a picture").decode()


def remembered(parts):
    """Return a reply as a turn remembers it after writing and reading the log."""
    message = AssistantMessage(text_of(parts), thought_of(parts), only(ToolUse, parts), kept_of(parts))
    return msgspec.json.decode(msgspec.json.encode(message), type=Message)


@every_format
async def test_tool_and_result_are_in_the_next_request(wire):
    first = wire.reply(("text", "I read it."), ("call", "id-1", "read_file", '{"path": "a.txt"}'))
    async with asked(wire, first, wire.reply(("text", "It says hi."))) as (provider, model):
        said = remembered(await parts_of(model, prompt("read a.txt")))
        results = ToolMessage([ToolResult("id-1", "hi there")])
        parts = await parts_of(model, prompt("read a.txt"), said, results, instructions="Be brief.")
    assert text_of(parts) == "It says hi."
    sent = msgspec.json.encode(wire.said_to_it(provider.requests[1])).decode()
    for words in ("read a.txt", "I read it.", "read_file", "a.txt", "hi there"):
        assert words in sent
    assert sent.index("I read it.") < sent.index("hi there")


async def test_chat_format_has_exactly_these_messages():
    wire = Chat()
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        said = AssistantMessage("Reading.", "hm", [ToolUse("id-1", "read", {"path": "a"})])
        await parts_of(
            model, prompt("go"), said, ToolMessage([ToolResult("id-1", "hi")]), prompt("and?"), instructions="Be brief."
        )
    assert wire.said_to_it(provider.requests[0]) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                {"id": "id-1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "id-1", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "and?"}]},
    ]


async def test_failed_tool_is_marked_as_failed():
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        said = AssistantMessage(tool_uses=[ToolUse("id-1", "read", {})])
        await parts_of(model, prompt("go"), said, ToolMessage([ToolResult("id-1", "no such file", failed=True)]))
    [block] = wire.said_to_it(provider.requests[0])[-1]["content"]
    assert block["tool_use_id"] == "id-1"
    assert block["is_error"] is True


@every_format
async def test_missing_tool_result_is_added(wire):
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        said = AssistantMessage(tool_uses=[ToolUse("id-1", "read", {}), ToolUse("id-2", "read", {})])
        results = ToolMessage([ToolResult("id-2", "fine")])
        await parts_of(model, prompt("go"), said, results, prompt("never mind"))
    sent = msgspec.json.encode(wire.said_to_it(provider.requests[0])).decode()
    assert sent.count("there is no result") == 1
    assert sent.index("there is no result") < sent.index("never mind")


@every_format
async def test_reply_that_never_began_is_left_out(wire):
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        await parts_of(model, prompt("one"), AssistantMessage(thought="Hm"), prompt("two"))
    assert "assistant" not in msgspec.json.encode(wire.said_to_it(provider.requests[0])).decode()


@every_format
async def test_summary_replaces_everything_before_it(wire):
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        before = AssistantMessage("Old words.", tool_uses=[ToolUse("id-1", "read", {})])
        await parts_of(model, prompt("old prompt"), before, SummaryMessage("We fixed the bug."), prompt("and now?"))
    sent = msgspec.json.encode(wire.said_to_it(provider.requests[0])).decode()
    assert "We fixed the bug." in sent
    assert sent.index("We fixed the bug.") < sent.index("and now?")
    assert "old prompt" not in sent.lower()
    assert "there is no result" not in sent


async def test_signed_thoughts_go_back_in_order():
    wire = Anthropic()
    pieces = [("thought", "First, ", "look."), ("text", "Looking."), ("thought", "Then read."), ("call", "t1", "read")]
    async with asked(wire, wire.reply(*pieces), wire.reply(("text", "ok"))) as (provider, model):
        said = remembered(await parts_of(model, prompt("go")))
        await parts_of(model, prompt("go"), said, ToolMessage([ToolResult("t1", "hi")]))
    [assistant] = [m for m in wire.said_to_it(provider.requests[1]) if m["role"] == "assistant"]
    assert [
        {key: value for key, value in block.items() if key != "cache_control"} for block in assistant["content"]
    ] == [
        {"type": "thinking", "thinking": "First, look.", "signature": "signed-0"},
        {"type": "text", "text": "Looking."},
        {"type": "thinking", "thinking": "Then read.", "signature": "signed-2"},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {}},
    ]


async def test_google_signatures_go_back_to_google():
    wire = Google()
    pieces = [("thought", "Let me see."), ("call", "t1", "read", "{}")]
    async with asked(wire, wire.reply(*pieces), wire.reply(("text", "ok"))) as (provider, model):
        said = remembered(await parts_of(model, prompt("go")))
        await parts_of(model, prompt("go"), said, ToolMessage([ToolResult("t1", "hi")]))
    asked_for, results = wire.said_to_it(provider.requests[1])[1:]
    signature = base64.b64encode(b"signed-0").decode()
    assert signature in [part.get("thoughtSignature") for part in asked_for["parts"]]
    assert [part["functionResponse"]["response"] for part in results["parts"]] == [{"return_value": "hi"}]


async def test_encrypted_reasoning_goes_back_to_its_provider():
    wire = Responses()
    pieces = [("thought", "Let me see."), ("call", "t1", "read", "{}")]
    async with asked(wire, wire.reply(*pieces), wire.reply(("text", "ok"))) as (provider, model):
        said = remembered(await parts_of(model, prompt("go")))
        await parts_of(model, prompt("go"), said, ToolMessage([ToolResult("t1", "hi")]))
    [reasoning] = [item for item in wire.said_to_it(provider.requests[1]) if item.get("type") == "reasoning"]
    assert reasoning["encrypted_content"] == "signed-0"
    assert reasoning["summary"] == [{"type": "summary_text", "text": "Let me see."}]


@pytest.mark.parametrize("change", ["cut", "foreign", "nonsense"])
async def test_thoughts_without_valid_signatures_are_dropped(change):
    wire = Anthropic()
    async with asked(wire, wire.reply(("thought", "Hm, secret."), ("text", "Yes."))) as (provider, model):
        said = remembered(await parts_of(model, prompt("go")))
        if change == "cut":
            said = msgspec.structs.replace(said, thought="Hm")
        elif change == "foreign":
            said = msgspec.structs.replace(said, provider=said.provider | {"provider": "other"})
        else:
            said = msgspec.structs.replace(said, provider={"of": "another age"})
        await parts_of(model, prompt("go"), said, prompt("on"))
    sent = msgspec.json.encode(wire.said_to_it(provider.requests[1])).decode()
    assert "Yes." in sent
    assert "Hm" not in sent


async def test_no_details_are_stored_if_the_text_suffices():
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi"), ("call", "t1", "read", '{"path": "x"}'))) as (_, model):
        assert kept_of(await parts_of(model)) is None


@every_format
async def test_picture_is_sent_to_a_model_with_image_input(wire):
    picture = v1.ImageContent(data=PNG, mime_type="image/png")
    async with asked(wire, wire.reply(("text", "A dot."))) as (provider, model):
        await parts_of(model, prompt("What is this?", picture))
        assert "image" in model.content_types
    assert PNG in msgspec.json.encode(wire.said_to_it(provider.requests[0])).decode()


@pytest.mark.parametrize("wire", [Chat(), Anthropic(), Responses()], ids=lambda wire: type(wire).__name__)
async def test_model_without_audio_input_gets_a_note_instead(wire):
    sound = v1.AudioContent(data=PNG, mime_type="audio/wav")
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        await parts_of(model, prompt(sound))
    sent = msgspec.json.encode(wire.said_to_it(provider.requests[0])).decode()
    assert "[audio (audio/wav), which this model does not accept]" in sent
    assert PNG not in sent


async def test_sound_is_sent_to_a_model_with_audio_input():
    wire = Google()
    async with asked(wire, wire.reply(("text", "A bang."))) as (provider, model):
        await parts_of(model, prompt(v1.AudioContent(data=PNG, mime_type="audio/wav")))
        assert "audio" in model.content_types
    [part] = wire.said_to_it(provider.requests[0])[0]["parts"]
    assert part["inlineData"] == {"data": PNG, "mime_type": "audio/wav"}


@every_format
@each_row(
    ("block", "words"),
    [
        (v1.ImageContent(data="not base64!", mime_type="image/png"), "not base64"),
        (
            v1.ResourceLink(name="a.py", uri="file:///w/a.py", description="the source"),
            "[a.py](file:///w/a.py): the source",
        ),
        (
            v1.EmbeddedResource(resource=v1.TextResourceContents(uri="file:///w/b", text="inside")),
            '<resource uri="file:///w/b">\ninside\n</resource>',
        ),
        (
            v1.EmbeddedResource(
                resource=v1.BlobResourceContents(uri="file:///w/c", blob="aGk=", mime_type="text/plain")
            ),
            '<resource uri="file:///w/c">\nhi\n</resource>',
        ),
        (
            v1.EmbeddedResource(resource=v1.BlobResourceContents(uri="file:///w/d.zip", blob="aGk=")),
            "[application (file:///w/d.zip, application/octet-stream), which this model does not accept]",
        ),
    ],
)
async def test_other_content_is_described_in_words(wire, block, words):
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        await parts_of(model, prompt(block))
    texts = []

    def collect(value):
        if isinstance(value, dict):
            texts.append(value.get("text") or value.get("content"))
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                collect(item)

    collect(wire.said_to_it(provider.requests[0]))
    assert any(isinstance(text, str) and words in text for text in texts)


async def test_pdf_is_sent_to_a_model_with_document_input():
    wire = Anthropic()
    pdf = v1.BlobResourceContents(uri="file:///w/p.pdf", blob=base64.b64encode(b"%PDF-1.4").decode())
    pdf.mime_type = "application/pdf"
    async with asked(wire, wire.reply(("text", "ok"))) as (provider, model):
        await parts_of(model, prompt(v1.EmbeddedResource(resource=pdf)))
    [block] = wire.said_to_it(provider.requests[0])[0]["content"]
    assert block["type"] == "document"
