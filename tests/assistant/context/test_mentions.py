"""What counts as a mention, and what does not."""

import pytest

from dragoman.assistant.context.candidates import find_mentions, leave_out_mentions


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("@rule:style", ["rule:style"]),
        ("Write it, as @rule:style says.", ["rule:style"]),
        ("(see @ref:api.v2), and **@rule:a-b**!", ["ref:api.v2", "rule:a-b"]),
        ("@ref:api, @ref:api and @ref:other", ["ref:api", "ref:other"]),
        ("@Rule:Style", ["rule:Style"]),
        ("使って@rule:style", ["rule:style"]),
        ("@ref:größe.", ["ref:größe"]),
        ("-@rule:style\n-@ref:api", ["rule:style", "ref:api"]),
    ],
)
def test_a_mention_is_found_where_people_write_it(text, mentions):
    assert find_mentions(text) == mentions


@pytest.mark.parametrize(
    "text",
    [
        "",
        "write to me@rule:style",
        "a_@rule:style",
        "https://example.org/@rule:style",
        "@@rule:style",
        "@rule: style",
        "@rule:",
        "@rules:style",
        "rule:style",
        "@tool:style",
        "`@rule:style`",
        "say ``@rule:a ` @rule:b`` there",
        "```\n@rule:style\n```",
        "~~~text\n@rule:style\n~~~",
        "a fence that stays open:\n```python\n@rule:style",
        "```\n``\n@rule:style\n````",
    ],
)
def test_an_address_a_link_or_code_is_no_mention(text):
    assert find_mentions(text) == []


def test_what_stands_beside_code_is_a_mention_still():
    assert find_mentions("`x` @rule:a `y` @rule:b ` @rule:c") == ["rule:a", "rule:b", "rule:c"]
    assert find_mentions("```\n@rule:a\n```\n@rule:b") == ["rule:b"]


def test_a_prompt_full_of_backticks_is_read_in_one_go():
    backticks = " ".join("`" * length for length in range(1, 1500))  # no two runs close each other
    assert find_mentions(f"{backticks} @rule:style") == ["rule:style"]


def test_mentions_are_not_part_of_what_is_looked_for():
    assert leave_out_mentions("as @rule:style says").split() == ["as", "says"]
