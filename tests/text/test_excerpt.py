"""Long texts are shortened visibly."""

import pytest

from dragoman.text.excerpt import quote, shorten, shorten_middle


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abcde", "abcde"), ("abcdef", "abcd…")])
def test_long_text_is_shortened_with_an_ellipsis(text, shown):
    assert shorten(text, 5) == shown


def test_both_ends_are_kept_around_a_mark():
    assert shorten_middle("0123456789", 10) == "0123456789"
    assert shorten_middle("0123456789x", 9, "[…]") == "012[…]89x"
    assert shorten_middle("0123456789x", 11, "[…]") == "0123456789x"
    assert shorten_middle("0123456789xyz", 11, "[…]", beginning=0.25) == "01[…]789xyz"


def test_mark_longer_than_the_limit_is_all_that_remains():
    assert shorten_middle("0123456789", 2, "[…]") == "[…]"


def test_quotation_is_one_visible_line_that_cannot_end_early():
    assert quote('a "b"\nc', 20) == "\"a 'b' c\""
    assert quote("a`b\u202e", 20, "`") == "`a'b\\u202e`"
    assert quote("abcdef", 4) == '"abc…"'
