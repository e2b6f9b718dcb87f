import pytest

from dragoman.bridge.guard.rate_limit import MAX_PEERS, Rate, RateLimiter, TokenBucket, peer_of
from tests.bridge.clock import Clock


def test_burst_is_allowed_then_the_rate_applies():
    clock = Clock()
    limiter = RateLimiter(Rate(burst=3, per_s=0.5), clock)
    assert [limiter.acquire("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.acquire("a") == 2.0
    clock.now += 2
    assert limiter.acquire("a") == 0
    assert limiter.acquire("a") == 2.0


def test_waiting_restores_at_most_the_burst():
    clock = Clock()
    limiter = RateLimiter(Rate(burst=2, per_s=1), clock)
    clock.now += 1000
    assert [bool(limiter.acquire("a")) for _ in range(3)] == [False, False, True]


def test_addresses_are_counted_separately():
    limiter = RateLimiter(Rate(burst=1, per_s=1), Clock())
    assert (limiter.acquire("a"), limiter.acquire("b")) == (0, 0)
    assert limiter.acquire("a") > 0


def test_least_recently_seen_address_is_forgotten():
    limiter = RateLimiter(Rate(burst=1, per_s=1), Clock())
    for number in range(MAX_PEERS):
        limiter.acquire(str(number))
    assert limiter.acquire("0") > 0
    limiter.acquire("one more")
    assert limiter.acquire("0") > 0
    assert limiter.acquire("1") == 0


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
def test_ipv6_network_counts_as_one_address(address, peer):
    assert peer_of(address) == peer


def test_bucket_allows_its_burst_at_once():
    bucket = TokenBucket(Rate(burst=5, per_s=1.0), Clock())
    assert [bucket.acquire(2) for _ in range(4)] == [True, True, False, False]
    assert bucket.acquire(1)


def test_bucket_refills_over_time():
    clock = Clock()
    bucket = TokenBucket(Rate(burst=5, per_s=2.0), clock)
    assert bucket.acquire(5)
    clock.now += 1
    assert [bucket.acquire(1) for _ in range(3)] == [True, True, False]
    clock.now += 1_000
    assert [bucket.acquire(1) for _ in range(6)] == [True] * 5 + [False]


def test_added_tokens_are_capped_at_the_burst():
    bucket = TokenBucket(Rate(burst=5, per_s=1.0), Clock())
    assert bucket.acquire(5)
    bucket.add(2)
    assert [bucket.acquire(1) for _ in range(3)] == [True, True, False]
    bucket.add(1_000)
    assert not bucket.acquire(6)


def test_a_higher_rate_fills_the_bucket_once():
    bucket = TokenBucket(Rate(burst=5, per_s=1.0), Clock())
    assert not bucket.acquire(6)
    more = Rate(burst=50, per_s=1.0)
    bucket.change_rate(more)
    assert bucket.acquire(50)
    bucket.change_rate(more)
    assert not bucket.acquire(1)
