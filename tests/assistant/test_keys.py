"""Keys are stored for their owner only, and no error reveals them."""

import fcntl
import os
import stat

import pytest

from dragoman.assistant.keys import MAX_KEY_LENGTH, InvalidKeyError, KeysFileError, KeyStore

KEY = "sk-canary-41c9d2"


@pytest.fixture
def keys(tmp_path):
    return KeyStore(tmp_path / "home")


def test_key_is_stored_by_provider(keys):
    keys.save("anthropic", KEY)
    assert KeyStore(keys.path.parent).find("anthropic") == KEY
    assert keys.find("openai") is None


def test_new_key_replaces_only_the_old_one(keys):
    keys.save("anthropic", "old")
    keys.save("openai", "other")
    keys.save("anthropic", KEY)
    assert (keys.find("anthropic"), keys.find("openai")) == (KEY, "other")


def test_only_the_owner_can_read_file_and_folder_with_any_umask(keys):
    before = os.umask(0)
    try:
        keys.save("anthropic", KEY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.path.parent.stat().st_mode) == 0o700


def test_nothing_else_is_left_in_the_folder(keys):
    keys.save("anthropic", KEY)
    keys.remove("anthropic")
    assert {path.name for path in keys.path.parent.iterdir()} == {"keys.json", "keys.lock"}


def test_removed_key_is_gone_and_the_others_stay(keys):
    keys.save("anthropic", KEY)
    keys.save("openai", "other")
    assert keys.remove("anthropic") is True
    assert KEY not in keys.path.read_text()
    assert keys.find("openai") == "other"


def test_removing_a_missing_key_changes_nothing(keys):
    assert keys.remove("anthropic") is False
    assert not keys.path.parent.exists()
    keys.save("openai", KEY)
    assert keys.remove("anthropic") is False
    assert keys.find("openai") == KEY


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "no key was given"),
        (f"{KEY}\nx", "one line"),
        (f"{KEY} x", "one line"),
        (f"{KEY}\x1b[0m", "one line"),
        (f"{KEY}é", "one line"),
        (KEY * MAX_KEY_LENGTH, "more than 8,192 characters"),
    ],
)
def test_invalid_key_is_refused_without_being_shown(keys, key, words):
    with pytest.raises(InvalidKeyError, match=words) as caught:
        keys.save("anthropic", key)
    assert KEY not in str(caught.value)
    assert not keys.path.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o610])
def test_file_accessible_to_others_is_refused(keys, mode):
    keys.save("anthropic", KEY)
    keys.path.chmod(mode)
    with pytest.raises(KeysFileError, match="other users may read or write it; run `chmod 600") as caught:
        keys.find("anthropic")
    assert KEY not in str(caught.value)


def test_link_is_refused_and_not_replaced(keys):
    keys.save("anthropic", KEY)
    elsewhere = keys.path.rename(keys.path.with_name("elsewhere.json"))
    keys.path.symlink_to(elsewhere)
    for use in (lambda: keys.find("anthropic"), lambda: keys.save("openai", "x"), lambda: keys.remove("anthropic")):
        with pytest.raises(KeysFileError, match="it is a link; remove it"):
            use()
    assert KEY in elsewhere.read_text()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_special_file_is_refused_at_once(keys, make):
    keys.path.parent.mkdir()
    make(keys.path, 0o600)
    with pytest.raises(KeysFileError, match="not a regular file"):
        keys.find("anthropic")


@pytest.mark.parametrize(
    "content",
    [f'{{"anthropic": "{KEY}"', f'["{KEY}"]', f'{{"anthropic": ["{KEY}"]}}', f'{{"{KEY}": 1}}', "", "[" * 100_000],
)
def test_damaged_file_is_refused_without_quoting_it(keys, content):
    keys.save("anthropic", "x")
    keys.path.write_text(content)
    with pytest.raises(KeysFileError, match="it is damaged; remove it") as caught:
        keys.find("anthropic")
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_damaged_file_is_not_overwritten(keys):
    keys.save("anthropic", KEY)
    keys.path.write_text(f"oops {KEY}")
    with pytest.raises(KeysFileError, match="damaged"):
        keys.save("openai", "x")
    assert keys.path.read_text() == f"oops {KEY}"


def test_binary_file_counts_as_damaged(keys):
    keys.save("anthropic", KEY)
    keys.path.write_bytes(b'{"anthropic": "\xff"}')
    with pytest.raises(KeysFileError, match="damaged"):
        keys.find("anthropic")


def test_home_that_is_not_a_directory_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KeysFileError, match="check that this user can read and write it"):
        KeyStore(tmp_path / "file").save("anthropic", KEY)


def test_two_writers_do_not_lose_a_key(keys, monkeypatch):
    monkeypatch.setattr("dragoman.files.private_file.LOCK_TIMEOUT_S", 0.0)
    keys.save("anthropic", KEY)
    descriptor = os.open(keys.path.with_suffix(".lock"), os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(KeysFileError, match="another process is writing them; try again"):
            keys.save("openai", "x")
        assert keys.find("anthropic") == KEY
    finally:
        os.close(descriptor)
    keys.save("openai", "x")
    assert (keys.find("anthropic"), keys.find("openai")) == (KEY, "x")
