import multiprocessing
import os
import stat

import pytest

from dragoman.bridge.guard import Token, TokenFileError, keep_token, new_token


def test_tokens_are_long_and_unique():
    values = {new_token().reveal() for _ in range(100)}
    assert len(values) == 100
    assert min(map(len, values)) * 6 >= 192


def test_token_file_is_private(tmp_path):
    keep_token(tmp_path / "bridge")
    assert stat.S_IMODE((tmp_path / "bridge" / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "bridge").stat().st_mode) == 0o700


def test_umask_does_not_widen_the_token_file(tmp_path):
    before = os.umask(0)
    try:
        keep_token(tmp_path / "bridge")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "bridge" / "token").stat().st_mode) == 0o600


def test_token_is_kept(tmp_path):
    assert keep_token(tmp_path).reveal() == keep_token(tmp_path).reveal()


def test_removed_token_is_replaced(tmp_path):
    first = keep_token(tmp_path).reveal()
    (tmp_path / "token").unlink()
    assert keep_token(tmp_path).reveal() != first


def _keep(directory, queue):
    queue.put(keep_token(directory).reveal())


def test_concurrent_starts_share_one_token(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    starters = [context.Process(target=_keep, args=(tmp_path, queue)) for _ in range(3)]
    for starter in starters:
        starter.start()
    values = {queue.get(timeout=30) for _ in starters}
    for starter in starters:
        starter.join(30)
    assert values == {keep_token(tmp_path).reveal()}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_exposed_token_file_is_refused_with_help(tmp_path, mode):
    value = keep_token(tmp_path).reveal()
    (tmp_path / "token").chmod(mode)
    with pytest.raises(TokenFileError, match=r"other users may read or write it.*chmod 600") as caught:
        keep_token(tmp_path)
    assert value not in str(caught.value)


def test_symlinked_token_file_is_refused(tmp_path):
    value = keep_token(tmp_path / "elsewhere").reveal()
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere" / "token")
    with pytest.raises(TokenFileError, match="it is a link") as caught:
        keep_token(tmp_path)
    assert value not in str(caught.value)


def test_hard_linked_token_file_is_refused(tmp_path):
    value = keep_token(tmp_path).reveal()
    (tmp_path / "second").hardlink_to(tmp_path / "token")
    with pytest.raises(TokenFileError, match=r"it has another hard link.*remove it") as caught:
        keep_token(tmp_path)
    assert value not in str(caught.value)


def test_pipe_as_token_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "token", 0o600)
    with pytest.raises(TokenFileError, match="not a regular file"):
        keep_token(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"short", b"x" * 31, b"a token with spaces in it, and long enough", b"\xff" * 64]
)
def test_damaged_token_file_is_refused_without_its_content(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(TokenFileError, match="it is damaged; remove it") as caught:
        keep_token(tmp_path)
    assert "spaces in it" not in str(caught.value)


def test_unusable_directory_raises_a_clear_error(tmp_path):
    (tmp_path / "bridge").write_text("in the way")
    with pytest.raises(TokenFileError, match="check that this user can read and write"):
        keep_token(tmp_path / "bridge")


def test_token_matches_only_itself():
    token = new_token()
    assert token.matches(token.reveal())
    assert not any(
        map(token.matches, ["", token.reveal()[:-1], token.reveal() + "x", token.reveal().swapcase(), "é\udcff"])
    )


def test_token_repr_hides_the_value():
    token = new_token()
    assert token.reveal() not in f"{token} {token!r} {[token]}"


def test_invalid_token_is_refused():
    with pytest.raises(ValueError, match="32 to 512") as caught:
        Token("hunter2")
    assert "hunter2" not in str(caught.value)
