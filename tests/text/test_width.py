"""The width of a text in terminal columns."""

from dragoman.text.width import cells, cut


def test_wide_and_combining_characters_count_like_in_a_terminal():
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert cut("漢字漢字", 5) == "漢字…"
