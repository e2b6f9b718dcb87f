"""A workspace with its tools, connected to a scripted client."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.tools.builtin import builtin_tools
from dragoman.errors import ErrorCode, RpcError
from dragoman.proc import Supervisor
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import (
    FS_READ_TEXT_FILE,
    FS_WRITE_TEXT_FILE,
    TERMINAL_CREATE,
    TERMINAL_KILL,
    TERMINAL_OUTPUT,
    TERMINAL_RELEASE,
    TERMINAL_WAIT_FOR_EXIT,
)
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair

READS = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True))
FILES = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True, write_text_file=True))
TERMINAL = v1.ClientCapabilities(terminal=True)


class WatchedSupervisor(Supervisor):
    """A supervisor that knows its running children."""

    def __init__(self):
        super().__init__()
        self._started = []

    async def start(self, *arguments, **options):
        child = await super().start(*arguments, **options)
        self._started.append(child)
        return child

    @property
    def running(self):
        return [child for child in self._started if child.exit is None]


class Working:
    def __init__(self, workspace, tools, plans, client, supervisor):
        self.supervisor = supervisor
        self.workspace = workspace
        self.plans = plans
        self.client = client
        self.tools = {tool.definition.name: tool for tool in tools}
        self.progress = []

    async def prepare(self, name, **arguments):
        return await self.tools[name].prepare(arguments)

    async def call(self, name, **arguments):
        return await self.run(await self.prepare(name, **arguments))

    async def run(self, call):
        """Run an allowed call as a turn does."""
        await call.check()
        return await call.run(self.show)

    @property
    def children(self):
        return self.supervisor.running

    async def show(self, content):
        self.progress.append(list(content))


@asynccontextmanager
async def working(cwd, *directories, capabilities=None, set_up=lambda routes: None, **options):
    near, far = memory_pair()
    plans = []

    async def show_plan(plan):
        plans.append(plan)

    async with asyncio.timeout(40), AsyncExitStack() as stack:
        client = ScriptedClient(near)
        set_up(client.routes)
        await stack.enter_async_context(client)
        connection = await stack.enter_async_context(Connection(far, Routes("agent")))
        supervisor = await stack.enter_async_context(WatchedSupervisor())

        async def supervise():
            return supervisor

        workspace = Workspace(
            str(cwd),
            [str(each) for each in directories],
            session_id="s1",
            connection=connection,
            capabilities=capabilities,
            supervise=supervise,
        )
        yield Working(workspace, builtin_tools(workspace, show_plan, **options), plans, client, supervisor)


class Buffers:
    """The files of an editor: unsaved buffers, and the disk below them."""

    def __init__(self, **unsaved):
        self.unsaved = unsaved
        self.missing_is_empty = False
        """Whether a missing file is answered with an empty text, as some editors do."""
        self.read = []
        self.written = {}

    def set_up(self, routes):
        routes.on_request(FS_READ_TEXT_FILE, self._read)
        routes.on_request(FS_WRITE_TEXT_FILE, self._write)

    async def _read(self, params):
        self.read.append(params.path)
        if params.path in self.unsaved:
            return v1.ReadTextFileResponse(content=self.unsaved[params.path])
        try:
            with open(params.path, newline="") as file:
                return v1.ReadTextFileResponse(content=file.read())
        except OSError as error:
            if self.missing_is_empty:
                return v1.ReadTextFileResponse(content="")
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from None

    async def _write(self, params):
        self.written[params.path] = params.content
        self.unsaved[params.path] = params.content
        return v1.WriteTextFileResponse()


class Terminals:
    """The terminals of a client. They end when the test says so."""

    def __init__(self, *, output="out\n", truncated=False, code=0, signal=None, ends=True, failing=()):
        self.calls = []
        self.created = None
        self.output = output
        self.truncated = truncated
        self.code = code
        self.signal = signal
        self.failing = failing
        self.may_create = asyncio.Event()
        self.may_create.set()
        self.asked = asyncio.Event()
        self.ended = asyncio.Event()
        if ends:
            self.ended.set()

    def set_up(self, routes):
        routes.on_request(TERMINAL_CREATE, self._create)
        routes.on_request(TERMINAL_WAIT_FOR_EXIT, self._wait)
        routes.on_request(TERMINAL_OUTPUT, self._output)
        routes.on_request(TERMINAL_KILL, self._kill)
        routes.on_request(TERMINAL_RELEASE, self._release)

    async def reached(self, name):
        while name not in self.calls:
            self.asked.clear()
            await self.asked.wait()

    def _note(self, name):
        self.calls.append(name)
        self.asked.set()
        if name in self.failing:
            raise RpcError(ErrorCode.INTERNAL_ERROR, f"no {name} today")

    async def _create(self, params):
        self.created = params
        self._note("create")
        with suppress(asyncio.CancelledError):  # it was started by then, and reports it
            await self.may_create.wait()
        return v1.CreateTerminalResponse(terminal_id="t1")

    async def _wait(self, params):
        self._note("wait")
        await self.ended.wait()
        return v1.WaitForTerminalExitResponse(exit_code=self.code, signal=self.signal)

    async def _output(self, params):
        self._note("output")
        return v1.TerminalOutputResponse(output=self.output, truncated=self.truncated)

    async def _kill(self, params):
        self._note("kill")
        self.ended.set()
        return v1.KillTerminalResponse()

    async def _release(self, params):
        self._note("release")
        return v1.ReleaseTerminalResponse()


def text_of(content):
    return "".join(each.content.text for each in content if isinstance(each, v1.Content))
