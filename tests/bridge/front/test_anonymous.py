"""Connections without a credential cannot lock the owner out."""

import asyncio
import ssl
from contextlib import AsyncExitStack

import httpx2
import pytest

from dragoman.bridge.front.limits import ServerLimits
from tests.bridge.front.client import PATIENCE_S, http_viewer
from tests.bridge.front.http2 import connect_http2
from tests.bridge.front.raw_http1 import connect, status_of
from tests.bridge.front.raw_http2 import GOAWAY, PING, SETTINGS, frame, open_raw
from tests.bridge.front.serving import serving
from tests.waiting import until

FEW = ServerLimits(max_sockets=8, ping_s=0.05, watch_s=0.05)


async def ask(served):
    """Request a protected path over a new connection."""
    async with httpx2.AsyncClient(base_url=served.url, headers=served.headers, timeout=PATIENCE_S) as http:
        return (await http.get("/config.json")).status_code


async def test_owner_is_served_despite_silent_http2_connections(tmp_path):
    async with serving(tmp_path, limits=FEW) as served, AsyncExitStack() as stack:
        strangers = [await stack.enter_async_context(open_raw(served)) for _ in range(FEW.max_sockets)]
        readers = [asyncio.create_task(stranger.to_end()) for stranger in strangers]
        await until(lambda: all(one.count().get((PING, 0), 0) > 2 for one in strangers))  # all answer pings
        assert served.server.open_connections == FEW.max_sockets
        for _ in range(3):
            assert await ask(served) == 200
        await asyncio.wait_for(readers[0], PATIENCE_S)
        assert [one.done() for one in readers[3:]] == [False] * (FEW.max_sockets - 3)  # one for each new connection
        for reader in readers:
            reader.cancel()


async def test_owner_is_served_despite_silent_connections(tmp_path):
    async with serving(tmp_path, limits=FEW) as served:
        strangers = [await connect(served) for _ in range(FEW.max_sockets)]
        await until(lambda: served.server.open_connections == FEW.max_sockets)
        assert await ask(served) == 200
        assert await asyncio.wait_for(strangers[0][0].read(), PATIENCE_S) == b""
        for _, writer in strangers:
            writer.close()


async def test_owner_is_served_despite_unfinished_tls_handshakes(tmp_path, tls):
    trust = ssl.create_default_context(cafile=tls.certificate)
    async with serving(tmp_path, limits=FEW, tls=tls) as served:
        strangers = [await connect(served) for _ in range(FEW.max_sockets)]
        await until(lambda: served.server.open_connections == FEW.max_sockets)
        async with httpx2.AsyncClient(base_url=served.url, headers=served.headers, verify=trust) as http:
            assert (await http.get("/config.json")).status_code == 200
        assert await asyncio.wait_for(strangers[0][0].read(), PATIENCE_S) == b""
        for _, writer in strangers:
            writer.close()


async def test_connection_with_a_credential_is_not_cut(tmp_path):
    async with serving(tmp_path, limits=FEW) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        async with viewer.stream() as events:
            strangers = [await connect(served) for _ in range(3 * FEW.max_sockets)]
            assert (await viewer.open_session(events)) is not None
            assert served.server.open_connections <= FEW.max_sockets
            for _, writer in strangers:
                writer.close()


async def test_new_connection_is_refused_if_all_have_credentials(tmp_path):
    async with serving(tmp_path, limits=ServerLimits(max_sockets=2)) as served:
        held = [await connect_http2(served) for _ in range(2)]
        for client in held:
            await client.__aenter__()
            assert (await client.answered(await client.ask("GET", "/config.json")))[0] == 200
        reader, writer = await connect(served)
        assert await status_of(reader) == 503
        writer.close()
        await held[0].__aexit__()
        await until(lambda: served.server.open_connections <= 1)
        assert await ask(served) == 200
        await held[1].__aexit__()


async def test_wrong_credential_does_not_count(tmp_path):
    wrong = {"authorization": "Bearer " + "x" * 43}
    async with (
        serving(tmp_path, limits=ServerLimits(max_sockets=1)) as served,
        httpx2.AsyncClient(base_url=served.url, headers=wrong) as http,
    ):
        assert (await http.get("/config.json")).status_code == 401
        assert await ask(served) == 200


@pytest.mark.parametrize("busy", [b"", frame(PING, b"\0" * 8), frame(SETTINGS)])
async def test_control_frames_do_not_keep_an_http2_connection_open(tmp_path, busy):
    limits = ServerLimits(idle_s=0.5, watch_s=0.05, ping_s=0.05)
    async with serving(tmp_path, limits=limits) as served, open_raw(served) as stranger:
        while (one := await stranger.next()) is not None:
            if one.kind == PING and not one.flags:
                stranger.send(busy)
        assert stranger.count()[GOAWAY, 0] == 1
        assert stranger.goaway() == (0, b"")
        assert served.server.open_connections == 0


async def test_http2_connection_with_a_running_request_is_not_idle(tmp_path):
    limits = ServerLimits(idle_s=0.2, watch_s=0.05, ping_s=0.05)
    # The viewer has another connection, because this one would be idle between its requests.
    async with serving(tmp_path, limits=limits) as served, http_viewer(served) as viewer:
        await viewer.initialize()
        async with await connect_http2(served) as client:
            events = await client.ask("GET", "/acp", accept="text/event-stream", acp_connection_id=viewer.id)
            seen = client.pings
            await client.wait(lambda: client.pings > seen + 10)  # ten times 0.05 s is longer than the idle limit
            assert events not in client.ended
            client.core.reset_stream(events)
            await client.flush()
            await client.wait(lambda: client.is_closed)
