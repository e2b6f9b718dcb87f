"""A bridge with an agent and viewers, for the tests of its parts."""

import asyncio
import json
import sys
import threading
from contextlib import asynccontextmanager
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from dragoman.bridge import AgentLimits, AgentSpec, Bridge, BridgeSettings, ViewerLimits
from dragoman.bridge.viewers import ViewerAccess
from dragoman.store.disk import READ, Disk

AGENT = Path(__file__).parent / "agents" / "agent.py"
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
PATIENCE_S = 20
A_DAY_S = 86_400
LOADING = {"loadSession": True}
RESUMING = {"sessionCapabilities": {"resume": {}}}


def agent(name="one", **behaviour):
    return AgentSpec(name, (sys.executable, str(AGENT), json.dumps(behaviour)))


def steps_text(*steps):
    """Return a prompt for the test agent. It is a command, from which the bridge makes no title."""
    return f"/steps {json.dumps(steps)}"


def settings_of(agents, home, cwd, *, store=None, lease_s=None, **limits):
    """Return the settings of a bridge, with limits of its agents and its viewers."""
    of_agents = {key: value for key, value in limits.items() if key in AgentLimits.__struct_fields__}
    of_viewers = {key: value for key, value in limits.items() if key not in of_agents}
    return BridgeSettings(
        agents=agents,
        home=home,
        cwd=cwd,
        store=store,
        lease_s=lease_s,
        agent_limits=AgentLimits(**of_agents),
        viewer_limits=ViewerLimits(**of_viewers),
    )


@asynccontextmanager
async def bridge_of(home, *specs, disk=None, patience_s=2 * PATIENCE_S, **changes):
    settings = settings_of(**{"agents": specs or (agent(),), "home": Path(home), "cwd": "/work", **changes})
    async with asyncio.timeout(patience_s), Bridge(settings, disk=disk) as bridge:
        yield bridge


@asynccontextmanager
async def serve(home, *specs, **changes):
    async with bridge_of(home, *specs, **changes) as bridge:
        yield bridge.agent()


class GatedDisk(Disk):
    """A disk with a gate. While it is shut, a file opens for reading only when the gate lets one through."""

    def __init__(self):
        super().__init__()
        self._passes = threading.Semaphore(0)
        self._is_shut = False
        self.waited = 0

    def shut(self):
        self._is_shut = True

    def let_one_through(self):
        self._passes.release()

    def open_gate(self):
        self._is_shut = False
        self._passes.release(1_000)

    def open(self, path, flags):
        if self._is_shut and flags == READ:
            self.waited += 1
            self._passes.acquire()
        return super().open(path, flags)


class SeenEvent(NamedTuple):
    """One message that a viewer received, with its event id, if any."""

    data: bytes
    id: bytes | None


def events_of(items):
    """Return the messages of a batch from a stream, one by one."""
    return [SeenEvent(*event) for item in items for event in zip_longest(item.messages(), item.ids())]


class RecordedViewer:
    """A viewer that records everything that it received."""

    def __init__(self, served, *, read_only=False, only=None):
        self.viewer = served.open_viewer(ViewerAccess(read_only or only is not None, only))
        self.stream = self.viewer.stream()
        self.seen = []
        self.lines = []
        self._next = 0

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.viewer.receive(line)

    def request(self, method, params=None, **extra):
        self._next += 1
        request_id = f"q{self._next}"
        self.send({"id": request_id, "method": method, "params": params or {}, **extra})
        return request_id

    async def more(self):
        async with asyncio.timeout(PATIENCE_S):
            events = events_of(await self.stream.next_batch())
        if not events:
            raise EOFError(self.viewer.close_reason)
        self.lines += [event.data for event in events]
        self.seen += [json.loads(event.data) for event in events]

    async def until(self, condition):
        """Read until a message matches, and return it. Earlier messages count as well."""
        at = 0
        while True:
            while at < len(self.seen):
                if condition(self.seen[at]):
                    return self.seen[at]
                at += 1
            await self.more()

    async def answer(self, request_id):
        return await self.until(lambda message: message.get("id") == request_id and "method" not in message)

    async def ask(self, method, params=None, **extra):
        return await self.answer(self.request(method, params, **extra))

    async def initialize(self, *, extensions=False, **capabilities):
        if extensions:
            capabilities["_meta"] = {"dragoman": {"viewer": 1}}
        return await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def new(self, cwd="/work", **params):
        return (await self.ask("session/new", {"cwd": cwd, "mcpServers": [], **params}))["result"]["sessionId"]

    async def load(self, session, method="session/load", cwd="/work", after=None, **params):
        if after is not None:
            params["_meta"] = {"dragoman": {"after": after}}
        return await self.ask(method, {"sessionId": session, "cwd": cwd, "mcpServers": [], **params})

    def start_prompt(self, session, *steps):
        text = steps_text(*steps)
        return self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    async def prompt(self, session, *steps):
        return await self.answer(self.start_prompt(session, *steps))

    async def asked(self, method="session/request_permission"):
        return await self.until(lambda message: message.get("method") == method and "id" in message)

    def reply(self, asked, result):
        self.send({"id": asked["id"], "result": result})

    def choose(self, asked, option="yes"):
        self.reply(asked, {"outcome": {"outcome": "selected", "optionId": option}})

    def updates(self, session=None):
        return [
            message["params"]["update"]
            for message in self.seen
            if message.get("method") == "session/update" and session in (None, message["params"]["sessionId"])
        ]

    def said(self, session=None):
        return [
            update["content"]["text"]
            for update in self.updates(session)
            if update["sessionUpdate"] == "agent_message_chunk"
        ]

    def params_of(self, method):
        return [message["params"] for message in self.seen if message.get("method") == method]

    async def announced(self, session, condition):
        """Wait for an announcement of a session that matches, and return its params."""
        message = await self.until(
            lambda message: (
                message.get("method") == "_dragoman/session"
                and message["params"]["sessionId"] == session
                and condition(message["params"])
            )
        )
        return message["params"]

    def forget(self):
        self.seen, self.lines = [], []


async def join(served, *, read_only=False, only=None, extensions=False, **capabilities):
    """Open a viewer and initialize it. `only` is the one session that it may see."""
    one = RecordedViewer(served, read_only=read_only, only=only)
    await one.initialize(extensions=extensions, **capabilities)
    return one


def go_on_elsewhere(store, session, turns=3):
    """Add turns to the agent's session, as if another client had used it."""
    with (store / session).open("a") as file:
        for turn in range(turns):
            for who, text in (("user", f"Question {turn}"), ("agent", f"answer {turn}")):
                content = {"sessionUpdate": f"{who}_message_chunk", "content": {"type": "text", "text": text}}
                params = {"sessionId": session, "update": content}
                line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})
                file.write(f"{line}\n")
