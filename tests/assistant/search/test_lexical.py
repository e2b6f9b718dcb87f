import pytest

from dragoman.assistant.search.item import Passage
from dragoman.assistant.search.lexical import LexicalIndex


@pytest.fixture
def lexical():
    return LexicalIndex()


def fill(lexical, *texts):
    lexical.replace([Passage(text) for text in texts])


def test_text_with_every_word_covers_the_query(lexical):
    fill(lexical, "list files", "play songs")
    assert lexical.cover("list the files") == {0: pytest.approx(1)}


def test_other_forms_of_a_word_are_found(lexical):
    fill(lexical, "lists branches", "merged")
    assert set(lexical.cover("listing a branch")) == {0}
    assert set(lexical.cover("merges")) == {1}


def test_rare_word_weighs_more_than_a_common_one(lexical):
    fill(lexical, "list commits", "list branches", "list files", "show weather")
    scores = lexical.cover("list weather")
    assert scores[3] > scores[0] == scores[1] == scores[2] > 0


def test_word_in_all_of_few_texts_still_counts(lexical):
    fill(lexical, "list files")
    assert lexical.cover("list files")[0] == pytest.approx(1)


def test_word_in_no_text_lowers_the_score(lexical):
    fill(lexical, "list files", "play songs")
    assert 0 < lexical.cover("list files tomorrow")[0] < lexical.cover("list files")[0]


def test_long_text_scores_less_for_the_same_words(lexical):
    fill(lexical, "list files", f"list files {'and so on ' * 30}")
    scores = lexical.cover("list files")
    assert scores[0] > scores[1] > 0


def test_names_in_any_case_are_found_by_their_words(lexical):
    fill(lexical, "readTextFile", "play_song", "stop")
    assert set(lexical.cover("text")) == {0}
    assert set(lexical.cover("song")) == {1}


def test_replaced_texts_are_gone(lexical):
    fill(lexical, "list files")
    fill(lexical, "play songs")
    assert lexical.cover("files") == {}
    assert set(lexical.cover("songs")) == {0}


def test_no_query_breaks_the_search(lexical):
    fill(lexical, "list files")
    for query in ("", "the", '"', 'files" OR "x', "files AND (", "NEAR(files)", "a*b^c:d", "\x00files", "日本語"):
        assert all(0 <= score <= 1 for score in lexical.cover(query).values())


def test_empty_index_finds_nothing(lexical):
    fill(lexical)
    assert lexical.cover("files") == {}
    fill(lexical, "")
    assert lexical.cover("files") == {}


def test_synonyms_are_found(lexical):
    fill(lexical, "git blame", "weather forecast", "play songs")
    assert set(lexical.cover("who wrote that?")) == {0}
    assert set(lexical.cover("do I need an umbrella?")) == {1}


def test_repeated_term_counts_once(lexical):
    fill(lexical, "list files", "play songs")
    assert lexical.cover("files, files, the file and files") == lexical.cover("files")


def test_rarest_concept_of_the_text_counts(lexical):
    fill(lexical, "reserve a room", "reserve a table", "a novel")
    scores = lexical.cover("book")
    assert scores[2] > scores[0] == scores[1] > 0


def test_details_are_found_by_words_only(lexical):
    lexical.replace([Passage("go", "rain"), Passage("stay", "sea")])
    assert set(lexical.cover("rain")) == {0}
    assert set(lexical.cover("umbrella")) == set()
