"""Text that counts as a mention, and text that does not."""

from dragoman.assistant.context.candidates import find_mentions, without_mentions
from tests.table import each_row


@each_row(
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
def test_mentions_are_found_in_ordinary_text(text, mentions):
    assert find_mentions(text) == mentions


@each_row(
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
def test_addresses_links_and_code_are_not_mentions(text):
    assert find_mentions(text) == []


def test_text_next_to_code_is_still_a_mention():
    assert find_mentions("`x` @rule:a `y` @rule:b ` @rule:c") == ["rule:a", "rule:b", "rule:c"]
    assert find_mentions("```\n@rule:a\n```\n@rule:b") == ["rule:b"]


def test_many_backticks_are_read_in_one_pass():
    backticks = " ".join("`" * length for length in range(1, 1500))  # no two runs have the same length
    assert find_mentions(f"{backticks} @rule:style") == ["rule:style"]


def test_mentions_are_not_part_of_the_search_query():
    assert without_mentions("as @rule:style says").split() == ["as", "says"]
