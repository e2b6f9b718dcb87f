"""Secrets are hidden in texts that are shown."""

import pytest

from dragoman.text.secret import HIDDEN, SecretHider, bare_address, is_secret_name


def test_every_occurrence_is_hidden_and_a_secret_within_another_leaves_no_rest():
    hider = SecretHider(["pass", "password1"])
    assert hider.clean("password1, pass and pass") == f"{HIDDEN}, {HIDDEN} and {HIDDEN}"


def test_a_value_too_short_to_keep_anybody_out_garbles_no_text():
    assert SecretHider(["1", ""]).clean("1 error") == "1 error"
    assert SecretHider(["abcde"], shortest=6).clean("abcde") == "abcde"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "KEYS", "github_token", "DB_PASSWORD", "AWS_CREDENTIALS"])
def test_a_variable_is_secret_by_its_name(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "KEYBOARD", "LANG"])
def test_other_variables_are_not(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host:8080/path?key=1#part", "https://host:8080/path"),
        ("http://[::1]/mcp", "http://[::1]/mcp"),
        ("http://[broken", "an address that cannot be read"),
    ],
)
def test_an_address_is_shown_without_the_parts_that_may_be_secret(url, shown):
    assert bare_address(url) == shown
