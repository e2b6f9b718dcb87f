"""The benchmark data matches the description in its report."""

from contextlib import closing
from functools import cache
from sqlite3 import connect

from bench.distractors import make_distractors, read_trades
from bench.search import read_prompts, read_tools
from dragoman.assistant.search.thesaurus import STOP_WORDS, all_words
from tests.table import each_row

TOOLS = {tool.key: tool for tool in read_tools()}
PROMPTS = read_prompts()


@cache
def stem(word):
    """Stem a word with SQLite's Porter stemmer, which the search also uses."""
    with closing(connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE text USING fts5(word, tokenize='porter unicode61')")
        database.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(text, row)")
        database.execute("INSERT INTO text VALUES (?)", (word,))
        return database.execute("SELECT term FROM stem").fetchone()[0]


def stems(*texts):
    return {stem(word) for text in texts for word in all_words(text) if word not in STOP_WORDS}


def test_data_has_enough_tools_servers_and_prompts():
    assert len(TOOLS) == len(read_tools()) >= 100
    assert len({tool.server for tool in TOOLS.values()}) >= 15
    assert len({prompt.prompt for prompt in PROMPTS}) == len(PROMPTS) >= 150
    assert sum(prompt.kind == "paraphrase" for prompt in PROMPTS) >= len(PROMPTS) / 2


def test_every_tool_and_every_prompt_has_a_match():
    assert {prompt.tool for prompt in PROMPTS} == TOOLS.keys()


def test_both_halves_have_as_many_of_each_kind():
    for kind in ("direct", "paraphrase"):
        halves = [prompt.half for prompt in PROMPTS if prompt.kind == kind]
        assert abs(halves.count("development") - halves.count("held-out")) <= 1


@each_row("prompt", [prompt for prompt in PROMPTS if prompt.kind == "paraphrase"])
def test_paraphrase_shares_no_content_word_with_its_tool(prompt):
    for tool in (TOOLS[key] for key in prompt.tools):
        parameters = [f"{name} {about['description']}" for name, about in tool.schema["properties"].items()]
        assert not stems(prompt.prompt) & stems(tool.server, tool.name, tool.description, *parameters)


def test_ten_thousand_distractors_are_always_the_same():
    distractors = make_distractors()
    assert len({tool.key for tool in distractors}) == 10_000
    assert distractors == make_distractors()


def test_distractor_nouns_are_in_no_right_tool_name():
    names = stems(*(tool.name for tool in TOOLS.values()))
    things = {thing for things in read_trades().values() for thing in things}
    assert not [thing for thing in things if stems(thing) & names]
