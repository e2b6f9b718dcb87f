import pytest

from dragoman.assistant.search.item import Passage
from dragoman.assistant.search.lexical import Fts5, LexicalIndex, Postings


@pytest.fixture(params=[Fts5, Postings])
def lexical(request):
    return LexicalIndex(request.param())


def fill(lexical, *texts):
    lexical.replace([Passage(text) for text in texts])


def test_a_text_that_has_every_word_covers_the_query(lexical):
    fill(lexical, "list files", "play songs")
    assert lexical.cover("list the files") == {0: pytest.approx(1)}


def test_other_forms_of_a_word_are_found(lexical):
    fill(lexical, "lists branches", "merged")
    assert set(lexical.cover("listing a branch")) == {0}
    assert set(lexical.cover("merges")) == {1}


def test_a_rare_word_weighs_more_than_one_that_most_texts_have(lexical):
    fill(lexical, "list commits", "list branches", "list files", "show weather")
    scores = lexical.cover("list weather")
    assert scores[3] > scores[0] == scores[1] == scores[2] > 0


def test_a_word_that_all_of_few_texts_have_still_counts(lexical):
    fill(lexical, "list files")
    assert lexical.cover("list files")[0] == pytest.approx(1)


def test_a_word_that_no_text_has_lowers_the_score(lexical):
    fill(lexical, "list files", "play songs")
    assert 0 < lexical.cover("list files tomorrow")[0] < lexical.cover("list files")[0]


def test_a_long_text_gets_less_for_the_same_words(lexical):
    fill(lexical, "list files", f"list files {'and so on ' * 30}")
    scores = lexical.cover("list files")
    assert scores[0] > scores[1] > 0


def test_names_in_any_case_are_found_by_their_words(lexical):
    fill(lexical, "readTextFile", "play_song", "stop")
    assert set(lexical.cover("text")) == {0}
    assert set(lexical.cover("song")) == {1}


def test_what_was_there_before_is_gone(lexical):
    fill(lexical, "list files")
    fill(lexical, "play songs")
    assert lexical.cover("files") == {}
    assert set(lexical.cover("songs")) == {0}


def test_no_query_breaks_the_search(lexical):
    fill(lexical, "list files")
    for query in ("", "the", '"', 'files" OR "x', "files AND (", "NEAR(files)", "a*b^c:d", "\x00files", "日本語"):
        assert all(0 <= score <= 1 for score in lexical.cover(query).values())


def test_nothing_is_found_where_there_is_nothing(lexical):
    fill(lexical)
    assert lexical.cover("files") == {}
    fill(lexical, "")
    assert lexical.cover("files") == {}


def test_what_stands_for_the_same_is_found(lexical):
    fill(lexical, "git blame", "weather forecast", "play songs")
    assert set(lexical.cover("who wrote that?")) == {0}
    assert set(lexical.cover("do I need an umbrella?")) == {1}


def test_a_term_said_twice_counts_once(lexical):
    fill(lexical, "list files", "play songs")
    assert lexical.cover("files, files, the file and files") == lexical.cover("files")


def test_of_several_meanings_the_rarest_that_a_text_has_counts(lexical):
    fill(lexical, "reserve a room", "reserve a table", "a novel")
    scores = lexical.cover("book")
    assert scores[2] > scores[0] == scores[1] > 0


def test_details_are_found_by_their_words_only(lexical):
    lexical.replace([Passage("go", "rain"), Passage("stay", "sea")])
    assert set(lexical.cover("rain")) == {0}
    assert set(lexical.cover("umbrella")) == set()
