import pytest

from dragoman.bridge.guard.rates import MAX_PEERS, Limiter, Rate, name_peer


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_burst_is_let_through_and_then_one_at_a_time():
    clock = Clock()
    limiter = Limiter(Rate(burst=3, per_s=0.5), clock)
    assert [limiter.take("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.take("a") == 2.0
    clock.now += 2
    assert limiter.take("a") == 0
    assert limiter.take("a") == 2.0


def test_waiting_gives_no_more_than_the_burst():
    clock = Clock()
    limiter = Limiter(Rate(burst=2, per_s=1), clock)
    clock.now += 1000
    assert [bool(limiter.take("a")) for _ in range(3)] == [False, False, True]


def test_one_address_does_not_count_for_another():
    limiter = Limiter(Rate(burst=1, per_s=1), Clock())
    assert (limiter.take("a"), limiter.take("b")) == (0, 0)
    assert limiter.take("a") > 0


def test_what_is_remembered_is_bounded():
    limiter = Limiter(Rate(burst=1, per_s=1), Clock())
    for number in range(MAX_PEERS * 2):
        limiter.take(str(number))
    assert len(limiter._buckets) == MAX_PEERS


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(address, peer):
    assert name_peer(address) == peer
