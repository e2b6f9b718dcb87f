import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.store.naming import encode_cwd, is_same_directory, is_session_id, normalise, session_id_of
from tests.table import each_row

ID = "0b7e4f7a-1c2d-4e3f-8a9b-0123456789ab"


@each_row(
    ("cwd", "name"),
    [
        ("/Users/me/code", "-Users-me-code"),
        ("C:\\Users\\me", "C-Users-me"),
        ("C:/Users/me", "C-Users-me"),
        ("c:\\", "c-"),
        ("\\\\server\\share", "--server-share"),
        ("/", "-"),
        ("/a b/.c_d/é.x", "-a b-.c_d-é.x"),
        ("/with:colon", "-with:colon"),
        ("/back\\slash", "-back\\slash"),
        ("/a-b", "-a-b"),
        ("/" + "x" * 199, "-" + "x" * 199),
    ],
)
def test_only_the_separators_of_a_cwd_are_encoded(cwd, name):
    assert encode_cwd(cwd) == name


@pytest.mark.parametrize("letter", ["x", "é", "🐎"])
def test_a_long_cwd_is_cut_between_characters_and_marked_with_a_hash(letter):
    one, two = "/" + letter * 200, "/" + letter * 200 + "/other"
    names = encode_cwd(one), encode_cwd(two)
    assert names[0] != names[1]
    for name in names:
        assert 180 < len(os.fsencode(name)) <= 200
        assert name.startswith("-" + letter * 40)
        assert set(name[-16:]) <= set("0123456789abcdef")


@pytest.mark.parametrize("cwd", ["", ".", "..", "relative/path", "~/code", "C:relative"])
def test_a_relative_cwd_has_no_name(cwd):
    with pytest.raises(ValueError, match="absolute"):
        encode_cwd(cwd)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_an_encoded_name_is_one_valid_path_component(rest):
    name = encode_cwd("/" + rest)
    assert "/" not in name
    assert name not in ("", ".", "..")
    assert len(os.fsencode(name)) <= 200


@pytest.mark.parametrize(
    ("one", "other"),
    [("/a/b", "/a/b/"), ("/a/b", "/a/./c/../b"), ("/a", "//a"), ("/a", "///a"), ("C:\\a", "C:/a/")],
)
def test_directories_equal_after_normalising_are_the_same(one, other):
    assert is_same_directory(one, other)


@pytest.mark.parametrize(("one", "other"), [("/a/b", "/a/B"), ("/a", "/a/b"), ("/a-b", "/a/b")])
def test_different_directories_are_not_the_same(one, other):
    assert not is_same_directory(one, other)


def test_symbolic_links_are_not_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert normalise(str(tmp_path / "link")) == str(tmp_path / "link")


@pytest.mark.parametrize("text", ["", "x", "../" + ID, ID + "/..", ID.upper(), ID + "\n", ID.replace("-", "")])
def test_only_a_uuid_is_a_session_id(text):
    assert is_session_id(ID)
    assert not is_session_id(text)


@pytest.mark.parametrize(
    "name", [f"session-{ID}.damaged-1.jsonl", f"session-{ID}.jsonl.new", f"session-{ID}.lock", f"xsession-{ID}.jsonl"]
)
def test_only_logs_are_listed(name):
    assert session_id_of(f"session-{ID}.jsonl") == ID
    assert session_id_of(name) is None
