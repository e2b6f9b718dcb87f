"""Foreign text made safe to show: for reading and on one line."""

import json
import sys
import unicodedata

import pytest

from dragoman.text import (
    TextCleaner,
    clean_text,
    drop_sequences,
    escape_json,
    is_visible,
    one_line,
    visible,
)
from tests.table import each_row

EVIL = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07red",
    "\x1b]8;;http://x\x1b\\red\x1b]8;;\x1b\\",
    "\x1bPq#0\x1b\\red",
    "\x9b31mred",
    "\x9d0;title\x9cred",
    "\x1b(0red\x1b(B",
    "\x1bcred",
    "r\x08e\x00d\x7f\u202e",
    "\u2066r\u200be\ufeffd\u2069\U000e0041",
]

VISIBLE_FORMATS = frozenset(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)))
"""Arabic, Syriac and Kaithi signs that enclose the following characters and are visible."""


@each_row("text", EVIL)
def test_clean_text_removes_sequences_and_hidden_characters(text):
    assert clean_text(text) == "red"


@each_row("text", EVIL)
def test_sequence_that_arrives_in_pieces_is_removed(text):
    cleaner = TextCleaner()
    assert "".join(cleaner.feed(character) for character in text) == "red"


def test_sequence_that_never_ends_is_dropped():
    cleaner = TextCleaner()
    assert cleaner.feed("\x1b]0;") == ""
    for _ in range(100):
        assert cleaner.feed("x" * 1000) == ""
    assert cleaner.feed("\nafter") == "\nafter"


def test_clean_text_keeps_tabs_and_normalises_line_ends():
    assert clean_text("a\tb\r\nc\u2028d\n") == "a\tb\nc\nd\n"
    cleaner = TextCleaner()
    assert "".join(map(cleaner.feed, ["a\r", "\nb\r\n", "c"])) == "a\nb\nc"


@pytest.mark.parametrize("text", ["👩🏽‍💻 ❤️‍🔥", "می‌خواهم", "क्‍ष", "漢字\U000e0100", "naïve — “quoted”"])
def test_words_and_emoji_of_every_script_are_kept(text):
    assert clean_text(text) == visible(text) == text
    assert is_visible(text)


def test_visible_escapes_invisible_characters():
    assert visible("rm \x1b[8m/\n\u202e\u200b\x9b\U000e0041") == r"rm \x1b[8m/\n\u202e\u200b\x9b\U000e0041"
    assert visible("a  b ") == "a  b "


def test_visible_keeps_lines_and_tabs_on_request():
    assert visible("if x:\n\trm\r\u202e", lines=True) == "if x:\n\trm" + r"\r\u202e"


@pytest.mark.parametrize("text", ["rm\u200d -rf", "a\u200c", "\u200da", "x\ufe0f", "é\ufe0f\ufe0f", "é\u200d\u200dé"])
def test_joiner_that_joins_nothing_is_escaped(text):
    assert "\\u" in visible(text)
    assert not is_visible(text)


def test_visible_escapes_every_control_format_and_separator_character():
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
    characters = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in kinds]
    passed = {character for character in characters if visible(character) == character}
    assert passed == {" ", *VISIBLE_FORMATS}


def test_clean_text_removes_every_control_and_format_character():
    kinds = {"Cc", "Cf", "Cs"}
    characters = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in kinds]
    left = {character for character in characters if clean_text(f"a{character}b") != "ab"}
    joining = set(map(chr, (0x200C, 0x200D, *range(0x13430, 0x13440))))
    assert left - joining - VISIBLE_FORMATS == {"\t", "\n", "\x1b", "\x9b"}  # the last two swallow the b
    assert "\x1b" not in clean_text("a\x1bb")


def test_name_is_folded_into_one_line_and_shortened():
    assert one_line("  two\n\u3000 words\u202e ") == r"two words\u202e"
    assert one_line("a" * 10, 5) == "aaaa…"
    assert one_line("a" * 5, 5) == "aaaaa"
    assert one_line(" " * 100 + "a", 5) == "…"
    assert one_line("\x1b" * 10_000_000, 9) == r"\x1b\x1b…"


def test_drop_sequences_keeps_everything_else():
    assert drop_sequences("\x1b[1ma\u202e\x1b[0m\r\n\x00\x1b]unended") == "a\u202e\n\x00unended"


def test_escaped_json_has_the_same_value_and_no_hidden_characters():
    value = {"a\u202e": "\x9b\x7f\U000e0041 é\u00ad\n"}
    document = escape_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(document) == value
    assert document == '{"a\\u202e": "\\u009b\\u007f\\udb40\\udc41 é\\u00ad\\n"}'
    assert json.loads(escape_json('"\ud800"')) == "\ud800"


def test_empty_text_is_not_visible():
    assert not is_visible("")
    assert (visible(""), one_line(""), clean_text("")) == ("", "", "")
