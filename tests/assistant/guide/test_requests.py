"""What the guide makes of the plain requests of a newcomer, and of words that ask for nothing it can do."""

import pytest

from tests.assistant.guide.requests import (
    ANSWERED,
    DEVELOPED,
    HELD_OUT,
    PHRASES,
    TALK,
    UNMARKED,
)
from tests.assistant.guide.talking import Talk, calls_for
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN


@pytest.mark.parametrize(("text", "expected"), DEVELOPED + HELD_OUT)
async def test_a_newcomer_is_understood(text, expected):
    said, calls = await Talk(BUILT_IN).say(text)
    if isinstance(expected, str):
        assert calls == []
        assert ANSWERED[expected] in said
    else:
        assert calls == expected


@pytest.mark.parametrize(("text", "expected"), PHRASES)
async def test_a_phrase_calls_the_tool_with_its_arguments(text, expected):
    assert await calls_for(text, BUILT_IN) == expected


@pytest.mark.parametrize(("text", "expected"), PHRASES)
async def test_the_tools_of_others_do_not_change_what_a_phrase_means(text, expected):
    assert await calls_for(text, BUILT_IN + FOREIGN) == expected


@pytest.mark.parametrize("text", TALK)
async def test_talk_calls_no_tool(text):
    said, calls = await Talk(BUILT_IN).say(text)
    assert calls == []
    assert said.strip()


@pytest.mark.parametrize("text", UNMARKED)
async def test_a_text_that_is_not_marked_is_written_nowhere(text):
    said, calls = await Talk(BUILT_IN).say(text)
    assert calls == []
    assert "I write no text of my own" in said or "no language model" in said


@pytest.mark.parametrize("text", ["write a poem", "why is the sky blue", "refactor everything", "fix it"])
async def test_what_needs_a_language_model_is_said_with_the_way_to_one_in_a_line(text):
    said, calls = await Talk(BUILT_IN).say(text)
    assert calls == []
    [_, how] = said.splitlines()
    for words in ("To connect a language model", "--model", "DRAGOMAN_MODEL", "anthropic:", "openai:", "ollama:"):
        assert words in how
