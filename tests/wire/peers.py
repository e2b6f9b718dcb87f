"""A handler that records its messages, and connected peers to test it with."""

import asyncio
import json
from contextlib import asynccontextmanager

from msgspec.json import decode

from dragoman.errors import ErrorCode, RpcError
from dragoman.wire import Peer, memory_pair
from tests.wire.raw_end import raw_end


class Recorder:
    """A handler that knows a few methods and records the notifications."""

    def __init__(self):
        self.seen = []
        self.gate = asyncio.Event()
        self.cancelled = []

    async def request(self, request):
        match request.method:
            case "echo":
                return request.params
            case "wait":
                try:
                    await self.gate.wait()
                except asyncio.CancelledError:
                    self.cancelled.append(request.id)
                    raise
                return "waited"
            case "answers-cancel":
                stop = asyncio.Event()
                request.on_cancel = stop.set
                await stop.wait()
                return "answered the cancel"
            case "catches":
                try:
                    await self.gate.wait()
                except asyncio.CancelledError:
                    return "partial"
            case "refuse":
                raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "no such thing")
            case "crash":
                raise KeyError("secret-canary")
            case "unencodable":
                return object()
        raise RpcError(ErrorCode.METHOD_NOT_FOUND, request.method)

    def notification(self, method, params):
        if method == "slow":
            return self.slowly(params)
        if method == "crash":
            raise KeyError("secret-canary")
        self.seen.append((method, json.loads(bytes(params) or b"null")))
        return None

    async def slowly(self, params):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.seen.append(("slow", decode(params)))


@asynccontextmanager
async def peer_and_raw_end(handler=None):
    near, far = memory_pair()
    handler = handler or Recorder()
    async with raw_end(far) as end, Peer(near, handler) as peer:
        yield peer, end, handler


@asynccontextmanager
async def two_peers(one=None, other=None):
    near, far = memory_pair()
    async with Peer(near, one or Recorder()) as peer, Peer(far, other or Recorder()) as opposite:
        yield peer, opposite


async def catch(call):
    try:
        return await call
    except Exception as error:  # noqa: BLE001 -- the test inspects the exception
        return error
