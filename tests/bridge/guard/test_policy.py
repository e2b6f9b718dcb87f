import pytest

from dragoman.bridge.guard import InvalidServedAddressError, is_loopback, make_policy, served_names


def policy(token, **options):
    return make_policy(token, **{"names": served_names("127.0.0.1"), "port": 8421, **options})


def test_loopback_serves_only_its_three_names(token):
    made = policy(token)
    assert made.hosts == {"127.0.0.1:8421", "localhost:8421", "[::1]:8421"}
    assert made.origins == {"http://127.0.0.1:8421", "http://localhost:8421", "http://[::1]:8421"}
    assert not made.is_secure


def test_under_tls_no_plain_origin_is_served(token):
    made = policy(token, is_tls=True)
    assert "https://localhost:8421" in made.origins
    assert "http://localhost:8421" not in made.origins
    assert made.is_secure


def test_default_port_may_be_omitted(token):
    made = policy(token, port=80)
    assert {"localhost", "localhost:80"} <= made.hosts
    assert "http://localhost" in made.origins


def test_allowed_host_gets_the_port_and_an_origin(token):
    made = policy(token, allow_hosts=["Box.local", "proxy:9000", "2001:db8::1"])
    assert {"box.local:8421", "proxy:9000", "[2001:db8::1]:8421"} <= made.hosts
    assert {"http://box.local:8421", "http://proxy:9000"} <= made.origins
    assert "box.local" not in made.hosts


def test_public_url_adds_host_and_origin_and_secures_the_cookie(token):
    made = policy(token, public_url="https://agents.example.org/dragoman/")
    assert {"agents.example.org", "agents.example.org:443"} <= made.hosts
    assert "https://agents.example.org" in made.origins
    assert "http://agents.example.org" not in made.origins
    assert made.is_secure


def test_cookie_is_named_after_the_public_url(token):
    def place(port, public_url=None):
        return policy(token, port=port, public_url=public_url).cookie_place

    public = "https://agents.example.org"
    assert (place(8421), place(8422)) == ("8421", "8422")
    assert place(8421, public) == place(8422, f"{public}:443/") == "443", "nodes behind it would not share a cookie"
    assert len({place(8421, each) for each in (public, f"{public}:8443", f"{public}/a", f"{public}/b")}) == 4


def test_allowed_origin_is_not_an_allowed_host(token):
    made = policy(token, allow_origins=["https://app.example"])
    assert "https://app.example" in made.origins
    assert not any("app.example" in host for host in made.hosts)


@pytest.mark.parametrize("origin", ["*", "null", "https://*.example", "app.example", "https://app.example/", "file://"])
def test_wildcard_origin_is_refused_with_a_reason(token, origin):
    with pytest.raises(InvalidServedAddressError, match="expected SCHEME://NAME"):
        policy(token, allow_origins=[origin])


@pytest.mark.parametrize("host", ["*", "*.example", "http://box", "box/path", "", "user@box", "box."])
def test_wildcard_host_is_refused_with_a_reason(token, host):
    with pytest.raises(InvalidServedAddressError, match="expected NAME or NAME:PORT"):
        policy(token, allow_hosts=[host])


@pytest.mark.parametrize(
    "url", ["", "agents.example.org", "ftp://x", "https://", "https://user:pass@x/", "https://x/?a", "https://[x"]
)
def test_invalid_public_url_is_refused_with_a_reason(token, url):
    with pytest.raises(InvalidServedAddressError, match="is not a public address; expected"):
        policy(token, public_url=url)


def test_single_address_is_the_only_served_name(token):
    assert served_names("192.0.2.7") == ("192.0.2.7",)
    assert served_names("2001:DB8::7") == ("[2001:db8::7]",)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_loopback_hosts_are_recognized(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "localhost.example", "127.0.0.1.example", "box"])
def test_reachable_hosts_are_not_loopback(host):
    assert not is_loopback(host)


def test_policy_repr_hides_the_token(token):
    assert token.reveal() not in repr(policy(token))
