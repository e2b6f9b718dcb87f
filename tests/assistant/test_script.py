import asyncio

import pytest

from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import ReplyRequest, ReplyStop, ReplyText, ReplyThought
from dragoman.assistant.models.script import load_script, parse_script
from dragoman.errors import ModelError, ScriptError
from tests.table import each_row

SCRIPT = """
- - thought: hmm
  - text: a
    repeat: 2
  - tool: {name: read_file, arguments: {path: x, lines: [1, 2]}}
  - usage: {input: 3, output: 4}
  - stop: refusal
- - text: second
"""


async def replies(conversation):
    return [part async for part in conversation.reply(ReplyRequest([]))]


async def test_parts_come_in_order_and_repeated():
    parts = await replies(parse_script(SCRIPT, "f").start())
    assert parts == [
        ReplyThought("hmm"),
        ReplyText("a"),
        ReplyText("a"),
        ToolUse(parts[3].id, "read_file", {"path": "x", "lines": [1, 2]}),
        TokenUsage(3, 4),
        ReplyStop("refusal"),
    ]


async def test_each_request_gets_the_next_reply_and_the_list_repeats():
    conversation = parse_script("- - text: a\n- - text: b\n", "f").start()
    assert [await replies(conversation) for _ in range(3)] == [[ReplyText("a")], [ReplyText("b")], [ReplyText("a")]]


async def test_each_session_has_its_own_position():
    model = parse_script("- - text: a\n- - text: b\n", "f")
    one, other = model.start(), model.start()
    await replies(one)
    assert await replies(one) == [ReplyText("b")]
    assert await replies(other) == [ReplyText("a")]


async def test_cancelled_reply_counts_as_used():
    conversation = parse_script("- - delay_s: 60\n- - text: b\n", "f").start()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await replies(conversation)
    assert await replies(conversation) == [ReplyText("b")]


async def test_error_part_fails_the_reply():
    conversation = parse_script("- - text: a\n  - error: the provider is down\n", "f").start()
    with pytest.raises(ModelError, match="the provider is down"):
        await replies(conversation)


async def test_empty_reply_sends_nothing():
    assert await replies(parse_script("- []\n", "f").start()) == []


@each_row(
    ("script", "line", "words"),
    [
        ("", 1, "list of replies"),
        ("[]", 1, "list of replies"),
        ("a: 1", 1, "list of replies"),
        ("just text", 1, "list of replies"),
        ("- x", 1, "list of parts"),
        ("- - text: ok\n- text: a", 2, "list of parts"),
        ("- - text: ok\n  - words", 2, "a part such as"),
        ("- - text: ok\n  - txt: a", 2, "txt is not part of a reply; expected one of text, thought"),
        ("- - text: ok\n  - text: 5", 2, "put it in quotes"),
        ("- - text: ok\n    repeat: often", 2, "repeat: expected a whole number"),
        ("- - text: ok\n    repeat: 1.5", 2, "repeat: expected a whole number"),
        ("- - text: ok\n    repeat: true", 2, "repeat: expected a whole number"),
        ("- - repeat: 2", 1, "got nothing"),
        ("- - text: a\n    thought: b", 1, "got text, thought"),
        ("- - text: a\n    text: b", 2, "given twice"),
        ("- - ? [a]\n    : b", 1, "expected a name"),
        ("- - delay_s: -1", 1, "delay_s: expected a number"),
        ("- - delay_s: soon", 1, "delay_s: expected a number"),
        ("- - stop: end_turn", 1, "max_tokens or refusal"),
        ("- - usage: {input: 1}", 1, "input and output"),
        ("- - usage: {input: 1, output: x}", 1, "usage.output"),
        ("- - usage: 5", 1, "usage as"),
        ("- - tool: read_file", 1, "a tool as"),
        ("- - tool: {arguments: {}}", 1, "name and arguments"),
        ("- - tool: {name: x, arguments: [1]}", 1, "expected a mapping"),
        ("- - tool: {name: x, arguments: {a: !!python/object/apply:os.system [x]}}", 1, "not YAML"),
        ("- - text: !!int x", 1, "tag"),
        ("- - text: !!bool x", 1, "tag"),
        ("- - text: ok\n  - " + "[" * 200_000 + "]" * 200_000, 2, "deep"),
        ("- - [a", 1, "not YAML"),
        ("- - text: *nowhere", 1, "not YAML"),
        ("\n- - text: a\n  bad indent: b", 3, "not YAML"),
        ("- - text: a\n---\n- - text: b", 2, "not YAML"),
        ("- - text: \x00", 1, "not YAML"),
    ],
)
def test_invalid_script_is_refused_with_file_line_and_reason(script, line, words):
    with pytest.raises(ScriptError) as caught:
        parse_script(script, "demo.yaml")
    assert str(caught.value).startswith(f"demo.yaml:{line}: ")
    assert words in caught.value.problem


def test_missing_script_is_refused(tmp_path):
    with pytest.raises(ScriptError, match="cannot be read: No such file"):
        load_script(tmp_path / "nowhere.yaml")


def test_script_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "f.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScriptError, match="UTF-8"):
        load_script(tmp_path / "f.yaml")
