import sys
from importlib import resources
from subprocess import run

import pytest

from dragoman.assistant.search.thesaurus import STOP_WORDS, Thesaurus, all_words, load_thesaurus, read_groups, stem
from tests.table import each_row

GROUPS = read_groups()
OPPOSITES = [
    ("create", "delete"),
    ("start", "stop"),
    ("turn on", "turn off"),
    ("enable", "disable"),
    ("turn on device", "turn off device"),
    ("lock", "unlock"),
    ("increase", "decrease"),
    ("connect", "disconnect"),
    ("encrypt", "decrypt"),
    ("compress", "decompress"),
    ("approve", "reject"),
    ("open", "close"),
    ("pause", "resume"),
    ("top", "bottom"),
    ("upload", "download"),
    ("merge", "split"),
    ("login", "logout"),
    ("allow", "block"),
]


def key(term):
    return tuple(stem(word) for word in all_words(term))


def headed(head):
    """Return the terms of all groups that begin with this one."""
    return {key(term) for group in GROUPS if group[0] == head for term in group}


def share(one, other, groups=None):
    """Return whether two texts share a concept."""
    thesaurus = Thesaurus(groups) if groups else load_thesaurus()
    asked = {concept for term in thesaurus.read(all_words(one)) for concept in term.concepts}
    return bool(asked & thesaurus.concepts(all_words(other)))


def test_thesaurus_is_large():
    assert len(GROUPS) >= 600


def test_every_group_has_different_terms():
    for group in GROUPS:
        assert len(group) >= 2
        assert len(set(group)) == len(group), group


def test_every_term_is_lower_case_and_has_words():
    for term in (term for group in GROUPS for term in group):
        assert term == term.lower().strip()
        assert key(term), term


def test_no_term_is_only_a_stop_word():
    assert not {term for group in GROUPS for term in group} & STOP_WORDS


@each_row(("one", "other"), OPPOSITES)
def test_opposite_terms_share_no_concept(one, other):
    assert headed(one)
    assert headed(other)
    assert not headed(one) & headed(other)


def test_no_two_groups_are_equal():
    assert len({frozenset(map(key, group)) for group in GROUPS}) == len(GROUPS)


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("who wrote this line?", "git blame"),
        ("is it going to rain?", "weather forecast"),
        ("we are out of paper", "check stock"),
        ("what does it cost?", "get price"),
        ("get rid of the old bills", "delete invoice"),
        ("merge requests", "list pull requests"),
    ],
)
def test_colloquial_phrases_match_tool_names(said, tool):
    assert share(said, tool)


def test_phrase_is_found_in_any_form_of_its_words():
    groups = [["pull request", "patch"]]
    for text in ("pull request", "Pull Requests", "pulling requested"):
        assert share(text, "patches", groups)
    for text in ("pull", "request a pull", "pull the request"):
        assert not share(text, "patches", groups)


def test_query_has_the_longest_phrase_and_the_phrases_in_it():
    groups = [["download", "pull"], ["pull request", "patch"], ["open a pull request", "propose"]]
    assert share("open a pull request", "propose", groups)
    assert share("open a pull request", "patch", groups)
    assert not share("open a pull request", "download", groups)


def test_text_has_the_concepts_of_all_its_terms():
    groups = [["create", "new"], ["create page", "document this"]]
    assert share("new", "create page", groups)
    assert share("document this", "create page", groups)


def test_word_may_have_several_concepts():
    groups = [["book", "reserve"], ["book", "novel"]]
    assert share("book", "reserve", groups)
    assert share("book", "novel", groups)
    assert not share("reserve", "novel", groups)


def test_unknown_words_are_kept():
    terms = Thesaurus([["dog", "hound"]]).read(["Xylo", "dog"])
    assert [(list(term.words), bool(term.concepts)) for term in terms] == [(["Xylo"], False), (["dog"], True)]


def test_thesaurus_is_part_of_the_package():
    assert resources.files("dragoman.assistant.search").joinpath("thesaurus.txt").is_file()


def test_thesaurus_is_read_once_on_first_use():
    program = (
        "import dragoman.assistant.search, dragoman.assistant.search.lexical as lexical\n"
        "from dragoman.assistant.search.thesaurus import load_thesaurus\n"
        "assert load_thesaurus.cache_info().currsize == 0\n"
        "lexical.LexicalIndex(), lexical.LexicalIndex()\n"
        "print(load_thesaurus.cache_info())"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "CacheInfo(hits=1, misses=1, maxsize=None, currsize=1)\n"
