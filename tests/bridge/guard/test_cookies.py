import pytest

from dragoman.bridge.guard import new_token
from dragoman.bridge.guard.credentials import COOKIE_LIFE_S, Cookies
from tests.bridge.clock import Clock
from tests.bridge.guard.asking import cookie_of

SHARE = "share-abcdefghijkl"


def make_cookies(token, port=8421, *, is_secure=False, **options):
    return Cookies(token, port, is_secure=is_secure, **options)


def test_cookie_is_strict_and_http_only(token):
    traits = make_cookies(token).make("owner").split("; ")[1:]
    assert set(traits) == {"Path=/", "HttpOnly", "SameSite=Strict", f"Max-Age={COOKIE_LIFE_S}"}


def test_a_cookie_under_tls_is_bound_to_its_host(token):
    set_cookie = make_cookies(token, is_secure=True).make("owner")
    assert set_cookie.startswith("__Host-dragoman_8421=")
    assert {"Secure", "Path=/", "HttpOnly", "SameSite=Strict"} <= set(set_cookie.split("; "))
    assert "Domain" not in set_cookie


@pytest.mark.parametrize("subject", ["owner", SHARE])
def test_cookie_survives_a_restart(token, subject):
    cookie = cookie_of(make_cookies(token).make(subject))
    assert make_cookies(token).read(cookie) == subject


def test_cookie_does_not_contain_the_token(token):
    assert token.reveal() not in make_cookies(token).make("owner")


def test_new_token_invalidates_every_cookie(token):
    assert make_cookies(new_token()).read(cookie_of(make_cookies(token).make("owner"))) is None


def test_ports_of_one_host_have_separate_cookies(token):
    one, other = make_cookies(token, 8421), make_cookies(token, 8422)
    both = f"{cookie_of(one.make('owner'))}; {cookie_of(other.make(SHARE))}"
    assert (one.read(both), other.read(both)) == ("owner", SHARE)


def test_cookie_of_another_port_is_invalid(token):
    moved = cookie_of(make_cookies(token, 8422).make("owner")).replace("dragoman_8422=", "dragoman_8421=")
    assert make_cookies(token, 8421).read(moved) is None


def test_changed_role_invalidates_the_cookie(token):
    cookies = make_cookies(token)
    assert cookies.read(cookie_of(cookies.make(SHARE)).replace(f"={SHARE}.", "=owner.")) is None


@pytest.mark.parametrize("place", range(6))
def test_changed_character_invalidates_the_cookie(token, place):
    cookies = make_cookies(token)
    name, _, value = cookie_of(cookies.make("owner")).partition("=")
    at = [0, 6, 10, len(value) - 50, len(value) - 43, len(value) - 10][place]
    changed = value[:at] + ("1" if value[at] != "1" else "2") + value[at + 1 :]
    assert cookies.read(f"{name}={changed}") is None
    assert cookies.read(f"{name}={value}") == "owner"


def test_cookie_expires_on_the_server(token):
    clock = Clock()
    cookies = make_cookies(token, clock=clock)
    cookie = cookie_of(cookies.make("owner"))
    clock.now += COOKIE_LIFE_S - 1
    assert cookies.read(cookie) == "owner"
    clock.now += 1
    assert cookies.read(cookie) is None


def test_cookie_from_the_future_is_invalid(token):
    clock = Clock()
    cookies = make_cookies(token, clock=clock)
    cookie = cookie_of(cookies.make("owner"))
    clock.now -= 3600
    assert cookies.read(cookie) is None


def test_invalid_cookie_does_not_hide_the_valid_one(token):
    cookies = make_cookies(token)
    assert cookies.read(f"{cookies.name}=planted; {cookie_of(cookies.make('owner'))}") == "owner"


def test_only_a_few_cookies_are_read(token):
    cookies = make_cookies(token)
    flood = f"{cookies.name}=x; " * 1000
    assert cookies.read(flood + cookie_of(cookies.make("owner"))) is None


@pytest.mark.parametrize("header", ["", ";;;", "=", "dragoman_8421", "dragoman_8421=", "other=1", "DRAGOMAN_8421=x"])
def test_foreign_cookie_has_no_role(token, header):
    assert make_cookies(token).read(header) is None


def test_logout_cookie_has_the_same_name(token):
    cookies = make_cookies(token)
    assert cookies.remove() == "dragoman_8421=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
