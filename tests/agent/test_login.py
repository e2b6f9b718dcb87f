"""The login of an agent: its methods, its state, and at least one method for every client."""

import pytest

from dragoman.client.errors import NotOfferedError
from dragoman.errors import ErrorCode, RemoteError, RpcError
from dragoman.protocol import v1
from dragoman.protocol.methods import AUTHENTICATE
from tests.agent.connecting import make_agent


class Login:
    """A login that does not report its state."""

    can_log_out = True

    def __init__(self):
        self.is_done = False

    def offer(self, client):
        del client
        return [v1.AuthMethodAgent(id="badge", name="Show the badge")]

    def authenticate(self, method_id):
        if method_id != "badge":
            raise RpcError(ErrorCode.AUTH_REQUIRED, "show the badge")
        self.is_done = True

    def log_out(self):
        self.is_done = False


class ReportingLogin(Login):
    """A login that reports its state."""

    def status(self):
        return v1.AuthStatusResponse(state="authenticated" if self.is_done else "unauthenticated")


async def test_agent_without_a_login_offers_a_method_that_succeeds(tmp_path):
    async with make_agent(tmp_path).connect() as remote:
        [method] = remote.auth_methods
        assert isinstance(method, v1.AuthMethodAgent)
        assert remote.auth is None
        await remote.authenticate(method.id)
        assert (await remote.auth_status()).state == "not_required"
        assert remote.auth == v1.AuthStatusResponse(state="not_required")
        with pytest.raises(NotOfferedError):
            await remote.authenticate("other")
        assert remote.capabilities.auth.logout is None


async def test_client_keeps_the_last_login_state(tmp_path):
    async with make_agent(tmp_path, auth=ReportingLogin()).connect() as remote:
        assert (await remote.auth_status()).state == "unauthenticated"
        await remote.authenticate("badge")
        assert remote.auth.state == "authenticated"
        await remote.logout()
        assert remote.auth.state == "unauthenticated"


async def test_login_without_a_status_is_unknown(tmp_path):
    async with make_agent(tmp_path, auth=Login()).connect() as remote:
        assert (await remote.auth_status()).state == "unknown"


async def test_method_that_was_not_offered_is_refused(tmp_path):
    async with make_agent(tmp_path).connect() as remote:
        with pytest.raises(RemoteError, match="needs no login") as refusal:
            await remote.link.call(
                AUTHENTICATE,
                v1.AuthenticateRequest(method_id="other"),
            )
        assert refusal.value.code == ErrorCode.INVALID_PARAMS
