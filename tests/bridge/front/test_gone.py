"""Clients that have disconnected when something is sent. Servers report this by an OSError."""

import asyncio
import errno
import json

import pytest

from dragoman.bridge import Bridge
from dragoman.bridge.front.app import Application
from tests.bridge.front.serving import TOKEN, make_guard, make_settings

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Peer:
    """The server's side of a request whose peer disconnects after some messages."""

    def __init__(self, takes, *received):
        self.sent = []
        self._takes = takes
        self._received = list(received)

    async def receive(self):
        if self._received:
            return self._received.pop(0)
        return await asyncio.Event().wait()

    async def send(self, message):
        if len(self.sent) == self._takes:
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        self.sent.append(message)

    def header(self, name):
        return dict(self.sent[0]["headers"])[name]


def scope(kind, method="POST", **headers):
    names = {"host": "127.0.0.1:1", "authorization": f"Bearer {TOKEN}", **headers}
    pairs = [(name.replace("_", "-").encode(), value) for name, value in names.items()]
    pairs = [(name, value if isinstance(value, bytes) else value.encode()) for name, value in pairs]
    plain = {"type": kind, "method": method, "path": "/acp", "query_string": b"", "http_version": "1.1"}
    return {**plain, "headers": pairs, "scheme": "http", "client": ("127.0.0.1", 2), "subprotocols": []}


@pytest.fixture
async def app(tmp_path):
    async with asyncio.timeout(20), Bridge(make_settings(tmp_path)) as bridge:
        yield Application(bridge, make_guard(1))


async def initialize(app, *, takes=2):
    peer = Peer(takes, {"type": "http.request", "body": json.dumps(INITIALIZE).encode()})
    await app(scope("http", content_type="application/json"), peer.receive, peer.send)
    return peer


@pytest.mark.parametrize("takes", [0, 1])
async def test_unread_answer_is_not_logged_as_a_failure(app, takes, caplog):
    assert len((await initialize(app, takes=takes)).sent) == takes
    assert not caplog.records


@pytest.mark.parametrize("takes", [0, 1, 2])
async def test_stream_ends_when_its_reader_disconnects(app, takes, caplog):
    connection = (await initialize(app)).header(b"acp-connection-id")
    listener = Peer(takes)
    headers = {"accept": "text/event-stream", "acp_connection_id": connection}
    stream = asyncio.create_task(app(scope("http", "GET", **headers), listener.receive, listener.send))
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    sender = Peer(2, {"type": "http.request", "body": json.dumps(new).encode()})
    headers = {"content_type": "application/json", "acp_connection_id": connection}
    await app(scope("http", **headers), sender.receive, sender.send)
    await stream
    assert len(listener.sent) == takes
    assert not caplog.records


@pytest.mark.parametrize("takes", [0, 1])
async def test_viewer_with_a_dead_socket_is_closed(app, takes, caplog):
    hello = {"type": "websocket.receive", "text": json.dumps(INITIALIZE)}
    peer = Peer(takes, {"type": "websocket.connect"}, hello)
    await app(scope("websocket"), peer.receive, peer.send)
    assert len(peer.sent) == takes
    assert not caplog.records


async def test_unread_refusal_is_not_logged_as_a_failure(app, caplog):
    peer = Peer(0)
    await app(scope("http", "PUT"), peer.receive, peer.send)
    upgrade = Peer(0, {"type": "websocket.connect"})
    await app({**scope("websocket"), "path": "/nowhere"}, upgrade.receive, upgrade.send)
    assert not caplog.records
