from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.guard.authority import spell_host, spell_origin


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("localhost:8421", "localhost:8421"),
        ("LocalHost:8421", "localhost:8421"),
        ("127.0.0.1:08421", "127.0.0.1:8421"),
        ("[::1]:8421", "[::1]:8421"),
        ("[0:0:0:0:0:0:0:1]:8421", "[::1]:8421"),
        ("[2001:DB8::A]:8421", "[2001:db8::a]:8421"),
        ("agents.example.org", "agents.example.org"),
        ("my_box-2:1", "my_box-2:1"),
    ],
)
def test_a_host_has_one_spelling(text, spelt):
    assert spell_host(text) == spelt


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":8421",
        "localhost:",
        "localhost:0",
        "localhost:65536",
        "localhost:+8421",
        "localhost:8421:8421",
        "localhost.:8421",
        ".localhost:8421",
        "localhost :8421",
        "localhost:8421 ",
        "localhost:8421\n",
        "localhost:8421,evil.example",
        "localhost:8421/",
        "user@localhost:8421",
        "localhost:8421@evil.example",
        "localhost\\evil.example",
        "localhost%00:8421",
        "\u217cocalhost:8421",
        "localhost:\uff18421",
        "::1:8421",
        "[::1",
        "[::1%lo]:8421",
        "[]:8421",
        "[1.2.3.4]:8421",
        "*",
        "x" * 300,
    ],
)
def test_what_is_no_plain_host_has_no_spelling(text):
    assert spell_host(text) is None


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("http://localhost:8421", "http://localhost:8421"),
        ("HTTP://LOCALHOST:8421", "http://localhost:8421"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost", "http://localhost"),
        ("https://localhost:443", "https://localhost"),
        ("http://localhost:443", "http://localhost:443"),
        ("http://[0:0::1]:8421", "http://[::1]:8421"),
    ],
)
def test_an_origin_has_one_spelling(text, spelt):
    assert spell_origin(text) == spelt


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "",
        "*",
        "localhost:8421",
        "//localhost:8421",
        "http:localhost:8421",
        "http:///localhost:8421",
        "http://localhost:8421/",
        "http://localhost:8421/path",
        "http://localhost:8421?x",
        "http://localhost:8421#x",
        "http://user@localhost:8421",
        "http://localhost:8421@evil.example",
        "http://localhost:8421 http://evil.example",
        "http://localhost:8421, http://localhost:8421",
        "http://localhost:8421\t",
        "file://",
        "chrome-extension://abcdef",
        "ws://localhost:8421",
    ],
)
def test_what_is_no_plain_origin_has_no_spelling(text):
    assert spell_origin(text) is None


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["http", "https", "://", "localhost", "127.0.0.1", "[::1]", ":", "8421", "80", "@", ".", "/", "null"]
        ),
        st.text(max_size=3),
    ),
    max_size=8,
).map("".join)


@given(PIECES)
def test_a_spelling_is_its_own_and_hides_nothing(text):
    for spell in (spell_host, spell_origin):
        spelt = spell(text)
        if spelt is not None:
            assert spell(spelt) == spelt
            assert text.isascii()
            assert not set(text) & set(" @\\,?#%\t\r\n\0")


@given(st.tuples(PIECES, st.sampled_from(["http://localhost:8421", "HTTP://LOCALHOST:08421"]), PIECES).map("".join))
def test_only_what_a_browser_reads_the_same_way_is_one_of_ours(text):
    if spell_origin(text) == "http://localhost:8421":
        parts = urlsplit(text)
        assert (parts.scheme, parts.hostname, parts.port) == ("http", "localhost", 8421)
        assert not (parts.path or parts.query or parts.fragment or parts.username)
