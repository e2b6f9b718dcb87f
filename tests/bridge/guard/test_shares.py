"""Shares: kept over a restart, opened once, over at their time or when they are withdrawn."""

import pytest

from dragoman.bridge.guard.shares import LINK_LIFE_S, MAX_SHARES, WITHDRAWN, Shares, TooManyShares
from tests.bridge.clock import Clock

HOUR_S = 3600


async def test_a_share_outlives_a_restart_and_no_file_has_its_code(tmp_path):
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


async def test_a_share_and_its_link_end_at_their_times():
    clock = Clock()
    shares = Shares(clock=clock)
    short, _ = await shares.make(HOUR_S, None, None)
    long, code = await shares.make(30 * 24 * HOUR_S, None, None)
    clock.now += HOUR_S
    assert (shares.find(short.id), await shares.list()) == (None, [long])
    clock.now += LINK_LIFE_S
    assert await shares.redeem(code) is None
    assert shares.find(long.id) == long


async def test_there_is_a_limit_of_shares_and_those_that_are_over_do_not_count():
    clock = Clock()
    shares = Shares(clock=clock)
    for _ in range(MAX_SHARES):
        await shares.make(HOUR_S, None, None)
    with pytest.raises(TooManyShares, match="withdraw some"):
        await shares.make(HOUR_S, None, None)
    clock.now += HOUR_S
    await shares.make(HOUR_S, None, None)
    assert len(await shares.list()) == 1


async def test_a_damaged_file_is_kept_aside_and_shares_nothing(tmp_path):
    (tmp_path / "shares.json").write_text("[{]")
    assert await Shares(tmp_path / "shares.json").list() == []
    assert [path.read_text() for path in tmp_path.iterdir()] == ["[{]"]


async def test_a_share_is_withdrawn_at_once_also_where_that_cannot_be_written(tmp_path):
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
