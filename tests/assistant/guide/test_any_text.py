"""Whatever is said, and whatever tools there are: the guide answers, and what it calls fits the schema."""

import asyncio
import os

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import ReplyText, ToolDefinition
from tests.assistant.guide.talking import Talk, prompt, reply
from tests.assistant.guide.test_flows import STEPS
from tests.assistant.guide.test_foreign import PHRASES as FOREIGN_PHRASES
from tests.assistant.guide.test_phrases import PHRASES, TALK
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN

pytestmark = pytest.mark.soak

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))
TOOLS = BUILT_IN + FOREIGN
SAID = [row[0] for row in (*PHRASES, *FOREIGN_PHRASES, *STEPS)] + TALK
WORDS = sorted(
    {word for text in SAID for word in text.split()}
    | {"'", '"', "`", "```\n", "\n", ":", "=", "--", "{}", "\ue000", "\ue0011"}
)

SENTENCES = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
MUTATED = st.tuples(st.sampled_from(SAID), st.sampled_from(SAID), st.integers(0, 40), st.text(max_size=5)).map(
    lambda made: made[0][: made[2]] + made[3] + made[1][made[2] :]
)
PROMPTS = st.text(max_size=200) | SENTENCES | MUTATED

LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "pattern": "^[a-z]+$"},
        {"type": "string", "pattern": "("},
        {"type": "string", "enum": ["src", "red", "green"]},
        {"enum": [1, "two", None, True]},
        {"const": "src"},
        {"type": "integer", "minimum": 2, "maximum": 9},
        {"type": "number", "exclusiveMinimum": 0, "multipleOf": 2},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"$ref": "#/$defs/Colour"},
        {},
    ]
)
NAMES = st.sampled_from(
    [
        "path",
        "content",
        "query",
        "text",
        "timezone",
        "url",
        "city",
        "limit",
        "count",
        "owner",
        "repo",
        "name",
        "date",
        "time",
        "a",
        "b",
        "to",
        "all",
        "pattern",
    ]
)
SCHEMAS = st.builds(
    lambda properties, required, closed: {
        "type": "object",
        "$defs": {"Colour": {"type": "string", "enum": ["red", "green"]}},
        "properties": properties,
        "required": [name for name in required if name in properties],
        **({"additionalProperties": False} if closed else {}),
    },
    st.dictionaries(NAMES, LEAVES, max_size=5),
    st.lists(NAMES, max_size=4, unique=True),
    st.booleans(),
)
STRANGERS = st.lists(
    st.builds(
        ToolDefinition,
        st.sampled_from(
            [
                "x__list_src",
                "read_file",
                "fs__write_file",
                "time__get_time",
                "echo",
                "a__b__c",
                "search_files",
                "run_command",
                "__",
            ]
        ),
        st.sampled_from(["", "Get the time in a city", "List things", "Read a file"]),
        SCHEMAS | st.just({}) | st.just({"properties": [], "required": "x"}),
    ),
    max_size=4,
    unique_by=lambda tool: tool.name,
)


def check(parts, tools):
    assert parts
    uses = [part for part in parts if isinstance(part, ToolUse)]
    assert uses or any(isinstance(part, ReplyText) and part.text.strip() for part in parts)
    for use in uses:
        schema = next(tool.parameters for tool in tools if tool.name == use.name)
        if schema.get("type") == "object" and '"("' not in str(schema) and "'('" not in str(schema):
            jsonschema.validate(use.arguments, schema)


@settings(max_examples=2000 if SOAK else 100)
@given(PROMPTS)
def test_any_text_gets_an_answer_or_a_call_that_fits(text):
    check(asyncio.run(reply([prompt(text)], TOOLS)), TOOLS)


@settings(max_examples=1000 if SOAK else 100)
@given(PROMPTS, STRANGERS)
def test_any_tools_are_called_as_their_schemas_say(text, tools):
    check(asyncio.run(reply([prompt(text)], tools)), tools)


@settings(max_examples=500 if SOAK else 30)
@given(
    st.lists(PROMPTS, min_size=1, max_size=4),
    st.lists(st.text(max_size=60) | st.text(max_size=60).map(Exception), max_size=6),
)
def test_any_conversation_ends_each_turn(texts, results):
    async def converse():
        talk = Talk(TOOLS)
        for text in texts:
            said, calls = await talk.say(text, results)
            assert said.strip()
            assert len(calls) <= 2 * 20 + 1
        for parts in talk.replies:
            check(parts, TOOLS)

    asyncio.run(converse())


def test_long_prompts_are_read_in_a_moment():
    for piece in (
        "word ",
        "'",
        "`",
        "a: b ",
        "list src then ",
        "in ",
        "\n- x",
        "replace ",
        "x" * 50,
        "1.",
        '"',
        "( ",
        "to the ",
    ):
        asyncio.run(reply([prompt(piece * (100_000 // len(piece)))], TOOLS))
