from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.guard.origin import normalize_host, normalize_origin
from tests.table import each_row


@each_row(
    ("text", "normal"),
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
def test_a_host_has_one_normal_form(text, normal):
    assert normalize_host(text) == normal


@each_row(
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
def test_invalid_host_has_no_normal_form(text):
    assert normalize_host(text) is None


@pytest.mark.parametrize(
    ("text", "normal"),
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
def test_an_origin_has_one_normal_form(text, normal):
    assert normalize_origin(text) == normal


@each_row(
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
def test_invalid_origin_has_no_normal_form(text):
    assert normalize_origin(text) is None


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
def test_normal_form_is_idempotent(text):
    for normalize in (normalize_host, normalize_origin):
        normal = normalize(text)
        if normal is not None:
            assert normalize(normal) == normal
            assert text.isascii()
            assert not set(text) & set(" @\\,?#%\t\r\n\0")


@given(st.tuples(PIECES, st.sampled_from(["http://localhost:8421", "HTTP://LOCALHOST:08421"]), PIECES).map("".join))
def test_accepted_origins_match_the_browsers_parsing(text):
    if normalize_origin(text) == "http://localhost:8421":
        parts = urlsplit(text)
        assert (parts.scheme, parts.hostname, parts.port) == ("http", "localhost", 8421)
        assert not (parts.path or parts.query or parts.fragment or parts.username)
