"""How wide a text is in a terminal."""

from dragoman.text.width import cells, cut


def test_wide_and_combining_characters_are_counted_as_a_terminal_does():
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert cut("漢字漢字", 5) == "漢字…"
