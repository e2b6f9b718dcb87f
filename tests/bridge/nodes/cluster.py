"""Nodes run by `dragoman serve` on separate machines, and viewers that connect to them over the network."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.bridge.nodes.machines import make_machine
from tests.bridge.viewers import AGENT, LOADING, PATIENCE_S, steps_text
from tests.waiting import until

_NOTE_WRITES = """
CREATE TABLE written (
    number bigserial PRIMARY KEY, session bigint, first bigint, last bigint, fence bigint, writer text);
CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO written (session, first, last, fence, writer)
    SELECT NEW.session, NEW.first, NEW.last, e.fence, current_setting('application_name')
    FROM dragoman_end e WHERE e.session = NEW.session;
    RETURN NULL;
END $$;
CREATE TRIGGER note_write AFTER INSERT ON dragoman_block FOR EACH ROW EXECUTE FUNCTION note_write();
"""


def note_writes(address):
    """Make the database record which node wrote each block, and with which fence."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_NOTE_WRITES)


def check_writes(address):
    """Check that each fence of a session has one writer, that fences only rise, and that no block is missing."""
    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT session, first, last, fence, writer FROM written ORDER BY number").fetchall()
    ends, fences = {}, {}
    for session, first, last, fence, writer in rows:
        end, old = ends.get(session, 0), max((each for of, each in fences if of == session), default=0)
        assert first == end + 1, f"session {session}: a block begins at {first}, behind {end}"
        assert fence >= old, f"session {session}: {writer} wrote with the fence {fence}, which is older than {old}"
        assert fences.setdefault((session, fence), writer) == writer, f"two nodes wrote session {session}"
        ends[session] = last
    return len(rows)


class NodeProcess:
    """A node on a separate machine."""

    def __init__(self, name, machine, folder, database, lease_s, environment):
        self.name = name
        self.machine = machine
        self._folder = folder
        self._database = database
        self._environment = {**environment, "DRAGOMAN_STORE_LEASE": str(lease_s)}
        self._process = None
        self._said = None
        self._reached = None

    async def start(self):
        """Start the node, also after a kill."""
        behaviour = {"capabilities": LOADING, "store": str(self._folder / "sessions"), "node": self.name}
        address = f"postgresql://tester@{self.machine.database}/{self._database}?application_name={self.name}"
        self._process = await asyncio.create_subprocess_exec(
            *(*self.machine.command, sys.executable, "-m", "dragoman", "serve", "--format", "json", "--no-open"),
            *("--host", self.machine.listens_at, "--port", "0", "--insecure-network", "--agent-name", "one"),
            *("--store", address, "--", sys.executable, str(AGENT), json.dumps(behaviour)),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "DRAGOMAN_HOME": str(self._folder / self.name), **self._environment},
        )
        self._said = json.loads(await self._process.stdout.readline())
        self._reached = await self.machine.reach(urlsplit(self._said["acp"]).port)

    def dial(self):
        """Connect a WebSocket."""
        host, port = self._reached
        return connect(
            self._said["acp"].replace("http://", "ws://"),
            host=host,
            port=port,
            additional_headers={"authorization": f"Bearer {self._said['token']}"},
            max_size=None,
            ping_interval=None,
            open_timeout=PATIENCE_S,
        )

    def agents(self):
        """Return the running agents of this node."""
        found = set()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                _, *words = path.read_bytes().decode(errors="replace").split("\0")
                is_agent = len(words) > 1 and words[0] == str(AGENT)
                if is_agent and str(self._folder) in words[1] and f'"node": "{self.name}"' in words[1]:
                    found.add(int(path.parts[2]))
        return found

    async def kill(self):
        """Kill the node."""
        self._process.kill()
        await self._process.wait()

    def freeze(self):
        """Stop the process with SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        """Continue the process with SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    async def stop(self):
        """End the node in any state."""
        if self._process is not None and self._process.returncode is None:
            self.thaw()
            await self.kill()
        self.machine.remove()


@asynccontextmanager
async def cluster_of(server, address, folder, lease_s, environments):
    """Start a node per environment, named by its number."""
    (folder / "sessions").mkdir()
    database = address.rpartition("/")[2]
    nodes = []
    try:
        for number, environment in enumerate(environments):
            machine = make_machine(server.port)
            nodes.append(NodeProcess(f"node{number}", machine, folder, database, lease_s, environment))
            await machine.open()
        await asyncio.gather(*(node.start() for node in nodes))
        yield nodes
    finally:
        for node in nodes:
            await node.stop()


class NetworkViewer:
    """A viewer that records every update with its cursor, and continues at another node after the last one."""

    def __init__(self):
        self.updates = []
        self.refusals = []
        self.session = None
        self._socket = None
        self._reading = None
        self._answers = {}
        self._next = 0

    async def connect(self, node):
        """Connect to a node instead of the previous one. Later messages of the previous node are lost."""
        self.leave()
        self._socket = await node.dial()
        self._reading = asyncio.ensure_future(self._read(self._socket))
        capabilities = {"_meta": {"dragoman": {"viewer": 1}}}
        answer = await self.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)
        assert "result" in answer, answer

    async def begin(self, node):
        """Create a session at a node, and return the number of refusals, each of which may have created a session."""
        await self.connect(node)
        refused = 0
        while "result" not in (answer := await self.ask("session/new", cwd="/work", mcpServers=[])):
            refused += 1
        self.session = answer["result"]["sessionId"]
        return refused

    async def open(self, node, session):
        """Continue at a node, after the last update. Every refusal has a message."""
        self.session = session
        for _ in range(100):
            await self.connect(node)
            after = {"_meta": {"dragoman": {"after": self.updates[-1][0]}}} if self.updates else {}
            answer = await self.ask("session/load", sessionId=session, cwd="/work", mcpServers=[], **after)
            if "result" in answer:
                return
            assert answer["error"]["message"]
        raise AssertionError(answer)

    async def ask(self, method, **params):
        """Send a request, and return its answer."""
        return await self.answer(await self.request(method, **params))

    async def request(self, method, **params):
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        await self._socket.send(json.dumps(message))
        return self._next

    async def answer(self, number):
        await until(lambda: number in self._answers or self._reading.done())
        return self._answers.pop(number)

    def is_answered(self, number):
        return number in self._answers

    async def start_prompt(self, *steps):
        prompt = [{"type": "text", "text": steps_text(*steps)}]
        return await self.request("session/prompt", sessionId=self.session, prompt=prompt)

    async def prompt_until_accepted(self, text):
        """Prompt until a node accepts the prompt. Every refusal has a message."""
        for _ in range(200):
            answer = await self.answer(await self.start_prompt({"say": text}))
            if "result" in answer:
                return
            self.refusals.append(answer["error"]["message"])
        raise AssertionError(self.refusals)

    def said(self):
        """Return the agent's texts that this viewer received."""
        return [
            update["content"]["text"] for _, update in self.updates if update["sessionUpdate"] == "agent_message_chunk"
        ]

    def leave(self):
        """Abort the connection."""
        if self._socket is not None:
            self._reading.cancel()
            self._socket.transport.abort()
            self._socket = None

    async def _read(self, socket):
        with suppress(ConnectionClosed):
            async for text in socket:
                self._receive(json.loads(text))

    def _receive(self, message):
        params = message.get("params", {})
        if message.get("method") == "session/update" and params["sessionId"] == self.session:
            self.updates.append((params["_meta"]["dragoman"]["cursor"], params["update"]))
        elif message.get("method") == "_dragoman/session" and params.get("sessionId") == self.session:
            assert not params.get("reset"), "a viewer received a reset"
        elif "method" not in message:
            self._answers[message["id"]] = message
