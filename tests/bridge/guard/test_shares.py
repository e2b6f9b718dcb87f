"""Shares survive a restart, are opened once, and end when they expire or are revoked."""

import pytest

from dragoman.bridge.guard.shares import LINK_LIFE_S, MAX_SHARES, WITHDRAWN, Shares, TooManySharesError
from tests.bridge.clock import Clock

HOUR_S = 3600


async def test_share_survives_a_restart_without_its_code_on_disk(tmp_path):
    path = tmp_path / "shares.json"
    share, code = await Shares(path).make(HOUR_S, "one", "session", "Apples")
    assert code not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    after = Shares(path)
    assert after.find(share.id) == share
    opened = await after.redeem(code)
    assert (opened.session, opened.unused) == ("session", None)
    assert await Shares(path).redeem(code) is None
    assert await after.withdraw(share.id) is True
    assert (await Shares(path).list(), await after.withdraw(share.id)) == ([], False)


async def test_share_and_link_expire():
    clock = Clock()
    shares = Shares(clock=clock)
    short, _ = await shares.make(HOUR_S, None, None)
    long, code = await shares.make(30 * 24 * HOUR_S, None, None)
    clock.now += HOUR_S
    assert (shares.find(short.id), await shares.list()) == (None, [long])
    clock.now += LINK_LIFE_S
    assert await shares.redeem(code) is None
    assert shares.find(long.id) == long


async def test_limit_of_shares_ignores_expired_ones():
    clock = Clock()
    shares = Shares(clock=clock)
    for _ in range(MAX_SHARES):
        await shares.make(HOUR_S, None, None)
    with pytest.raises(TooManySharesError, match="revoke some"):
        await shares.make(HOUR_S, None, None)
    clock.now += HOUR_S
    await shares.make(HOUR_S, None, None)
    assert len(await shares.list()) == 1


async def test_damaged_file_is_renamed_and_grants_nothing(tmp_path):
    (tmp_path / "shares.json").write_text("[{]")
    assert await Shares(tmp_path / "shares.json").list() == []
    assert [path.read_text() for path in tmp_path.iterdir()] == ["[{]"]


async def test_share_is_revoked_even_if_it_cannot_be_saved(tmp_path):
    directory = tmp_path / "bridge"
    directory.mkdir()
    shares = Shares(directory / "shares.json")
    share, code = await shares.make(HOUR_S, None, None)
    directory.rename(tmp_path / "gone")
    ended = []
    shares.on_ended = lambda *told: ended.append(told)
    with pytest.raises(OSError, match="No such file"):
        await shares.withdraw(share.id)
    assert ended == [(share.id, WITHDRAWN)]
    assert (shares.find(share.id), await shares.redeem(code)) == (None, None)
