from itertools import pairwise

import pytest

from dragoman.assistant.models.local.chat import Chat, prompt_text
from dragoman.assistant.models.message import (
    AssistantMessage,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.assistant.models.model import ModelRequest
from dragoman.errors import ContextOverflow
from dragoman.protocol import v1
from tests.assistant.local.asking import prompt, tool

READ = tool("read_file", "Read a file", type="object", properties={"path": {"type": "string"}}, required=["path"])


def written(*messages, tools=(READ,), room=10_000, instructions="Be brief."):
    return Chat(ModelRequest(list(messages), tools, instructions), tools).write(room)


def turns(*messages, **options):
    return [(each["role"], each["content"]) for each in written(*messages, **options) if each["role"] != "system"]


def test_the_system_message_has_instructions_shape_and_tools():
    system = written(prompt("hi"))[0]
    assert system["role"] == "system"
    assert system["content"].startswith("Be brief.")
    assert '{"reply": "…"}' in system["content"]
    assert '- read_file: Read a file {"type": "object"' in system["content"]


def test_without_tools_it_is_a_plain_chat():
    assert written(prompt("hi"), tools=()) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    assert written(prompt("hi"), tools=(), instructions="") == [{"role": "user", "content": "hi"}]


def test_calls_and_results_are_written_as_turns():
    use = ToolUse("1", "read_file", {"path": "a"})
    assert turns(
        prompt("read a"),
        AssistantMessage("Well.", tool_uses=[use]),
        ToolMessage([ToolResult("1", "nothing there", failed=True)]),
        prompt("and?"),
    ) == [
        ("user", "read a"),
        ("assistant", '{"reply": "Well."}\n\n{"tool": "read_file", "arguments": {"path": "a"}}'),
        ("user", "read_file failed:\nnothing there\n\nand?"),
    ]


def test_replies_that_never_began_are_left_out():
    assert turns(prompt("a"), AssistantMessage(thought="hm"), prompt("b")) == [("user", "a\n\nb")]


def test_a_summary_stands_for_all_before_it():
    summary = SummaryMessage("they greeted", [v1.TextContent(text="go on")])
    [(role, text)] = turns(prompt("hi"), AssistantMessage("hello"), summary)
    assert role == "user"
    assert text == "What was said before, in short: they greeted\n\ngo on"


def test_the_oldest_is_dropped_and_the_newest_kept():
    talk = [each for index in range(50) for each in (prompt(f"question {index}"), AssistantMessage("x" * 100))]
    found = turns(*talk, prompt("the last"), tools=(), room=1_000)
    assert found[0][0] == "user"
    assert found[-1] == ("user", "the last")
    assert 300 < sum(len(text) for _, text in found) <= 1_000


def test_a_growing_conversation_mostly_begins_as_before():
    talk, beginnings = [], []
    for index in range(60):
        talk += [prompt(f"question {index}"), AssistantMessage("x" * 100)]
        beginnings.append(turns(*talk, prompt("next"), tools=(), room=2_000)[0])
    changes = sum(one != other for one, other in pairwise(beginnings))
    assert changes <= 60 * 110 / (2_000 / 4) + 1


def test_the_prompt_outlives_the_results_it_led_to():
    talk = [prompt("the question")]
    for index in range(20):
        talk.append(AssistantMessage(tool_uses=[ToolUse(str(index), "read_file", {"path": "a"})]))
        talk.append(ToolMessage([ToolResult(str(index), f"result {index} {'x' * 200}")]))
    found = turns(*talk, room=2_000)
    assert found[0][1].startswith("the question")
    assert "result 19" in found[-1][1]


def test_a_long_result_is_cut_in_the_middle():
    use = AssistantMessage(tool_uses=[ToolUse("1", "read_file", {})])
    result = ToolMessage([ToolResult("1", "begin" + "x" * 50_000 + "end")])
    text = turns(prompt("q"), use, result, room=4_000)[-1][1]
    assert text.startswith("read_file returned:\nbegin")
    assert "cut: too long" in text
    assert text.endswith("end")
    assert len(text) < 1_100


def test_long_instructions_leave_room_for_the_prompt():
    assert turns(prompt("hi"), instructions="x" * 100_000, room=4_000) == [("user", "hi")]


def test_a_prompt_that_is_too_long_by_itself_is_refused():
    with pytest.raises(ContextOverflow, match="too long for this model"):
        written(prompt("x" * 20_000))


def test_blocks_that_are_no_text_become_a_word_about_them():
    blocks = [
        v1.TextContent(text="see"),
        v1.ResourceLink(name="notes", uri="file:///n"),
        v1.EmbeddedResource(resource=v1.TextResourceContents(uri="file:///t", text="inside")),
        v1.ImageContent(data="", mime_type="image/png"),
    ]
    lines = prompt_text(blocks, 1_000).splitlines()
    assert lines[:3] == ["see", "[notes](file:///n)", '<resource uri="file:///t">']
    assert "text only" in lines[-1]


def test_a_file_that_came_with_the_prompt_is_cut_in_the_middle():
    file = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="file:///t", text="begin" + "x" * 50_000 + "end"))
    [(_, text)] = turns(UserMessage([v1.TextContent(text="explain"), file]), room=4_000)
    assert text.startswith('explain\n<resource uri="file:///t">\nbegin')
    assert text.endswith("end\n</resource>")
    assert len(text) < 2_000


def test_blobs_and_links_are_in_the_words_that_every_model_gets():
    text = v1.BlobResourceContents(uri="file:///t", blob="aGk=", mime_type="text/plain")
    other = v1.BlobResourceContents(uri="file:///z", blob="aGk=", mime_type="application/zip")
    blocks = [
        v1.EmbeddedResource(resource=text),
        v1.EmbeddedResource(resource=other),
        v1.ResourceLink(name="n", uri="file:///n", description="[not attached: it is gone]"),
    ]
    assert prompt_text(blocks, 1_000).splitlines() == [
        '<resource uri="file:///t">',
        "hi",
        "</resource>",
        "[application (file:///z, application/zip) that this model cannot be given]",
        "[n](file:///n): [not attached: it is gone]",
    ]


def test_the_prompt_of_a_summary_is_said_once():
    asked = prompt("go on")
    assert turns(SummaryMessage("they greeted", asked.content), asked) == [
        ("user", "What was said before, in short: they greeted\n\ngo on")
    ]
