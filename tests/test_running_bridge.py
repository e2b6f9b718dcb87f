"""The address of the running bridge of a home, and the addresses that receive the home's token."""

import pytest

from dragoman.running_bridge import RunningBridge, find_bridge, publish_address
from tests.table import each_row

TOKEN = "t" * 43


@pytest.fixture
def home(tmp_path):
    (tmp_path / "bridge").mkdir()
    path = tmp_path / "bridge" / "token"
    path.touch(0o600)
    path.write_text(f"{TOKEN}\n")
    return tmp_path


def test_bridge_is_found_while_it_holds_its_address(home):
    assert find_bridge(home) is None
    lock = publish_address(home, "http://127.0.0.1:8421/")
    found = find_bridge(home)
    assert (found.url, found.acp_url("one"), found.read_token()) == (
        "http://127.0.0.1:8421/",
        "http://127.0.0.1:8421/acp/one",
        TOKEN,
    )
    lock.release()
    assert find_bridge(home) is None


@pytest.mark.parametrize("change", [{}, {"host": b"elsewhere"}])
def test_address_of_a_dead_or_remote_bridge_is_ignored(home, change):
    """By now, another user's process may listen there."""
    path = home / "bridge" / "address"
    lock = publish_address(home, "http://127.0.0.1:8421/")
    written = path.read_bytes()
    if change:
        path.write_bytes(written.replace(b'"host":"', b'"host":"x'))
        assert find_bridge(home) is None
        lock.release()
        return
    lock.release()
    path.write_bytes(written)
    assert find_bridge(home) is None


@each_row(
    ("own", "given", "matched"),
    [
        ("http://127.0.0.1:8421/", "http://127.0.0.1:8421/acp", "http://127.0.0.1:8421/acp"),
        ("http://127.0.0.1:8421/", "ws://127.0.0.1:8421/acp/one", "ws://127.0.0.1:8421/acp/one"),
        ("http://127.0.0.1:8421/", "http://localhost:8421/acp", "http://127.0.0.1:8421/acp"),
        ("http://[::1]:8421/", "http://localhost:8421/acp", "http://[::1]:8421/acp"),
        ("http://127.0.0.1:8421/", "http://127.0.0.1:8422/acp", None),
        ("http://127.0.0.1:8421/", "http://127.0.0.2:8421/acp", None),
        ("http://127.0.0.1:8421/", "http://[::1]:8421/acp", None),
        ("http://127.0.0.1:8421/", "https://127.0.0.1:8421/acp", None),
        ("http://127.0.0.1:8421/", "http://127.0.0.1:8421@example.com/acp", None),
        ("http://192.0.2.7:8421/", "http://localhost:8421/acp", None),
        ("https://host:8421/", "https://host:8421/acp", "https://host:8421/acp"),
        ("https://host:8421/", "https://localhost:8421/acp", None),
        ("http://127.0.0.1:8421/", "no url", None),
    ],
)
def test_token_is_only_for_the_bridges_address(tmp_path, own, given, matched):
    assert RunningBridge(own, tmp_path).match(given) == matched


def test_token_that_others_could_read_is_not_used(home):
    (home / "bridge" / "token").chmod(0o644)
    assert RunningBridge("http://127.0.0.1:8421/", home / "bridge").read_token() is None
