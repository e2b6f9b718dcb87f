"""The reverse proxy configurations of deploy/, with real proxies and a real bridge."""

import re
import socket
import ssl
from contextlib import suppress

import httpx2
import pytest

from dragoman.client import connect_url
from dragoman.client.events import TextChunk
from dragoman.testing import steps
from tests.bridge.guard.serving import TIMEOUT_S, read_answer, scripted, serving
from tests.deploy.proxies import caddy, nginx
from tests.ports import free_port

pytestmark = pytest.mark.extended  # they concern the files in deploy/, which change rarely

AGENT = scripted(*([steps.Say("first"), steps.WaitForCancel()], [steps.Say("Thank you.")]) * 2)
MIB = 1024 * 1024


class Proxied:
    """A bridge and its reverse proxy."""

    def __init__(self, served, port, authority):
        self.served = served
        self.port = port
        self.authority = authority
        self.host = f"localhost:{port}"

    @property
    def trust(self):
        """A new TLS context for each caller, because a client that offers HTTP/2 modifies it."""
        return ssl.create_default_context(cafile=self.authority)

    def ask(self, line, *headers, host=None):
        """Send the head of a request with the token, and return the head of the answer."""
        lines = [f"{line} HTTP/1.1", f"Host: {host or self.host}", self.served.bearer, *headers, "", ""]
        with (
            socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S) as raw,
            self.trust.wrap_socket(raw, server_hostname="localhost") as connection,
        ):
            connection.sendall("\r\n".join(lines).encode())
            return read_answer(connection, to_end=False)

    def upgrade(self, origin):
        """Request a WebSocket from a page of that origin, and return the answer."""
        version, key = "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="
        return self.ask("GET /acp", "Upgrade: websocket", "Connection: Upgrade", version, key, f"Origin: {origin}")


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def proxied(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxy")
    port, bridge_port = free_port(), free_port()
    options = ("--public-url", f"https://localhost:{port}")
    with (
        request.param(folder, port, bridge_port) as authority,
        serving(folder / "home", *options, agent=AGENT, port=bridge_port) as served,
    ):
        yield Proxied(served, port, authority)


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_proxy_streams_text_and_passes_a_large_prompt(scheme, proxied, tmp_path):
    url = f"{scheme}://{proxied.host}/acp"
    async with connect_url(url, token=proxied.served.token, tls=proxied.trust) as agent:
        session = await agent.new_session(tmp_path)
        turn = session.prompt("Begin.")
        async for event in turn:
            if isinstance(event, TextChunk):
                assert event.text == "first"
                turn.cancel()
        assert await session.ask("x" * (11 * MIB)) == "Thank you."


async def test_message_above_the_limit_is_refused(proxied):
    message = b'"' + b"x" * (66 * MIB) + b'"'
    headers = {"Authorization": f"Bearer {proxied.served.token}", "Content-Type": "application/json"}
    status = 413
    async with httpx2.AsyncClient(verify=proxied.trust, timeout=TIMEOUT_S) as client:
        with suppress(httpx2.NetworkError):  # the connection closes while the message is sent
            status = (await client.post(f"https://{proxied.host}/acp", content=message, headers=headers)).status_code
    assert status == 413


async def test_link_logs_a_browser_in_over_http2(proxied):
    assert proxied.served.url.startswith(f"https://{proxied.host}/login?code=")
    async with httpx2.AsyncClient(http2=True, verify=proxied.trust, timeout=TIMEOUT_S) as client:
        answer = await client.get(proxied.served.url)
        assert (answer.status_code, answer.http_version) == (303, "HTTP/2")
        assert re.match(r"__Host-.*; Secure", answer.headers["set-cookie"])
        page = await client.get(f"https://{proxied.host}/")
        assert "<title>Dragoman" in page.text


def test_foreign_pages_and_names_are_refused(proxied):
    assert proxied.upgrade(f"https://{proxied.host}").status == 101
    assert proxied.upgrade("https://evil.example").status == 403
    assert b"Dragoman" not in proxied.ask("GET /", "Connection: close", host="evil.example").body
