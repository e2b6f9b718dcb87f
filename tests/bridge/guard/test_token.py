import multiprocessing
import os
import stat

import pytest

from dragoman.bridge.guard import Token, TokenUnusable, keep_token, new_token


def test_a_token_has_at_least_192_bits_and_no_two_are_alike():
    values = {new_token().reveal() for _ in range(100)}
    assert len(values) == 100
    assert min(map(len, values)) * 6 >= 192


def test_the_file_is_its_owners_alone(tmp_path):
    keep_token(tmp_path / "bridge")
    assert stat.S_IMODE((tmp_path / "bridge" / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "bridge").stat().st_mode) == 0o700


def test_a_generous_umask_makes_the_file_no_wider(tmp_path):
    before = os.umask(0)
    try:
        keep_token(tmp_path / "bridge")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "bridge" / "token").stat().st_mode) == 0o600


def test_the_token_is_the_same_the_next_time(tmp_path):
    assert keep_token(tmp_path).reveal() == keep_token(tmp_path).reveal()


def test_a_removed_token_is_replaced_by_another(tmp_path):
    first = keep_token(tmp_path).reveal()
    (tmp_path / "token").unlink()
    assert keep_token(tmp_path).reveal() != first


def _keep(directory, queue):
    queue.put(keep_token(directory).reveal())


def test_two_bridges_that_start_at_once_have_one_token(tmp_path):
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
def test_a_file_that_others_can_read_or_write_is_refused_with_what_to_do(tmp_path, mode):
    value = keep_token(tmp_path).reveal()
    (tmp_path / "token").chmod(mode)
    with pytest.raises(TokenUnusable, match=r"other users may read or write it.*chmod 600") as caught:
        keep_token(tmp_path)
    assert value not in str(caught.value)


def test_a_link_is_refused_wherever_it_points(tmp_path):
    value = keep_token(tmp_path / "elsewhere").reveal()
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere" / "token")
    with pytest.raises(TokenUnusable, match="it is a link") as caught:
        keep_token(tmp_path)
    assert value not in str(caught.value)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "token", 0o600)
    with pytest.raises(TokenUnusable, match="no regular file"):
        keep_token(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"short", b"x" * 31, b"a token with spaces in it, and long enough", b"\xff" * 64]
)
def test_a_damaged_file_is_refused_without_its_content(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(TokenUnusable, match="it is damaged; remove it") as caught:
        keep_token(tmp_path)
    assert "spaces in it" not in str(caught.value)


def test_a_directory_that_cannot_be_made_is_an_error_in_words(tmp_path):
    (tmp_path / "bridge").write_text("in the way")
    with pytest.raises(TokenUnusable, match="see that this user can read and write"):
        keep_token(tmp_path / "bridge")


def test_a_token_matches_itself_alone():
    token = new_token()
    assert token.matches(token.reveal())
    assert not any(
        map(token.matches, ["", token.reveal()[:-1], token.reveal() + "x", token.reveal().swapcase(), "é\udcff"])
    )


def test_a_token_shows_itself_in_no_repr():
    token = new_token()
    assert token.reveal() not in f"{token} {token!r} {[token]}"


def test_a_word_that_is_no_token_is_not_taken():
    with pytest.raises(ValueError, match="32 to 512") as caught:
        Token("hunter2")
    assert "hunter2" not in str(caught.value)
