"""The guide with the tools of servers: found by name and by words, filled from their schemas."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import ReplyStop, ReplyText, ToolDefinition
from tests.assistant.guide.requests import DEVELOPED, HELD_OUT, PHRASES
from tests.assistant.guide.server_requests import REAL, TALK, TOOLBOX
from tests.assistant.guide.talking import Talk, calls_for
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN, tool

SERVERS = msgspec.json.decode((Path(__file__).parent / "servers.json").read_bytes(), type=list[ToolDefinition])


@pytest.mark.parametrize(("text", "name", "arguments"), TOOLBOX)
async def test_a_request_finds_the_tool_and_fills_its_arguments(text, name, arguments):
    assert await calls_for(text, BUILT_IN + FOREIGN) == [(name, arguments)]
    jsonschema.validate(arguments, next(one.parameters for one in FOREIGN if one.name == name))


@pytest.mark.parametrize(("text", "name", "arguments"), REAL)
async def test_a_request_finds_the_tool_of_a_real_server(text, name, arguments):
    assert await calls_for(text, BUILT_IN + SERVERS) == [(name, arguments)]
    jsonschema.validate(arguments, next(one.parameters for one in SERVERS if one.name == name))


@pytest.mark.parametrize("text", TALK)
async def test_talk_that_shares_a_word_with_a_tool_calls_none(text):
    assert await calls_for(text, BUILT_IN + FOREIGN) == []
    assert await calls_for(text, BUILT_IN + SERVERS) == []


ASKS = [
    ("what time is it?", "timezone", "Tokyo", {"timezone": "Asia/Tokyo"}),
    ("weather forecast", "city", "in Lima", {"city": "Lima"}),
    ("take a screenshot", "url", "https://x.org", {"url": "https://x.org"}),
]


@pytest.mark.parametrize(("text", "parameter", "answer", "arguments"), ASKS)
async def test_a_missing_value_is_asked_for_in_a_line_and_the_next_prompt_is_the_answer(
    text, parameter, answer, arguments
):
    talk = Talk(BUILT_IN + FOREIGN)
    said, calls = await talk.say(text)
    assert calls == []
    assert f"I need `{parameter}`" in said
    assert len(said.splitlines()) == 1
    _, calls = await talk.say(answer)
    assert [arguments for _, arguments in calls] == [arguments]


async def test_several_missing_values_are_asked_for_one_after_the_other():
    talk = Talk(FOREIGN)
    assert "I need `owner`: Repository owner." in (await talk.say("create issue"))[0]
    assert "I need `repo`" in (await talk.say("dragoman"))[0]
    assert "I need `title`" in (await talk.say("core"))[0]
    _, calls = await talk.say("It fails on Mondays")
    assert calls == [("github__create_issue", {"owner": "dragoman", "repo": "core", "title": "It fails on Mondays"})]


async def test_steps_before_the_one_that_asked_are_not_done_again():
    talk = Talk([one for one in BUILT_IN if one.name != "update_plan"] + FOREIGN)
    said, calls = await talk.say("list src then take a screenshot then read a.txt")
    assert [name for name, _ in calls] == ["list_directory"]
    assert "I need `url`" in said
    _, calls = await talk.say("https://x.org")
    assert [name for name, _ in calls] == ["pages__take_screenshot", "read_file"]


async def test_another_request_instead_of_an_answer_is_a_request():
    talk = Talk(BUILT_IN + FOREIGN)
    await talk.say("what time is it?")
    _, calls = await talk.say("read a.txt")
    assert calls == [("read_file", {"path": "a.txt"})]


async def test_an_answer_that_does_not_fit_is_asked_for_again():
    talk = Talk(FOREIGN)
    await talk.say("add 2")
    said, calls = await talk.say("many")
    assert calls == []
    assert "I need `b`" in said
    assert (await talk.say("3"))[1] == [("everything__add", {"a": 2, "b": 3})]


TWO = [tool(f"{server}__echo", "Echoes", "message", message="string") for server in ("one", "two")]


async def test_of_two_tools_of_a_name_the_person_names_one():
    said, calls = await Talk(BUILT_IN + TWO).say("echo hello")
    assert calls == []
    assert "Begin the request with the name of one: `one__echo` or `two__echo`." in said
    assert await calls_for("two__echo hello", BUILT_IN + TWO) == [("two__echo", {"message": "hello"})]


async def test_a_title_that_a_server_made_up_cannot_break_the_words_around_it():
    strange = msgspec.structs.replace(TWO[0], title="x: `a`\n\n# b " + "c" * 1000)
    said, _ = await Talk([strange]).say("echo hi", ["hi"])
    assert "`x: 'a' # b ccc" in said
    assert len(said) < 200


UNTOUCHED = """
import asyncio, json, sys
from tests.assistant.guide.talking import Talk
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN

for text in json.loads(sys.argv[1]):
    asyncio.run(Talk(BUILT_IN + FOREIGN).say(text))
    print(text, any(name in sys.modules for name in ("numpy", "sqlite3")))
"""


def test_the_index_of_tools_is_not_made_for_what_a_phrase_decides():
    decided = ["read README.md", "git status", "list src/", "hello", "what is this project", "run the tests"]
    texts = json.dumps([*decided, "what time is it in Tokyo"])
    done = subprocess.run([sys.executable, "-c", UNTOUCHED, texts], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [*(f"{text} False" for text in decided), "what time is it in Tokyo True"]


# ── any text, any tools ─────────────────────────────────────────────────────────────────────────────

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))
SAID = [text for text, *_ in DEVELOPED + HELD_OUT + PHRASES + TOOLBOX]
MUTATED = st.tuples(st.sampled_from(SAID), st.sampled_from(SAID), st.integers(0, 40), st.text(max_size=5)).map(
    lambda made: made[0][: made[2]] + made[3] + made[1][made[2] :]
)
PROMPTS = st.text(max_size=200) | MUTATED
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "enum": ["src", "red", "green"]},
        {"enum": [1, "two", None, True]},
        {"const": "src"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"$ref": "#/$defs/Colour"},
        {},
        True,
    ]
)
NAMES = st.sampled_from(
    ["path", "content", "query", "timezone", "url", "city", "count", "owner", "repo", "date", "a", "to"]
)
SCHEMAS = st.builds(
    lambda properties, required: {
        "type": "object",
        "$defs": {"Colour": {"type": "string", "enum": ["red", "green"]}},
        "properties": properties,
        "required": [name for name in required if name in properties],
    },
    st.dictionaries(NAMES, LEAVES, max_size=5),
    st.lists(NAMES, max_size=4, unique=True),
)
STRANGERS = st.lists(
    st.builds(
        ToolDefinition,
        st.sampled_from(["x__list_src", "fs__write_file", "time__get_time", "echo", "a__b__c", "__"]),
        st.sampled_from(["", "Get the time in a city", "List things", "Read a file"]),
        SCHEMAS | st.just({}) | st.just({"properties": [], "required": "x"}),
    ),
    max_size=4,
    unique_by=lambda tool: tool.name,
)


@settings(max_examples=2000 if SOAK else 100)
@given(PROMPTS, STRANGERS, st.lists(st.text(max_size=60) | st.text(max_size=60).map(Exception), max_size=6))
def test_any_text_gets_an_answer_or_calls_that_fit_their_schemas(text, tools, results):
    async def converse():
        talk = Talk(BUILT_IN + tools)
        said, calls = await talk.say(text, results)
        assert said.strip()
        assert not any(isinstance(part, ToolUse) for part in talk.parts)
        assert all(isinstance(part, ReplyText | ReplyStop) for part in talk.parts)
        for name, arguments in calls:
            schema = next(one.parameters for one in talk.tools if one.name == name)
            if isinstance(schema.get("properties", {}), dict):
                jsonschema.validate(arguments, schema)

    asyncio.run(converse())


@pytest.mark.parametrize(
    "piece", ["word ", "'", "`", "a: b ", "list src then ", "in ", "\n- x", "the ", "x" * 50, "1."]
)
def test_a_long_prompt_is_read_to_its_end(piece):
    said, _ = asyncio.run(Talk(BUILT_IN + FOREIGN).say(piece * (3_900 // len(piece))))
    assert said.strip()
