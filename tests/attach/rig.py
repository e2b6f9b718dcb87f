"""A bridge in a child process that can be killed and restarted, and an editor on the stdio of `dragoman attach`."""

import asyncio
import itertools
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from tests.bridge.cuttable_proxy import CuttableProxy
from tests.bridge.viewers import AGENT, steps_text
from tests.commands import DRAGOMAN
from tests.ports import free_port

PATIENCE_S = 30
CAPABILITIES = {"loadSession": True, "sessionCapabilities": {"resume": {}}}


class BridgeProcess:
    """`dragoman serve` with the same port and home after each restart."""

    def __init__(self, directory, host, *options, command=None, behaviour=None):
        self.home = directory / "home"
        self.work = directory / "work"
        self.log = directory / "agent.log"
        store = directory / "store"
        for each in (self.work, store):
            each.mkdir(parents=True, exist_ok=True)
        settings = {"capabilities": CAPABILITIES, "store": str(store), "log": str(self.log), **(behaviour or {})}
        self.port = free_port()
        agent = command or [sys.executable, str(AGENT), json.dumps(settings)]
        hosts = ["--allow-host", host] if host else []
        self._command = [
            *DRAGOMAN,
            "serve",
            "--format",
            "json",
            "--port",
            str(self.port),
            "--cwd",
            str(self.work),
            *hosts,
        ]
        self._command += [*options, "--", *agent]
        self._process = None

    @property
    def token_file(self):
        return self.home / "bridge" / "token"

    async def start(self):
        environment = {**os.environ, "DRAGOMAN_HOME": str(self.home)}
        self._process = await asyncio.create_subprocess_exec(
            *self._command, env=environment, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
        )
        async with asyncio.timeout(PATIENCE_S):
            return json.loads(await self._process.stdout.readline())

    async def kill(self, number=signal.SIGKILL):
        self._process.send_signal(number)
        async with asyncio.timeout(PATIENCE_S):
            await self._process.wait()

    async def close(self):
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    def seen(self, method):
        """Return the messages of a method that the agent has received, across restarts."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [message for message in map(json.loads, lines) if message.get("method") == method]


class Editor:
    """An editor that started a command and exchanges ACP messages with it, line by line."""

    def __init__(self, process):
        self.process = process
        self.seen = []
        self.stderr = b""
        self._ids = itertools.count(1)
        self._reading = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]
        self._more = asyncio.Event()

    async def _read(self):
        while line := await self.process.stdout.readline():
            self.seen.append(json.loads(line))
            self._more.set()
        self._more.set()

    async def _read_stderr(self):
        while data := await self.process.stderr.read(4096):
            self.stderr += data

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def request(self, method, params=None):
        request_id = f"e{next(self._ids)}"
        self.send({"id": request_id, "method": method, "params": params or {}})
        return request_id

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def answer(self, message, result):
        self.send({"id": message["id"], "result": result})

    async def until(self, condition):
        """Read until a message matches and return it. Earlier messages are searched first."""
        at = 0
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for message in self.seen[at:]:
                    at += 1
                    if condition(message):
                        return message
                assert not self._reading[0].done(), (self.seen[-3:], self.stderr)
                self._more.clear()
                await self._more.wait()

    async def answered(self, request_id):
        return await self.until(lambda message: message.get("id") == request_id and "method" not in message)

    async def ask(self, method, params=None):
        return await self.answered(self.request(method, params))

    async def asked(self, method):
        """Wait for a request of the agent."""
        return await self.until(lambda message: message.get("method") == method and "id" in message)

    async def told(self, words):
        """Wait for a text on stderr."""
        async with asyncio.timeout(PATIENCE_S):
            while words.encode() not in self.stderr:
                await asyncio.sleep(0.002)

    async def initialize(self, version=1, **capabilities):
        params = {"protocolVersion": version, "clientCapabilities": capabilities}
        if version == 2:
            params = {"protocolVersion": 2, "capabilities": {}, "info": {"name": "editor", "version": "1"}}
        return await self.ask("initialize", params)

    async def new(self, cwd):
        return (await self.ask("session/new", {"cwd": str(cwd), "mcpServers": []}))["result"]["sessionId"]

    def load_params(self, session, cwd):
        return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}

    async def load(self, session, cwd):
        return await self.ask("session/load", self.load_params(session, cwd))

    def prompt(self, session, *steps):
        """Send a prompt and return its id."""
        content = [{"type": "text", "text": steps_text(*steps)}]
        return self.request("session/prompt", {"sessionId": session, "prompt": content})

    async def says(self, text):
        return await self.until(lambda message: said_in(message) == text)

    def said(self):
        """Return the texts from the agent in order."""
        return [text for message in self.seen if (text := said_in(message)) is not None]

    def updates(self, kind):
        """Return the updates of one kind."""
        found = [message["params"]["update"] for message in self.seen if message.get("method") == "session/update"]
        return [update for update in found if update["sessionUpdate"] == kind]

    async def close(self):
        """Close the editor's side and return the exit code of the command."""
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self._reading)
            return await self.process.wait()


def said_in(message):
    update = message.get("params", {}).get("update", {}) if message.get("method") == "session/update" else {}
    return update["content"]["text"] if update.get("sessionUpdate") == "agent_message_chunk" else None


@asynccontextmanager
async def attached(url, *options, token_file=None, env=None):
    """Start `dragoman attach` as an editor does."""
    given = ["--token-file", str(token_file)] if token_file else []
    process = await asyncio.create_subprocess_exec(
        *[*DRAGOMAN, "attach", url, *given, *options],
        env={**os.environ, **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=32 * 1024 * 1024,
    )
    editor = Editor(process)
    try:
        yield editor
    finally:
        if process.returncode is None:
            process.kill()
        await editor.close()


class Rig:
    """A bridge, a proxy that can be cut, and editors that connect through the proxy."""

    def __init__(self, bridge, proxy):
        self.bridge = bridge
        self.proxy = proxy

    @property
    def url(self):
        return self.proxy.origin

    def direct_editor(self, *options):
        """Start an editor that connects without the proxy."""
        return attached(f"http://127.0.0.1:{self.bridge.port}", *options, token_file=self.bridge.token_file)

    def editor(self, *options, **settings):
        return attached(self.url, *options, token_file=self.bridge.token_file, **settings)


@asynccontextmanager
async def rigged(directory, *options, **settings):
    """Start a bridge and a proxy for it."""
    proxy = CuttableProxy()
    await proxy.open()
    bridge = BridgeProcess(Path(directory), proxy.host, *options, **settings)
    proxy.port_beyond = bridge.port
    try:
        await bridge.start()
        yield Rig(bridge, proxy)
    finally:
        await bridge.close()
        await proxy.close()
