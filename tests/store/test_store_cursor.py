import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidCursorError
from dragoman.store.store import decode_cursor, encode_cursor

ID = "0b7e4f7a-1c2d-4e3f-8a9b-0123456789ab"
CURSOR = encode_cursor(1_763_240_000_000, ID, "/work")


@given(st.integers(0, 2**62), st.none() | st.text(st.characters(exclude_categories=["Cs"])))
def test_a_cursor_decodes_to_its_place(updated_ms, cwd):
    assert decode_cursor(encode_cursor(updated_ms, ID, cwd), cwd) == (updated_ms, ID)


def test_a_cursor_is_only_valid_for_its_list():
    for cwd in (None, "", "/work/other"):
        with pytest.raises(InvalidCursorError, match="another list"):
            decode_cursor(CURSOR, cwd)
    for archived in ("include", "only"):
        with pytest.raises(InvalidCursorError, match="another list"):
            decode_cursor(CURSOR, "/work", archived)


def test_a_cursor_of_another_version_is_refused():
    text = base64.urlsafe_b64decode(CURSOR + "=" * (-len(CURSOR) % 4))
    other = base64.urlsafe_b64encode(b"2" + text[1:]).decode().rstrip("=")
    with pytest.raises(InvalidCursorError, match="another version"):
        decode_cursor(other, "/work")


def test_a_cursor_changed_at_any_place_is_refused():
    refused = 0
    for at in range(len(CURSOR)):
        for letter in "Aa0_-=!é":
            changed = CURSOR[:at] + letter + CURSOR[at + 1 :]
            try:
                assert decode_cursor(changed, "/work") == (1_763_240_000_000, ID)  # only spare bits were changed
            except InvalidCursorError:
                refused += 1
    assert refused > 7 * len(CURSOR)


@given(st.text())
def test_any_text_is_a_valid_cursor_or_refused(text):
    with pytest.raises(InvalidCursorError):
        decode_cursor(text, "/work")
