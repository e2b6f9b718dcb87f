"""Redaction of secrets in shown text. `tests/mcp/test_definition.py` has the table of the rule."""

import pytest

from dragoman.text.secret import HIDDEN, SecretHider, bare_address, is_secret_name


def test_every_occurrence_of_a_secret_is_redacted():
    hider = SecretHider(["passw0rd", "passw0rd-12"])
    assert hider.clean("passw0rd-12, passw0rd and passw0rd") == f"{HIDDEN}, {HIDDEN} and {HIDDEN}"


def test_ordinary_value_is_not_redacted():
    ordinary = ["1", "", "abc-1", "postgres", "read-only", "application/json", "2026-01-01", "Ada Lovelace"]
    assert [word for word in ordinary if SecretHider([word]).clean(word) != word] == []


def test_secret_names_are_recognised_by_whole_words():
    secret = "OPENAI_API_KEY KEYS github_token DB_PASSWORD AWS_CREDENTIALS PGPASS X-Api-Key exaApiKey apikey BASIC_AUTH"
    other = "PATH HOME KEYBOARD LANG GIT_AUTHOR_NAME PWD SSH_AUTH_SOCK TOKEN_FILE AWS_ACCESS_KEY_ID COMPASS MONKEY"
    assert [name for name in secret.split() if not is_secret_name(name)] == []
    assert [name for name in other.split() if is_secret_name(name)] == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host:8080/path?key=1#part", "https://host:8080/path"),
        ("http://[::1]/mcp", "http://[::1]/mcp"),
        ("http://[broken", "an address that cannot be read"),
    ],
)
def test_address_is_shown_without_its_secret_parts(url, shown):
    assert bare_address(url) == shown
