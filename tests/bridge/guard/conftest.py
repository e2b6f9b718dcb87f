import pytest

from dragoman.bridge.guard import new_token
from tests.bridge.guard.asking import cookie_of, make_guard
from tests.bridge.guard.serving import serving


@pytest.fixture
def token():
    return new_token()


@pytest.fixture
def guard(token):
    return make_guard(token)


@pytest.fixture
def cookie(guard, token):
    return cookie_of(guard.redeem_token(token.reveal()))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("home")) as running:
        yield running
