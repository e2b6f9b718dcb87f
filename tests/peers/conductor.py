"""A conductor of a proxy chain, as in the RFD and the schema of `proxy/initialize` and `proxy/successor`.

    conductor.py JSON     with the commands of the components: proxies, and the agent last

For its own client, on stdio, it is an ordinary agent. Component 0 follows the client, and the last one is the agent. A
proxy receives its predecessor's messages unchanged, and its successor's inside `proxy/successor`. Each request gets a
new id for each hop, and a cancellation names the id of the next hop.
"""

import asyncio
import json
import sys
from itertools import count

CANCEL = "$/cancel_request"
SUCCESSOR = "proxy/successor"


class Hop:
    """One connection: to the client (position -1), a proxy or the agent."""

    def __init__(self, position, reader, writer):
        self.position = position
        self.reader = reader
        self.writer = writer
        self.waiting = {}
        """The origin hop of each request sent here, and its id there."""

    def send(self, message):
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class Conductor:
    def __init__(self, hops):
        self._hops = hops
        self._ids = count(1)
        self._agent = len(hops) - 2

    def hop(self, position):
        return self._hops[position + 1]

    async def listen(self, hop):
        while line := await hop.reader.readline():
            self._receive(hop, json.loads(line))
            await asyncio.gather(*(each.writer.drain() for each in self._hops))

    def _receive(self, hop, message):
        if "method" not in message:
            origin, origin_id = hop.waiting.pop(message.pop("id"))
            origin.send({**message, "id": origin_id})
        elif message["method"] == CANCEL:
            self._cancel(hop, message["params"]["requestId"])
        elif hop.position == -1:
            self._forward(hop, self.hop(0), message["method"], message)
        elif message["method"] == SUCCESSOR:
            inner = message["params"]
            assert hop.position < self._agent, "the agent has no successor"
            self._forward(hop, self.hop(hop.position + 1), inner["method"], {**message, "params": inner.get("params")})
        else:
            self._forward(hop, self.hop(hop.position - 1), message["method"], message)

    def _forward(self, origin, target, method, message):
        """Send a message to a neighbour: unchanged down the chain, and in an envelope up to a proxy."""
        params = {} if message.get("params") is None else {"params": message["params"]}
        if method == "initialize" and target.position < self._agent:
            method = "proxy/initialize"
        if origin.position > target.position >= 0:
            method, params = SUCCESSOR, {"params": {"method": method, **params, "_meta": {"hop": origin.position}}}
        if "id" in message:
            id_ = f"c{next(self._ids)}"
            target.waiting[id_] = (origin, message["id"])
            target.send({"id": id_, "method": method, **params})
        else:
            target.send({"method": method, **params})

    def _cancel(self, origin, cancelled):
        for hop in self._hops:
            for id_, waiting in hop.waiting.items():
                if waiting == (origin, cancelled):
                    hop.send({"method": CANCEL, "params": {"requestId": id_}})


async def main():
    loop = asyncio.get_running_loop()
    limit = 2**26
    reader = asyncio.StreamReader(limit)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    hops = [Hop(-1, reader, asyncio.StreamWriter(transport, protocol, None, loop))]
    for position, command in enumerate(json.loads(sys.argv[1])):
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        child = await asyncio.create_subprocess_exec(*command, **pipes, limit=limit)
        hops.append(Hop(position, child.stdout, child.stdin))
    conductor = Conductor(hops)
    tasks = [asyncio.create_task(conductor.listen(hop)) for hop in hops]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for hop in hops[1:]:
        hop.writer.close()
    await asyncio.wait(tasks[1:], timeout=10)


asyncio.run(main())
