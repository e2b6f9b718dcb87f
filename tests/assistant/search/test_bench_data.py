"""The data of the benchmark is what its report says it is."""

from contextlib import closing
from functools import cache
from sqlite3 import connect

import pytest

from bench.distractors import make_distractors, read_trades
from bench.search import read_prompts, read_tools
from dragoman.assistant.search.thesaurus import STOP_WORDS, all_words

TOOLS = {tool.key: tool for tool in read_tools()}
PROMPTS = read_prompts()


@cache
def stem(word):
    """As SQLite's Porter stemmer does, which the search uses too."""
    with closing(connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE text USING fts5(word, tokenize='porter unicode61')")
        database.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(text, row)")
        database.execute("INSERT INTO text VALUES (?)", (word,))
        return database.execute("SELECT term FROM stem").fetchone()[0]


def stems(*texts):
    return {stem(word) for text in texts for word in all_words(text) if word not in STOP_WORDS}


def test_there_are_enough_tools_servers_and_prompts():
    assert len(TOOLS) == len(read_tools()) >= 100
    assert len({tool.server for tool in TOOLS.values()}) >= 15
    assert len({prompt.prompt for prompt in PROMPTS}) == len(PROMPTS) >= 150
    assert sum(prompt.kind == "paraphrase" for prompt in PROMPTS) >= len(PROMPTS) / 2


def test_every_tool_is_asked_for_and_every_prompt_asks_for_a_tool():
    assert {prompt.tool for prompt in PROMPTS} == TOOLS.keys()


def test_either_half_has_as_many_of_each_kind():
    for kind in ("direct", "paraphrase"):
        halves = [prompt.half for prompt in PROMPTS if prompt.kind == kind]
        assert abs(halves.count("development") - halves.count("held-out")) <= 1


@pytest.mark.parametrize(
    "prompt", [prompt for prompt in PROMPTS if prompt.kind == "paraphrase"], ids=lambda p: p.prompt
)
def test_a_paraphrase_shares_no_content_word_with_its_tool(prompt):
    for tool in (TOOLS[key] for key in prompt.tools):
        parameters = [f"{name} {about['description']}" for name, about in tool.schema["properties"].items()]
        assert not stems(prompt.prompt) & stems(tool.server, tool.name, tool.description, *parameters)


def test_there_are_ten_thousand_distractors_always_the_same():
    distractors = make_distractors()
    assert len({tool.key for tool in distractors}) == 10_000
    assert distractors == make_distractors()


def test_no_thing_of_a_distractor_is_in_the_name_of_a_right_tool():
    names = stems(*(tool.name for tool in TOOLS.values()))
    things = {thing for things in read_trades().values() for thing in things}
    assert not [thing for thing in things if stems(thing) & names]
