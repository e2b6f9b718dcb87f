from dragoman.bridge.guard.credentials import CODE_LIFE_S, MAX_CODES, LinkCodes
from tests.bridge.clock import Clock


def test_a_code_works_once():
    codes = LinkCodes()
    code = codes.make("owner")
    assert codes.redeem(code) == "owner"
    assert codes.redeem(code) is None


def test_a_code_says_as_what_it_lets_in():
    codes = LinkCodes()
    assert codes.redeem(codes.make("reader")) == "reader"


def test_an_unknown_code_is_worth_nothing():
    codes = LinkCodes()
    code = codes.make("owner")
    assert [codes.redeem(wrong) for wrong in ("", code[:-1], code + "=", code.swapcase(), "\udcff")] == [None] * 5
    assert codes.redeem(code) == "owner"


def test_a_code_ends_after_its_time():
    clock = Clock()
    codes = LinkCodes(clock)
    kept, late = codes.make("owner"), codes.make("owner")
    clock.now += CODE_LIFE_S - 1
    assert codes.redeem(kept) == "owner"
    clock.now += 1
    assert codes.redeem(late) is None


def test_the_oldest_code_goes_when_there_are_too_many():
    codes = LinkCodes()
    made = [codes.make("owner") for _ in range(MAX_CODES + 1)]
    assert codes.redeem(made[0]) is None
    assert codes.redeem(made[1]) == "owner"
    assert codes.redeem(made[-1]) == "owner"


def test_a_code_has_at_least_192_bits():
    assert len(LinkCodes().make("owner")) * 6 >= 192
