import pytest

from dragoman.bridge.guard import new_token
from dragoman.bridge.guard.credentials import COOKIE_LIFE_S, Cookies
from tests.bridge.clock import Clock
from tests.bridge.guard.asking import cookie_of

SHARE = "share-abcdefghijkl"


def make_cookies(token, port=8421, *, is_secure=False, **options):
    return Cookies(token, port, is_secure=is_secure, **options)


def test_a_cookie_is_strict_and_out_of_reach_of_scripts(token):
    traits = make_cookies(token).make("owner").split("; ")[1:]
    assert set(traits) == {"Path=/", "HttpOnly", "SameSite=Strict", f"Max-Age={COOKIE_LIFE_S}"}


def test_a_cookie_under_tls_is_bound_to_its_host(token):
    set_cookie = make_cookies(token, is_secure=True).make("owner")
    assert set_cookie.startswith("__Host-dragoman_8421=")
    assert {"Secure", "Path=/", "HttpOnly", "SameSite=Strict"} <= set(set_cookie.split("; "))
    assert "Domain" not in set_cookie


@pytest.mark.parametrize("subject", ["owner", SHARE])
def test_a_cookie_carries_its_subject_over_a_restart(token, subject):
    cookie = cookie_of(make_cookies(token).make(subject))
    assert make_cookies(token).read(cookie) == subject


def test_a_cookie_holds_nothing_of_the_token(token):
    assert token.reveal() not in make_cookies(token).make("owner")


def test_a_new_token_ends_every_cookie(token):
    assert make_cookies(new_token()).read(cookie_of(make_cookies(token).make("owner"))) is None


def test_two_ports_of_one_host_have_cookies_of_their_own(token):
    one, other = make_cookies(token, 8421), make_cookies(token, 8422)
    both = f"{cookie_of(one.make('owner'))}; {cookie_of(other.make(SHARE))}"
    assert (one.read(both), other.read(both)) == ("owner", SHARE)


def test_a_cookie_of_another_port_is_worth_nothing_under_our_name(token):
    moved = cookie_of(make_cookies(token, 8422).make("owner")).replace("dragoman_8422=", "dragoman_8421=")
    assert make_cookies(token, 8421).read(moved) is None


def test_a_role_that_was_changed_is_not_believed(token):
    cookies = make_cookies(token)
    assert cookies.read(cookie_of(cookies.make(SHARE)).replace(f"={SHARE}.", "=owner.")) is None


@pytest.mark.parametrize("place", range(6))
def test_a_changed_letter_anywhere_ends_it(token, place):
    cookies = make_cookies(token)
    name, _, value = cookie_of(cookies.make("owner")).partition("=")
    at = [0, 6, 10, len(value) - 50, len(value) - 43, len(value) - 10][place]
    changed = value[:at] + ("1" if value[at] != "1" else "2") + value[at + 1 :]
    assert cookies.read(f"{name}={changed}") is None
    assert cookies.read(f"{name}={value}") == "owner"


def test_a_cookie_ends_after_its_time_whatever_the_browser_keeps(token):
    clock = Clock()
    cookies = make_cookies(token, clock=clock)
    cookie = cookie_of(cookies.make("owner"))
    clock.now += COOKIE_LIFE_S - 1
    assert cookies.read(cookie) == "owner"
    clock.now += 1
    assert cookies.read(cookie) is None


def test_a_cookie_of_the_future_is_worth_nothing(token):
    clock = Clock()
    cookies = make_cookies(token, clock=clock)
    cookie = cookie_of(cookies.make("owner"))
    clock.now -= 3600
    assert cookies.read(cookie) is None


def test_a_bad_cookie_of_our_name_does_not_hide_the_good_one(token):
    cookies = make_cookies(token)
    assert cookies.read(f"{cookies.name}=planted; {cookie_of(cookies.make('owner'))}") == "owner"


def test_a_flood_of_cookies_of_our_name_is_not_read_to_its_end(token):
    cookies = make_cookies(token)
    flood = f"{cookies.name}=x; " * 1000
    assert cookies.read(flood + cookie_of(cookies.make("owner"))) is None


@pytest.mark.parametrize("header", ["", ";;;", "=", "dragoman_8421", "dragoman_8421=", "other=1", "DRAGOMAN_8421=x"])
def test_what_is_no_cookie_of_ours_is_no_role(token, header):
    assert make_cookies(token).read(header) is None


def test_a_removed_cookie_is_the_same_one(token):
    cookies = make_cookies(token)
    assert cookies.remove() == "dragoman_8421=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
