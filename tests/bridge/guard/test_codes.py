from dragoman.bridge.guard.codes import LIFE_S, MAX_CODES, Codes


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_a_code_works_once():
    codes = Codes()
    code = codes.make("owner")
    assert codes.burn(code) == "owner"
    assert codes.burn(code) is None


def test_a_code_says_as_what_it_lets_in():
    codes = Codes()
    assert codes.burn(codes.make("reader")) == "reader"


def test_an_unknown_code_is_worth_nothing():
    codes = Codes()
    code = codes.make("owner")
    assert [codes.burn(wrong) for wrong in ("", code[:-1], code + "=", code.swapcase(), "\udcff")] == [None] * 5
    assert codes.burn(code) == "owner"


def test_a_code_ends_after_its_time():
    clock = Clock()
    codes = Codes(clock)
    kept, late = codes.make("owner"), codes.make("owner")
    clock.now += LIFE_S - 1
    assert codes.burn(kept) == "owner"
    clock.now += 1
    assert codes.burn(late) is None


def test_the_oldest_code_goes_when_there_are_too_many():
    codes = Codes()
    made = [codes.make("owner") for _ in range(MAX_CODES + 1)]
    assert codes.burn(made[0]) is None
    assert codes.burn(made[1]) == "owner"
    assert codes.burn(made[-1]) == "owner"


def test_a_code_has_at_least_192_bits():
    assert len(Codes().make("owner")) * 6 >= 192
