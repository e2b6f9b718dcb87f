"""Keeps the agent running while it is needed: starts it, starts it again when it crashed, stops it when it is idle.

    stopped ──needed──► starting ──answered──► ready ──idle──► stopped
       ▲                  │  ▲                   │
       └─closed           ▼  └──after a wait──┐  ▼ died
                       crashed ◄──────────────┴──┘

A crashed agent is started again after a wait that doubles, while somebody is there to see it; else when it is needed.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.hub.agent_process import AgentProcess
from dragoman.bridge.hub.calls import AgentTrouble, Call, Calls, own_call
from dragoman.bridge.hub.envelope import make_request
from dragoman.bridge.hub.greeting import Offers, Refusal, read_offers
from dragoman.bridge.hub.trouble import Trouble, death
from dragoman.bridge.settings import Settings
from dragoman.errors import StartError
from dragoman.wire import Message
from dragoman.wire.message import parse_error

State = Literal["starting", "ready", "crashed", "stopped"]
Start = Callable[[], Coroutine[Any, Any, AgentProcess]]
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

MAX_PRINTED = 5
"""Lines quoted of what an agent printed instead of answering."""

_PRINTED_CHARACTERS = 200

CLOSE_S = 2.0
"""For the agent to end when the bridge does; one that is not gone then is killed."""

END_TIMEOUT_S = 0.5
"""For the end of a life to be told to everybody: the process itself is gone by then."""


class Keeper:
    """The agent's process, over all its lives."""

    def __init__(self, settings: Settings, calls: Calls, start: Start, spawn: Spawn) -> None:
        self.state: State = "stopped"
        self.trouble: Trouble | None = None
        self.retry_in_s: float | None = None
        self.params: Raw | None = None
        """What the agent is introduced to: what the first viewer said that may do more than read."""
        self.begun_by_reader = False
        """Whether there was none yet; its next life begins with what such a viewer said since."""
        self.told = Raw(b"{}")
        """What the agent that runs now was initialized with."""
        self.join_params: Callable[[Raw], Raw] = lambda params: params
        """Adds to that what all can do who are there when it starts."""
        self.has_login = False
        """Whether somebody has logged in with the agent that runs now, which it may not remember."""
        self.answer: Message | None = None
        """What it answered."""
        self.offers = Offers()
        """What it can do with sessions."""
        self.printed: list[str] = []
        self.is_wanted: Callable[[], bool] = lambda: False
        self.on_state: Callable[[], None] = lambda: None
        self.on_ready: Callable[[], None] = lambda: None
        self.on_death: Callable[[Trouble], None] = lambda _: None
        self._settings = settings
        self._calls = calls
        self._start = start
        self._spawn = spawn
        self._process: AgentProcess | None = None
        self._waiting: list[tuple[Callable[[], None], Callable[[Trouble], None]]] = []
        self._backoff_s = settings.backoff_min_s
        self._stopping = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def when_ready(self, go_on: Callable[[], None], failed: Callable[[Trouble], None]) -> None:
        """Do something now, or once the agent is there; a stopped one is started for it."""
        if self.state == "ready":
            go_on()
            return
        self._waiting.append((go_on, failed))
        self.ensure()

    def begin_again(self, go_on: Callable[[], None], failed: Callable[[Trouble], None]) -> None:
        """Have another life of a ready agent, and then do something."""
        self._waiting.append((go_on, failed))
        self._spawn(self.stop())
        self._stopping = True
        self.state = "stopped"

    def ensure(self) -> None:
        """Start the agent unless it runs or is about to."""
        if self._task is None and not self._closed and self.params is not None:
            self._task = self._spawn(self._run(0.0))

    def call(self, call: Call, make_line: Callable[[bytes], bytes]) -> bytes:
        """Send a request to the agent, which has to be ready, and give its id."""
        id_ = self._calls.add(call)
        self.write(make_line(id_))
        return id_

    def write(self, line: bytes) -> None:
        """Say something to the agent, if it is there."""
        if self._process is not None:
            self._process.write(line)

    def is_clogged(self) -> bool:
        """Tell whether the agent has left too much unread."""
        return self._process is not None and self._process.unsent_bytes > self._settings.max_line_bytes

    def note_printed(self, text: str) -> None:
        """Remember what the agent printed that is no message, until it has answered."""
        if self.state == "starting" and len(self.printed) < MAX_PRINTED:
            self.printed.append(text[:_PRINTED_CHARACTERS])

    async def stop(self) -> None:
        """Stop the agent; it is started again when it is needed."""
        self._stopping = True
        if self.state == "ready":
            self.state = "stopped"  # at once: whatever it is asked for from now on is for the next
        if self._process is not None:
            await self._process.stop()

    async def close(self) -> None:
        """Stop the agent for good, in bounded time."""
        self._closed = self._stopping = True
        task, process = self._task, self._process
        if self.state == "ready":
            self.state = "stopped"
        if process is not None:
            stopping = asyncio.ensure_future(process.stop_soon())
            if not (await asyncio.wait({stopping}, timeout=CLOSE_S))[0]:  # it was being stopped at leisure
                process.kill()
            await asyncio.wait({stopping}, timeout=END_TIMEOUT_S)
        if task is not None and self.state != "crashed":
            await asyncio.wait({task}, timeout=END_TIMEOUT_S)

    async def _run(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        if self._closed or (wait_s > 0 and not self._waiting and not self.is_wanted()):
            self._task = None
            return
        self._stopping = False
        self._set("starting")
        began = time.monotonic()
        try:
            trouble = await self._live()
        except Exception as error:  # noqa: BLE001 -- an error of ours must not keep the agent from its next life
            context = {"message": "the bridge met an error while it talked with an agent", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            trouble = Trouble("the bridge failed while it talked with the agent; its log says why")
        if time.monotonic() - began >= self._settings.steady_s:
            self._backoff_s = self._settings.backoff_min_s
        self._task = None
        self._calls.fail_all(trouble)
        self.on_death(trouble)
        self._finish(trouble)

    async def _live(self) -> Trouble:
        """Start it, talk until it ends, and say why it did."""
        try:
            self._process = process = await self._start()
        except StartError as error:
            return Trouble(str(error))
        try:
            trouble = None if self._stopping else await self._introduce(process)
            if trouble is None and not self._stopping:
                self._become_ready()
                await process.ended.wait()
                if not self._stopping:
                    trouble = death(await process.explain())
        finally:
            self._process = None
            self.state = "stopped"
            await (process.stop_soon() if self._closed else process.stop())
        return trouble or Trouble("the agent was stopped")

    async def _introduce(self, process: AgentProcess) -> Trouble | None:
        self.printed = []
        call, answer = own_call("initialize")
        ended = asyncio.ensure_future(process.ended.wait())
        self.told = self.join_params(self.params or self.told)
        self.has_login = False
        self.call(call, lambda id_: make_request(id_, "initialize", self.told))
        timeout_s = self._settings.initialize_timeout_s
        done, _ = await asyncio.wait({answer, ended}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if answer not in done:
            answer.cancel()
            if not done:
                problem = f"the agent did not answer initialize within {timeout_s:g} s{self._quote()}"
                return Trouble(problem, stderr=process.stderr_tail)
            trouble = death(await process.explain(), during=" before it answered initialize")
            return Trouble(trouble.reason + self._quote(), trouble.exit_code, trouble.signal, trouble.stderr)
        try:
            message = answer.result()
        except AgentTrouble as failed:
            return failed.trouble
        if message.result is UNSET:
            error = parse_error(message.error or Raw(b"{}"))
            said = f"the agent refused to begin: {error.words}"
            return Refusal(said, stderr=process.stderr_tail, error=error)
        self.answer = message
        self.offers = read_offers(message.result)
        return None

    def forget_resume(self) -> bool:
        """Take note that the agent has no session/resume although it said so; tells whether it can load instead."""
        was_offered = self.offers.resume
        self.offers = msgspec.structs.replace(self.offers, resume=False)
        return was_offered and self.offers.load

    def _quote(self) -> str:
        if not self.printed:
            return ""
        lines = "\n".join(self.printed)
        return f"; it printed what is no JSON-RPC:\n{lines}\nSee that the command starts an ACP agent"

    def _become_ready(self) -> None:
        self._set("ready")
        waiting, self._waiting = self._waiting, []
        for go_on, _ in waiting:
            go_on()
        self.on_ready()

    def _finish(self, trouble: Trouble) -> None:
        """Decide what comes after a life."""
        waiting, self._waiting = self._waiting, []
        if self._stopping and waiting and not self._closed:  # somebody came while it was being stopped
            self._waiting, waiting = waiting, []
            self._set("stopped")
            self.ensure()
        elif self._stopping or self._closed:
            self._set("stopped")
        elif self.answer is None:
            self.params = None  # another viewer may say something that it can begin with
            self._set("crashed", trouble)
        elif self.is_wanted():
            wait_s = self._backoff_s
            self._backoff_s = min(2 * self._backoff_s, self._settings.backoff_max_s)
            self._task = self._spawn(self._run(wait_s))
            self._set("crashed", trouble, retry_in_s=wait_s)
        else:
            self._set("crashed", trouble)
        for _, failed in waiting:
            failed(trouble)

    def _set(self, state: State, trouble: Trouble | None = None, *, retry_in_s: float | None = None) -> None:
        self.state = state
        self.trouble = trouble
        self.retry_in_s = retry_in_s
        self.on_state()
