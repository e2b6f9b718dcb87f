import sys
from importlib import resources
from subprocess import run

import pytest

from dragoman.assistant.search.thesaurus import STOP_WORDS, Thesaurus, all_words, load_thesaurus, read_groups, stem

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
    """The terms of all groups that begin with this one."""
    return {key(term) for group in GROUPS if group[0] == head for term in group}


def share(one, other, groups=None):
    """Whether two texts have a concept in common."""
    thesaurus = Thesaurus(groups) if groups else load_thesaurus()
    asked = {concept for term in thesaurus.read(all_words(one)) for concept in term.concepts}
    return bool(asked & thesaurus.concepts(all_words(other)))


def test_the_thesaurus_is_large():
    assert len(GROUPS) >= 600


def test_every_group_joins_different_terms():
    for group in GROUPS:
        assert len(group) >= 2
        assert len(set(group)) == len(group), group


def test_every_term_is_lower_case_and_has_words():
    for term in (term for group in GROUPS for term in group):
        assert term == term.lower().strip()
        assert key(term), term


def test_no_word_that_says_nothing_stands_alone():
    assert not {term for group in GROUPS for term in group} & STOP_WORDS


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_no_term_stands_for_a_deed_and_its_opposite(one, other):
    assert headed(one)
    assert headed(other)
    assert not headed(one) & headed(other)


def test_no_two_groups_are_the_same():
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
def test_what_people_say_stands_for_what_tools_are_called(said, tool):
    assert share(said, tool)


def test_a_phrase_is_found_in_any_form_of_its_words():
    groups = [["pull request", "patch"]]
    for text in ("pull request", "Pull Requests", "pulling requested"):
        assert share(text, "patches", groups)
    for text in ("pull", "request a pull", "pull the request"):
        assert not share(text, "patches", groups)


def test_a_query_means_the_longest_phrase_and_the_phrases_within_it():
    groups = [["download", "pull"], ["pull request", "patch"], ["open a pull request", "propose"]]
    assert share("open a pull request", "propose", groups)
    assert share("open a pull request", "patch", groups)
    assert not share("open a pull request", "download", groups)


def test_a_text_has_the_concepts_of_all_that_stands_in_it():
    groups = [["create", "new"], ["create page", "document this"]]
    assert share("new", "create page", groups)
    assert share("document this", "create page", groups)


def test_a_word_may_stand_for_several_things():
    groups = [["book", "reserve"], ["book", "novel"]]
    assert share("book", "reserve", groups)
    assert share("book", "novel", groups)
    assert not share("reserve", "novel", groups)


def test_words_that_it_does_not_have_are_kept_as_they_are():
    terms = Thesaurus([["dog", "hound"]]).read(["Xylo", "dog"])
    assert [(list(term.words), bool(term.concepts)) for term in terms] == [(["Xylo"], False), (["dog"], True)]


def test_it_is_part_of_the_package():
    assert resources.files("dragoman.assistant.search").joinpath("thesaurus.txt").is_file()


def test_it_is_read_once_and_not_before_it_is_needed():
    program = (
        "import dragoman.assistant.search, dragoman.assistant.search.lexical as lexical\n"
        "from dragoman.assistant.search.thesaurus import load_thesaurus\n"
        "assert load_thesaurus.cache_info().currsize == 0\n"
        "lexical.LexicalIndex(), lexical.LexicalIndex()\n"
        "print(load_thesaurus.cache_info())"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "CacheInfo(hits=1, misses=1, maxsize=None, currsize=1)\n"
