from dragoman.bridge.guard.credentials import CODE_LIFE_S, MAX_CODES, LinkCodes
from tests.bridge.clock import Clock


def test_a_code_works_once():
    codes = LinkCodes()
    code = codes.make()
    assert codes.redeem(code) is True
    assert codes.redeem(code) is False


def test_an_unknown_code_is_worth_nothing():
    codes = LinkCodes()
    code = codes.make()
    assert [codes.redeem(wrong) for wrong in ("", code[:-1], code + "=", code.swapcase(), "\udcff")] == [False] * 5
    assert codes.redeem(code) is True


def test_a_code_ends_after_its_time():
    clock = Clock()
    codes = LinkCodes(clock)
    kept, late = codes.make(), codes.make()
    clock.now += CODE_LIFE_S - 1
    assert codes.redeem(kept) is True
    clock.now += 1
    assert codes.redeem(late) is False


def test_the_oldest_code_goes_when_there_are_too_many():
    codes = LinkCodes()
    made = [codes.make() for _ in range(MAX_CODES + 1)]
    assert codes.redeem(made[0]) is False
    assert codes.redeem(made[1]) is True
    assert codes.redeem(made[-1]) is True


def test_a_code_has_at_least_192_bits():
    assert len(LinkCodes().make()) * 6 >= 192
