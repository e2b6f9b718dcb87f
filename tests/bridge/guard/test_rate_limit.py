import pytest

from dragoman.bridge.guard.rate_limit import MAX_PEERS, Rate, RateLimiter, TokenBucket, peer_of
from tests.bridge.clock import Clock


def test_a_burst_is_let_through_and_then_one_at_a_time():
    clock = Clock()
    limiter = RateLimiter(Rate(burst=3, per_s=0.5), clock)
    assert [limiter.take("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.take("a") == 2.0
    clock.now += 2
    assert limiter.take("a") == 0
    assert limiter.take("a") == 2.0


def test_waiting_gives_no_more_than_the_burst():
    clock = Clock()
    limiter = RateLimiter(Rate(burst=2, per_s=1), clock)
    clock.now += 1000
    assert [bool(limiter.take("a")) for _ in range(3)] == [False, False, True]


def test_one_address_does_not_count_for_another():
    limiter = RateLimiter(Rate(burst=1, per_s=1), Clock())
    assert (limiter.take("a"), limiter.take("b")) == (0, 0)
    assert limiter.take("a") > 0


def test_the_address_that_was_not_seen_for_longest_is_forgotten():
    limiter = RateLimiter(Rate(burst=1, per_s=1), Clock())
    for number in range(MAX_PEERS):
        limiter.take(str(number))
    assert limiter.take("0") > 0
    limiter.take("one more")
    assert limiter.take("0") > 0
    assert limiter.take("1") == 0


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
    assert peer_of(address) == peer


def test_a_bucket_pays_its_burst_at_once_and_no_more():
    bucket = TokenBucket(Rate(burst=5, per_s=1.0), Clock())
    assert [bucket.take(2) for _ in range(4)] == [True, True, False, False]
    assert bucket.take(1)


def test_a_bucket_fills_with_time_up_to_its_burst():
    clock = Clock()
    bucket = TokenBucket(Rate(burst=5, per_s=2.0), clock)
    assert bucket.take(5)
    clock.now += 1
    assert [bucket.take(1) for _ in range(3)] == [True, True, False]
    clock.now += 1_000
    assert [bucket.take(1) for _ in range(6)] == [True] * 5 + [False]


def test_something_can_be_put_back_up_to_the_burst():
    bucket = TokenBucket(Rate(burst=5, per_s=1.0), Clock())
    assert bucket.take(5)
    bucket.add(2)
    assert [bucket.take(1) for _ in range(3)] == [True, True, False]
    bucket.add(1_000)
    assert not bucket.take(6)


def test_a_higher_rate_fills_the_bucket_once():
    bucket = TokenBucket(Rate(burst=5, per_s=1.0), Clock())
    assert not bucket.take(6)
    more = Rate(burst=50, per_s=1.0)
    bucket.change_rate(more)
    assert bucket.take(50)
    bucket.change_rate(more)
    assert not bucket.take(1)
