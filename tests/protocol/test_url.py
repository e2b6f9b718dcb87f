"""Opening the URL of an agent: the transport, the HTTP version and the trusted certificates."""

import asyncio
import datetime as dt
import ipaddress
from contextlib import asynccontextmanager

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.json import decode
from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.http11 import Response

from dragoman.protocol.address import AddressError
from dragoman.protocol.streamable_http import StreamableHttpTransport
from dragoman.protocol.url import open_url
from dragoman.protocol.websocket import NoWebSocketError
from dragoman.wire import Peer
from dragoman.wire.websocket import WebSocketTransport
from tests.protocol.asgi_endpoint import Endpoint, serving, trusting
from tests.protocol.rough_server import rough_server
from tests.waiting import until
from tests.wire.peers import Recorder

TOKEN = "s3cret-t0ken"


@asynccontextmanager
async def peer_at(url, handler=None, **options):
    transport = await open_url(url, **options)
    async with Peer(transport, handler or Recorder()) as peer:
        await peer.call("initialize", {})
        yield peer, transport


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Create the files of a key and of a self-signed certificate."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    (folder / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    (folder / "certificate").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder / "key", folder / "certificate"


async def test_http_2_is_used_if_supported():
    app = Endpoint()
    async with serving(app) as port, peer_at(f"http://127.0.0.1:{port}/acp", transport="http") as (peer, _):
        assert decode(await peer.call("echo", {"x": 1})) == {"x": 1}
    assert app.versions == {"2"}


async def test_http_1_is_used_without_http_2():
    async with rough_server() as server, peer_at(server.url, transport="http"):
        await server.stream()
    assert [request.method for request in server.requests] == ["POST", "GET", "DELETE"]


async def test_with_tls_the_version_is_agreed_on(certificate):
    app = Endpoint()
    context = trusting(certificate[1])
    async with serving(app, tls=certificate) as port:
        url = f"https://127.0.0.1:{port}/acp"
        async with peer_at(url, transport="http", tls=context) as (peer, _):
            assert decode(await peer.call("echo", {"x": 1})) == {"x": 1}
        assert app.versions == {"2"}
        async with peer_at(url, tls=context) as (peer, transport):
            assert isinstance(transport, WebSocketTransport)
            assert decode(await peer.call("echo", {"x": 2})) == {"x": 2}


@pytest.mark.parametrize("choice", ["websocket", "auto"])
async def test_untrusted_certificate_is_refused(choice, certificate):
    async with serving(Endpoint(), tls=certificate) as port:
        with pytest.raises(AddressError, match=r"certificate is not trusted.*SSL_CERT_FILE.*as tls="):
            await open_url(f"https://127.0.0.1:{port}/acp", transport=choice, token=TOKEN)


async def test_untrusted_certificate_is_refused_over_http(certificate):
    app = Endpoint()
    async with serving(app, tls=certificate) as port:
        transport = await open_url(f"https://127.0.0.1:{port}/acp", transport="http", token=TOKEN)
        async with Peer(transport, Recorder()) as peer:
            with pytest.raises(AddressError, match=r"certificate is not trusted.*as tls="):
                await peer.call("initialize", {})
    assert app.versions == set()


async def test_websocket_is_used_if_available():
    async with serving(Endpoint()) as port:
        for url in (f"http://127.0.0.1:{port}/acp", f"ws://127.0.0.1:{port}/acp"):
            async with peer_at(url) as (peer, transport):
                assert isinstance(transport, WebSocketTransport)
                assert decode(await peer.call("echo", {"x": 1})) == {"x": 1}


async def test_http_is_used_without_a_websocket():
    async with serving(Endpoint(has_websocket=False)) as port:
        async with peer_at(f"http://127.0.0.1:{port}/acp") as (peer, transport):
            assert isinstance(transport, StreamableHttpTransport)
            assert decode(await peer.call("echo", {"x": 1})) == {"x": 1}
        with pytest.raises(NoWebSocketError, match="HTTP 403"):
            await open_url(f"ws://127.0.0.1:{port}/acp")


async def test_token_is_sent_in_the_handshake_and_redirects_are_not_followed():
    handshakes = []

    def redirect(connection, request):
        handshakes.append(request.headers["Authorization"])
        return Response(302, "Found", Headers(Location=where), b"")

    async def never(connection):
        await connection.wait_closed()

    async with rough_server() as other, serve(never, "127.0.0.1", 0, process_request=redirect) as server:
        where = other.url.replace("http", "ws", 1)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NoWebSocketError, match="redirects, which is not followed"):
            await open_url(f"ws://127.0.0.1:{port}/acp", token=TOKEN)
        assert handshakes == [f"Bearer {TOKEN}"]
        assert other.requests == []


async def test_server_that_is_not_http_is_reported():
    async def babble(reader, writer):
        writer.write(b"220 ready\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NoWebSocketError, match="answered but did not open a WebSocket"):
            await open_url(f"ws://127.0.0.1:{port}/")
        async with Peer(await open_url(f"http://127.0.0.1:{port}/"), Recorder()) as peer:
            with pytest.raises(AddressError, match="closed the connection"):
                await peer.call("initialize", {})


async def test_sessions_of_one_endpoint_do_not_block_each_other():
    app = Endpoint()
    async with serving(app) as port, peer_at(f"http://127.0.0.1:{port}/acp", transport="http") as (peer, _):
        sessions = [decode(await peer.call("session/new", {}))["sessionId"] for _ in range(120)]
        calls = [peer.call("echo", {"sessionId": session, "n": n}) for n, session in enumerate(sessions)]
        answers = [decode(answer) for answer in await asyncio.gather(*calls)]
        assert answers == [{"sessionId": session, "n": n} for n, session in enumerate(sessions)]


class Slow(Recorder):
    """Accepts one update, and waits for a signal before the next."""

    def __init__(self):
        super().__init__()
        self.numbers = []

    def notification(self, method, params):
        self.numbers.append(decode(params)["number"])
        return self.gate.wait()


async def test_slow_reader_makes_the_server_wait():
    slow = Slow()
    async with rough_server() as server, peer_at(server.url, slow, transport="http") as (_, transport):
        stream = await server.stream()
        line = '{"jsonrpc":"2.0","method":"n","params":{"number":%d,"text":"%s"}}'
        for number in range(2_000):
            stream.send(f"data: {line % (number, 'x' * 10_000)}\n\n".encode())
        unsent = stream.writer.transport.get_write_buffer_size
        await until(lambda: transport.is_paused)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert unsent() > 5_000_000
        assert slow.numbers == [0]
        slow.gate.set()
        await until(lambda: len(slow.numbers) >= 2_000)
        assert slow.numbers == list(range(2_000))
