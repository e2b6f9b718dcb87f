"""HTTP with event streams, with servers that follow the proposal and servers that do not."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from msgspec.json import decode

from dragoman.errors import ConnectionClosedError, RemoteError
from dragoman.protocol import event_stream, websocket
from dragoman.protocol.address import AddressError, InvalidAddressError
from dragoman.protocol.url import open_url
from dragoman.wire import Peer
from tests.protocol.rough_server import event, rough_server
from tests.table import each_row
from tests.waiting import until
from tests.wire.peers import Recorder, catch

TOKEN = "s3cret-t0ken"


def update(text, session_id="s"):
    params = {"sessionId": session_id, "update": text}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def result(request, value=None):
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": value or {}}


class Log(Recorder):
    """Records updates and answers in one list."""

    def texts(self):
        return [params["update"] for _, params in self.seen]


@asynccontextmanager
async def peer_of(url, handler=None, **options):
    transport = await open_url(url, transport="http", **options)
    async with Peer(transport, handler or Log()) as peer:
        yield peer


@asynccontextmanager
async def connected(handler=None, **options):
    """Yield a server, an initialized peer, and the server's end of the connection's stream."""
    async with rough_server() as server, peer_of(server.url, handler, **options) as peer:
        await peer.call("initialize", {})
        yield server, peer, await server.stream()


@asynccontextmanager
async def in_session(handler=None):
    """Yield the same with an open session, and the server's end of its stream."""
    async with connected(handler) as (server, peer, stream):
        calling = asyncio.ensure_future(peer.call("session/new", {}))
        stream.send(event(result(await server.posted.get(), {"sessionId": "s"})))
        await calling
        yield server, peer, await server.stream("s")


async def prompted(server, peer):
    calling = asyncio.ensure_future(catch(peer.call("session/prompt", {"sessionId": "s"})))
    return calling, await server.posted.get()


async def test_initialize_is_answered_in_place():
    async with rough_server() as server, peer_of(server.url) as peer:
        assert decode(await peer.call("initialize", {})) == {"protocolVersion": 1}
        await server.stream()
    [first, *_] = server.requests
    assert first.headers["content-type"] == "application/json"
    assert "acp-connection-id" not in first.headers


async def test_session_has_its_own_stream_and_posts_name_it():
    handler = Log()
    async with in_session(handler) as (server, peer, stream):
        calling, request = await prompted(server, peer)
        assert request.headers["acp-connection-id"] == "c-1"
        assert request.headers["acp-session-id"] == "s"
        stream.send(event(update("a")) + event(update("b")))
        stream.send(event(result(request, {"stopReason": "end_turn"})))
        assert decode(await calling) == {"stopReason": "end_turn"}
        assert handler.texts() == ["a", "b"]


async def test_leaving_deletes_the_connection():
    async with connected() as (server, _, _):
        pass
    assert server.requests[-1].method == "DELETE"
    assert server.requests[-1].headers["acp-connection-id"] == "c-1"


async def test_posts_keep_their_order():
    async with connected() as (server, peer, _):
        for number in range(50):
            await peer.notify("n", number)
        for number in range(50):
            assert (await server.posted.get()).message["params"] == number


async def test_cookies_and_token_are_sent_with_every_request():
    async with connected(token=TOKEN, headers={"X-Team": "blue"}) as (server, peer, stream):
        await peer.notify("n")
        request = await server.posted.get()
        assert request.headers["cookie"] == "where=here"
        assert stream.cookie == "where=here"
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {TOKEN}"}
    assert {request.headers["x-team"] for request in server.requests} == {"blue"}


async def test_response_to_an_agent_request_names_its_session():
    async with in_session() as (server, _, stream):
        ask = {"jsonrpc": "2.0", "id": "q-1", "method": "echo", "params": {"sessionId": "s"}}
        stream.send(event(ask))
        request = await server.posted.get()
        assert request.message == {"jsonrpc": "2.0", "id": "q-1", "result": {"sessionId": "s"}}
        assert request.headers["acp-session-id"] == "s"


async def test_load_updates_precede_a_response_on_another_stream():
    handler = Log()
    async with connected(handler) as (server, peer, connection):
        calling = asyncio.ensure_future(peer.call("session/load", {"sessionId": "old"}))
        session = await server.stream("old")
        request = await server.posted.get()
        assert request.headers["acp-session-id"] == "old"
        connection.send(event(result(request)))
        connection.send(event(update("behind the answer", "other")))
        await until(lambda: handler.seen)
        for number in range(20):
            session.send(event(update(number, "old")))
        await calling
        assert handler.texts() == ["behind the answer", *range(20)]


async def test_refused_load_is_answered_immediately():
    async with connected() as (server, peer, connection):
        calling = asyncio.ensure_future(catch(peer.call("session/load", {"sessionId": "old"})))
        await server.stream("old")
        error = {"code": -32002, "message": "no such session"}
        connection.send(event({"jsonrpc": "2.0", "id": (await server.posted.get()).message["id"], "error": error}))
        assert (await calling).code == -32002


async def test_load_is_repeated_without_the_session_header():
    async with connected() as (server, peer, connection):

        def refuse(request):
            known = request.scope is None
            if not known:
                request.reply(404, b'{"error": "Unknown session id"}')
            return not known

        server.on_get = server.on_post = refuse
        calling = asyncio.ensure_future(peer.call("session/load", {"sessionId": "old"}))
        request = await server.posted.get()
        assert "acp-session-id" not in request.headers
        server.on_get = lambda request: False
        connection.send(event(update("a", "old")) + event(result(request)))
        await server.stream("old")
        await calling


@pytest.mark.parametrize("scope", ["s", None])
async def test_closed_session_has_no_stream(scope):
    async with connected() as (server, peer, connection):
        calling = asyncio.ensure_future(peer.call("session/new", {}))
        connection.send(event(result(await server.posted.get(), {"sessionId": "s"})))
        await calling
        session = await server.stream("s")
        calling = asyncio.ensure_future(peer.call("session/close", {"sessionId": "s"}))
        (session if scope else connection).send(event(result(await server.posted.get())))
        await calling
        await session.writer.wait_closed()
        assert server.streams.empty()


# ── streams that break ──────────────────────────────────────────────────────────────────────────


async def test_numbered_stream_resumes_without_repetition():
    handler = Log()
    async with in_session(handler) as (server, peer, stream):
        calling, request = await prompted(server, peer)
        stream.send(event(update("a"), 1) + event(update("b"), 2))
        stream.send(event(update("c"), 3)[:25])
        stream.break_off()
        again = await server.stream("s")
        assert again.last_event_id == "2"
        again.send(event(update("b"), 2) + event(update("c"), 3) + event(result(request), 4))
        await calling
        assert handler.texts() == ["a", "b", "c"]


async def test_equal_updates_are_not_dropped_as_repetitions():
    handler = Log()
    async with in_session(handler) as (server, peer, stream):
        calling, request = await prompted(server, peer)
        stream.send(event(update("a"), 1) * 2 + event(update("a"), 1) + event(result(request), 1))
        await calling
        assert handler.texts() == ["a", "a", "a"]


async def test_stream_that_ends_after_each_event_loses_nothing():
    handler = Log()
    async with in_session(handler) as (server, peer, stream):
        calling, request = await prompted(server, peer)
        for number in range(5):
            stream.send(event(update(number)))
            stream.end()
            stream = await server.stream("s")
        stream.send(event(result(request)))
        await calling
        assert handler.texts() == [0, 1, 2, 3, 4]


async def test_broken_unnumbered_stream_fails_its_requests():
    handler = Log()
    async with in_session(handler) as (server, peer, stream):
        calling, _ = await prompted(server, peer)
        stream.send(event(update("a")) + event(update("b"))[:25])
        stream.break_off()
        error = await calling
        assert isinstance(error, RemoteError)
        assert "lost an event stream" in error.message
        assert handler.texts() == ["a"]
        stream = await server.stream("s")
        calling, request = await prompted(server, peer)
        stream.send(event(result(request, {"stopReason": "end_turn"})))
        assert decode(await calling) == {"stopReason": "end_turn"}


async def test_stream_still_in_use_is_requested_again():
    async with in_session() as (server, peer, stream):
        refusals = iter([409, 503])

        def refuse(request):
            if (status := next(refusals, None)) is not None:
                request.reply(status)
            return status is not None

        server.on_get = refuse
        stream.end()
        stream = await server.stream("s")
        calling, request = await prompted(server, peer)
        stream.send(event(result(request)))
        assert decode(await calling) == {}


async def test_server_that_forgot_the_connection_ends_it():
    async with connected() as (server, peer, stream):
        server.on_get = lambda request: request.reply(404, b"Unknown Acp-Connection-Id") is None
        calling = asyncio.ensure_future(catch(peer.call("m")))
        await server.posted.get()
        stream.break_off()
        error = await calling
        assert isinstance(error, RemoteError)  # without event ids, the answer is lost
        await peer.wait_ended()
        with pytest.raises(AddressError, match=r"HTTP 404 \(Unknown Acp-Connection-Id\).*connect again"):
            await peer.call("m")


async def test_unavailable_server_ends_the_connection(monkeypatch):
    monkeypatch.setattr(event_stream, "RECONNECT_S", 0.0)
    async with connected() as (server, peer, stream):
        server.on_get = lambda request: request.reply(503) is None
        stream.end()
        await peer.wait_ended()
        with pytest.raises(AddressError, match="HTTP 503"):
            await peer.call("m")


# ── servers without ACP ────────────────────────────────────────────────────────────────────────


async def refusal(server, **options):
    async with peer_of(server.url, **options) as peer:
        with pytest.raises(ConnectionClosedError) as caught:
            await peer.call("initialize", {})
        assert server.url in str(caught.value)
        assert TOKEN not in str(caught.value)
        return str(caught.value)


@each_row(
    ("status", "words"),
    [
        (401, "needs a valid token"),
        (403, "access was denied"),
        (404, "check that the path is right"),
        (405, "no ACP endpoint at this path"),
        (413, "too large"),
        (418, "does not accept our messages"),
        (500, "reports an error"),
        (501, "try the other one"),
    ],
)
async def test_refusal_names_the_fix(status, words):
    async with rough_server() as server:
        server.on_post = lambda request: request.reply(status, b'{"error": "because"}') is None
        said = await refusal(server)
        assert f"HTTP {status} (because)" in said
        assert words in said


async def test_token_repeated_in_a_refusal_is_redacted():
    async with rough_server() as server:
        server.on_post = lambda request: request.reply(401, f"bad: {request.headers['authorization']}".encode()) is None
        assert "(bad: Bearer [hidden])" in await refusal(server, token=TOKEN)


async def test_a_redirect_is_not_followed():
    async with rough_server() as server, rough_server() as other:
        server.on_post = lambda request: request.reply(307, Location=other.url) is None
        assert "redirects, which is not followed" in await refusal(server, token=TOKEN)
        assert other.requests == []


async def test_web_page_is_not_an_agent():
    async with rough_server() as server:
        server.on_post = lambda request: request.reply(200, b"<html>Hello</html>", Content_Type="text/html") is None
        assert "without the JSON-RPC answer to initialize" in await refusal(server)


async def test_response_without_a_connection_id_is_refused():
    async with rough_server() as server:
        server.on_post = lambda request: request.reply(200, b'{"jsonrpc":"2.0","id":1,"result":{}}') is None
        async with peer_of(server.url) as peer:
            await peer.call("initialize", {})
            with pytest.raises(ConnectionClosedError, match="without a Acp-Connection-Id header"):
                await peer.call("m")


async def test_web_page_is_not_an_event_stream():
    async with rough_server() as server:
        server.on_get = lambda request: request.reply(200, b"<html>", Content_Type="text/html") is None
        async with peer_of(server.url) as peer:
            await peer.call("initialize", {})
            await peer.wait_ended()
            with pytest.raises(ConnectionClosedError, match=r"with text/html.*instead of an event stream"):
                await peer.call("m")


async def test_an_event_over_the_limit_ends_the_connection(monkeypatch):
    from dragoman.protocol import http_link

    monkeypatch.setattr(http_link, "MAX_FRAME_BYTES", 1000)
    async with connected() as (_, peer, stream):
        stream.send(b"data: " + b"x" * 2000)
        await peer.wait_ended()
        with pytest.raises(ConnectionClosedError, match="an event longer than the limit of 1000 bytes"):
            await peer.call("m")


async def test_server_exit_during_a_request_fails_it():
    async with connected() as (server, peer, _):
        server.on_post = lambda request: request.die() is None
        error = await catch(peer.call("m"))
        assert isinstance(error, RemoteError)
        assert "closed the connection" in error.message
        server.on_post = lambda request: False
        await peer.notify("n", 1)
        assert (await server.posted.get()).message["method"] == "n"


async def test_refused_request_fails_alone():
    async with connected() as (server, peer, stream):
        server.on_post = lambda request: request.reply(413, b"too large") is None
        error = await catch(peer.call("m"))
        assert (error.data, "HTTP 413 (too large)" in error.message) == ({"status": 413}, True)
        server.on_post = lambda request: False
        calling = asyncio.ensure_future(peer.call("m"))
        stream.send(event(result(await server.posted.get())))
        assert decode(await calling) == {}


async def test_silent_server_can_be_left():
    async with rough_server() as server:
        server.on_post = lambda request: True
        async with peer_of(server.url) as peer:
            calling = asyncio.ensure_future(peer.call("initialize", {}))
            await until(lambda: server.requests)
            calling.cancel()
        assert (await asyncio.gather(calling, return_exceptions=True))[0].__class__ is asyncio.CancelledError


async def test_unreachable_port_is_reported():
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    for way in ("http", "websocket", "auto"):
        with pytest.raises(AddressError, match="nothing listens there; check that the server runs"):
            await open_url(f"http://127.0.0.1:{port}/acp", transport=way, token=TOKEN)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("127.0.0.1:80/acp", {}, "begins with 127.0.0.1:|has no scheme"),
        ("ftp://host/acp", {}, "begins with ftp:"),
        ("http:///acp", {}, "has no host"),
        ("http://host:port/acp", {}, "malformed"),
        ("ws://host/acp", {"transport": "http"}, "use an http:// or https:// URL"),
        ("http://host/acp", {"token": " "}, "the token is empty"),
        ("http://host/acp", {"headers": {"X": "a\nb"}}, "header 'X' cannot be sent"),
    ],
)
async def test_unusable_options_are_refused_before_sending(url, options, words):
    with pytest.raises(InvalidAddressError, match=words):
        await open_url(url, **options)


async def test_no_secret_is_logged_or_shown(caplog):
    caplog.set_level(logging.DEBUG)
    async with rough_server() as server:
        server.on_post = lambda request: request.reply(401) is None
        secret = server.url.replace("http://", "http://me:passw0rd@") + "?key=passw0rd"
        for way in ("auto", "http"):
            transport = await open_url(secret, transport=way, token=TOKEN)
            async with Peer(transport, Log()) as peer:
                with pytest.raises(ConnectionClosedError) as caught:
                    await peer.call("initialize", {})
                assert "passw0rd" not in str(caught.value)
        with pytest.raises(websocket.NoWebSocketError):
            await open_url(server.url, transport="websocket", token=TOKEN)
    assert TOKEN not in caplog.text
    assert "passw0rd" not in caplog.text
