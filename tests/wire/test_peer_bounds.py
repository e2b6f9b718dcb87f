import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw
from msgspec.json import decode

from dragoman.errors import ConnectionClosedError, ErrorCode, MessageTooLongError, RemoteError
from dragoman.wire import MAX_LINE_BYTES, Peer, memory_pair
from tests.wire.peers import Recorder, catch, peer_and_raw_end, two_peers
from tests.wire.raw_end import raw_end

# ── back-pressure ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("yields", [False, True])
async def test_sender_waits_for_a_slow_reader_while_others_continue(yields):
    async with peer_and_raw_end() as (peer, end, _), two_peers() as (other, _):
        end.transport.pause_reading()
        sent = 0

        async def flood():
            nonlocal sent
            for _ in range(10_000):
                await peer.notify("n", "x" * 1_000)
                sent += 1
                if yields:
                    await asyncio.sleep(0)

        flooding = asyncio.ensure_future(flood())
        for _ in range(500):
            await other.call("echo")
        assert 0 < sent < 1_000
        end.transport.resume_reading()
        await flooding
        assert sent == 10_000


async def test_message_over_the_limit_is_not_sent():
    class Grows(Recorder):
        async def request(self, request):
            return "x" * MAX_LINE_BYTES if request.method == "grow" else request.params

    async with two_peers(None, Grows()) as (peer, _):
        for failing in (peer.call("echo", "x" * MAX_LINE_BYTES), peer.notify("n", "x" * MAX_LINE_BYTES)):
            assert isinstance(await catch(failing), MessageTooLongError)
        error = await catch(peer.call("grow"))
        assert isinstance(error, RemoteError)
        assert "the limit is 67108864 bytes" in error.message
        assert decode(await peer.call("echo", 1)) == 1


async def test_slow_notification_handler_stops_the_sender():
    class Stuck(Recorder):
        def notification(self, method, params):
            return self.wait()

        async def wait(self):
            await self.gate.wait()
            self.seen.append(1)

    handler = Stuck()
    async with two_peers(None, handler) as (peer, _):
        sent = 0

        async def flood():
            nonlocal sent
            for _ in range(10_000):
                await peer.notify("n", "x" * 1_000)
                sent += 1

        flooding = asyncio.ensure_future(flood())
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert sent < 3_000
        handler.gate.set()
        await flooding
        await peer.call("echo")
        assert len(handler.seen) == 10_000


async def test_reading_stops_if_the_peer_does_not_read_its_refusals():
    near, far = memory_pair()
    async with raw_end(far) as end, Peer(near, Recorder()):
        end.transport.pause_reading()
        for _ in range(20_000):
            end.send(b"garbage")
            await asyncio.sleep(0)
        assert near.unsent_bytes < 1_000_000
        end.transport.resume_reading()
        assert (await end.receive())["error"]["code"] == ErrorCode.PARSE_ERROR


# ── ending ──────────────────────────────────────────────────────────────────────────────────────────


async def test_every_open_call_fails_when_the_other_side_ends():
    async with peer_and_raw_end() as (peer, end, _):
        calls = [asyncio.ensure_future(catch(peer.call("m"))) for _ in range(10)]
        await end.receive()
        await end.transport.close()
        async with asyncio.timeout(30):
            results = await asyncio.gather(*calls)
        assert all(isinstance(result, ConnectionClosedError) for result in results)
        with pytest.raises(ConnectionClosedError):
            await peer.call("m")


async def test_waiting_sender_is_released_when_we_close():
    async with peer_and_raw_end() as (peer, end, _):
        end.transport.pause_reading()

        async def flood():
            while True:
                await peer.notify("n", "x" * 10_000)

        flooding = asyncio.ensure_future(catch(flood()))
        for _ in range(50):
            await asyncio.sleep(0)
    assert isinstance(await asyncio.wait_for(flooding, 30), ConnectionClosedError)


async def test_response_before_the_end_is_delivered():
    async with peer_and_raw_end() as (peer, end, _):
        call = asyncio.ensure_future(peer.call("m"))
        request = await end.receive()
        end.send({"method": "slow", "params": {}})
        end.send({"id": request["id"], "result": "in time"})
        await end.transport.close()
        assert decode(await call) == "in time"


async def test_closing_fails_calls_and_cancels_handlers():
    handler = Recorder()
    async with raw_end_and_peer(handler) as (peer, end):
        end.send({"id": 1, "method": "wait"})
        await end.ask({"id": 2, "method": "echo"})
        call = asyncio.ensure_future(catch(peer.call("m")))
        await end.receive()
    assert isinstance(await call, ConnectionClosedError)
    assert handler.cancelled == [b"1"]


@asynccontextmanager
async def raw_end_and_peer(handler):
    near, far = memory_pair()
    async with raw_end(far) as end:
        async with Peer(near, handler) as peer:
            yield peer, end
        await asyncio.wait_for(end.ended.wait(), 30)


async def test_requests_before_the_end_are_answered():
    async with peer_and_raw_end() as (peer, end, _):
        end.send({"id": 1, "method": "echo", "params": {}})
        peer.input_ended(was_file=False)
        await peer.wait_ended()
        assert (await end.receive())["id"] == 1


async def test_cancelled_wait_ends_the_peer_cleanly(caplog):
    caplog.set_level(logging.ERROR)
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), peer_and_raw_end() as (peer, _, _):
                await peer.call("never answered")
    assert not caplog.records


async def test_raw_params_are_sent_unchanged():
    async with peer_and_raw_end() as (peer, end, _):
        await peer.notify("n", Raw(b'{"a":  null}'))
        assert await end.lines.get() == b'{"jsonrpc":"2.0","method":"n","params":{"a":  null}}'


async def test_params_that_cannot_be_encoded_raise_and_send_nothing():
    async with peer_and_raw_end() as (peer, end, _):
        with pytest.raises(TypeError):
            await peer.notify("n", {"a": 1, "b": object()})
        await peer.notify("n", {"ok": True})
        assert (await end.receive())["params"] == {"ok": True}
