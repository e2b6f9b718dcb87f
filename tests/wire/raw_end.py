"""The far end of a transport as raw bytes, which can send lines that no well-behaved peer would send."""

import asyncio
import json
from contextlib import asynccontextmanager


class RawEnd:
    def __init__(self, transport):
        self.transport = transport
        self.lines = asyncio.Queue()
        self.ended = asyncio.Event()

    def lines_received(self, lines):
        for line in lines:
            self.lines.put_nowait(line)

    def input_ended(self, *, was_file):
        self.ended.set()

    def send(self, data):
        if isinstance(data, dict):
            data = json.dumps({"jsonrpc": "2.0", **data}).encode()
        self.transport.write(data + b"\n")

    async def receive(self):
        async with asyncio.timeout(30):
            return json.loads(await self.lines.get())

    async def ask(self, data):
        self.send(data)
        return await self.receive()


@asynccontextmanager
async def raw_end(transport):
    async with asyncio.TaskGroup() as tasks:
        end = RawEnd(transport)
        transport.start(end, tasks)
        try:
            yield end
        finally:
            await transport.close()
