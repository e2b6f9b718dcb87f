from dragoman.bridge.guard.credentials import CODE_LIFE_S, MAX_CODES, LinkCodes
from tests.bridge.clock import Clock


async def test_a_code_works_once():
    codes = LinkCodes()
    code = await codes.make()
    assert await codes.redeem(code) is True
    assert await codes.redeem(code) is False


async def test_unknown_code_is_invalid():
    codes = LinkCodes()
    code = await codes.make()
    assert [await codes.redeem(wrong) for wrong in ("", code[:-1], code + "=", code.swapcase(), "\udcff")] == [
        False
    ] * 5
    assert await codes.redeem(code) is True


async def test_code_expires():
    clock = Clock()
    codes = LinkCodes(clock)
    kept, late = await codes.make(), await codes.make()
    clock.now += CODE_LIFE_S - 1
    assert await codes.redeem(kept) is True
    clock.now += 1
    assert await codes.redeem(late) is False


async def test_oldest_code_is_removed_at_the_limit():
    codes = LinkCodes()
    made = [await codes.make() for _ in range(MAX_CODES + 1)]
    assert await codes.redeem(made[0]) is False
    assert await codes.redeem(made[1]) is True
    assert await codes.redeem(made[-1]) is True


async def test_a_code_has_at_least_192_bits():
    assert len(await LinkCodes().make()) * 6 >= 192
