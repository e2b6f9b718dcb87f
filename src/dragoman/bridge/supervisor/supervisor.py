"""Keeps the agent running while it is needed: starts it, restarts it after a crash, stops it when it is idle.

    stopped ──needed──► starting ──answered──► ready ──idle──► stopped
       ▲                  │  ▲                   │
       └─closed           ▼  └──after a wait──┐  ▼ died
                       crashed ◄──────────────┴──┘

A crashed agent is started again after a wait that doubles, while viewers are connected; else when it is needed.

An agent is asked for the version of ACP that its first viewer speaks, because between peers of one version nothing is
translated; later lives are asked for the version that the last one spoke. Asked for version 2, it gets the params of
both versions, because one that answers with version 1 has read only those. One that refuses is asked for the other.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.bridge.envelope import fields_of, is_given, make_request
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.supervisor.process import (
    AgentCall,
    AgentFailure,
    AgentProcess,
    CallFailed,
    PendingCalls,
    death_failure,
    own_call,
)
from dragoman.bridge.translation import V1, V2, Version, initialize_of_both, is_v2_on, version_of_agent
from dragoman.errors import StartError
from dragoman.protocol.message_name import MESSAGE_KEY
from dragoman.wire import Message
from dragoman.wire.message import ErrorObject, parse_error

AgentState = Literal["starting", "ready", "crashed", "stopped"]
Start = Callable[[], Coroutine[Any, Any, AgentProcess]]
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
Failed = Callable[[AgentFailure], None]

CLOSE_S = 2.0
"""For the agent to end when the bridge does; one that is not gone then is killed."""

_UNSUPPORTED_VERSION = -32022

END_TIMEOUT_S = 0.5
"""For everybody to be told of the end of a life: the process itself is gone by then."""


class AgentListener(Protocol):
    """The parts of the bridge that follow the agent's life."""

    def agent_changed(self) -> None:
        """Note another status."""
        ...

    def agent_ready(self) -> None:
        """Note that the agent takes requests."""
        ...

    def agent_ended(self, failure: AgentFailure) -> None:
        """Note that a life of the agent is over; its pending requests have failed already."""
        ...

    def is_agent_wanted(self) -> bool:
        """Tell whether to restart a crashed agent before it is asked for anything."""
        ...

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        ...


class AgentStatus(msgspec.Struct, frozen=True):
    """The state of the agent, with the reason of a crash."""

    state: AgentState
    failure: AgentFailure | None = None
    retry_in_s: float | None = None

    def describe(self) -> dict[str, Any]:
        """Give the params of `_dragoman/agent`."""
        described: dict[str, Any] = {"state": self.state}
        if self.failure is not None:
            described["reason"] = self.failure.reason
            if self.failure.stderr:
                described["stderr"] = self.failure.stderr
        if self.retry_in_s is not None:
            described["retryInS"] = self.retry_in_s
        return described


class InitializeRefused(AgentFailure, frozen=True, kw_only=True):
    """The agent answered `initialize` with an error."""

    error: ErrorObject


class SessionSupport(msgspec.Struct, frozen=True):
    """The session methods that the agent itself offers."""

    load: bool = False
    resume: bool = False
    list: bool = False
    close: bool = False
    title: bool = False
    archive: bool = False
    status: bool = False
    message_names: bool = False
    """Whether it takes the names of messages that clients choose."""

    @property
    def can_reopen(self) -> bool:
        """Whether it can open a session that there was before."""
        return self.load or self.resume


def _support_of_v2(session: Raw | UnsetType) -> SessionSupport:
    """Return the support of an agent of version 2: whoever has sessions has all that is not said apart."""
    has = session is not UNSET and is_given(session)
    offered = {name: is_given(fields_of(session).get(name)) for name in ("title", "archive", "status")}
    return SessionSupport(load=has, resume=has, list=has, close=has, **offered)


class InitializeCache:
    """The last `initialize` of the agent: later viewers are answered from here."""

    def __init__(self) -> None:
        self.params: Raw | None = None
        """Params of the first viewer that may do more than read; None before any viewer came."""
        self.is_from_reader = False
        """Whether they are of a viewer that may only read; the next life begins with those of another."""
        self.sent = Raw(b"{}")
        """Params that the running agent was initialized with."""
        self.result: Raw | None = None
        """Its answer; None before the first."""
        self.version: Version = V1
        """The version of ACP that the agent speaks, or is asked for before it has ever answered."""
        self.support = SessionSupport()
        self.has_login = False
        """Whether somebody has logged in with the running agent, which may not remember that."""

    def propose(self, params: Raw, version: Version, *, is_reader: bool) -> None:
        """Keep a viewer's params, as version 1 has them, for the next life, unless those of one with more rights are.

        The agent is asked for the viewer's version if it has never spoken any.
        """
        if self.params is None or (self.is_from_reader and not is_reader):
            self.params = params
            self.is_from_reader = is_reader
            if self.result is None:
                self.version = version

    def keep_result(self, result: Raw) -> None:
        """Keep the agent's answer."""
        self.result = result
        fields = fields_of(result)
        self.version = version_of_agent(fields)
        if self.version == V2:
            session = fields_of(fields.get("capabilities", UNSET)).get("session", UNSET)
            self.support = _support_of_v2(session)
            return
        capabilities = fields_of(fields.get("agentCapabilities", UNSET))
        sessions = fields_of(capabilities.get("sessionCapabilities", UNSET))
        offered = {name: is_given(sessions.get(name)) for name in SessionSupport.__struct_fields__}
        offered["load"] = is_given(capabilities.get("loadSession"))
        offered["message_names"] = is_given(fields_of(capabilities.get("_meta", UNSET)).get(MESSAGE_KEY))
        self.support = SessionSupport(**offered)

    def forget_resume(self) -> bool:
        """Note that the agent lacks session/resume although it offered it; tells whether it can load instead."""
        was_offered = self.support.resume
        self.support = msgspec.structs.replace(self.support, resume=False)
        return was_offered and self.support.load


class AgentSupervisor:
    """The agent's process, over all its lives."""

    def __init__(self, limits: AgentLimits, start: Start, spawn: Spawn, listener: AgentListener) -> None:
        self.status = AgentStatus("stopped")
        self.calls = PendingCalls()
        self.initialize = InitializeCache()
        self._limits = limits
        self._start = start
        self._spawn = spawn
        self._listener = listener
        self._process: AgentProcess | None = None
        self._waiting: list[tuple[Callable[[], None], Failed]] = []
        self._backoff_s = limits.backoff_min_s
        self._intent: Literal["run", "stop", "close"] = "run"
        self._task: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the agent takes requests now."""
        return self.status.state == "ready"

    @property
    def support(self) -> SessionSupport:
        """The session methods that the agent offers."""
        return self.initialize.support

    @property
    def version(self) -> Version:
        """The version of ACP that the agent speaks."""
        return self.initialize.version

    @property
    def heard(self) -> int:
        """A number that grows while the agent sends anything."""
        return 0 if self._process is None else self._process.heard

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the agent has not read yet."""
        return 0 if self._process is None else self._process.unsent_bytes

    @property
    def is_clogged(self) -> bool:
        """Whether the agent has left too much unread."""
        return self.unsent_bytes > self._limits.max_line_bytes

    def when_ready(self, go_on: Callable[[], None], failed: Failed) -> None:
        """Call `go_on` now, or once the agent is ready; a stopped agent is started for it."""
        if self.is_ready:
            go_on()
            return
        self._waiting.append((go_on, failed))
        self._ensure()

    async def ask(self, method: str, params: Any, timeout_s: float) -> Message | None:
        """Ask the agent something of the bridge's own; None if it does not answer in time, or has failed."""
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()

        def settle(message: Message | None) -> None:
            if not answer.done():
                answer.set_result(message)

        def send() -> None:
            call = AgentCall(method, lambda message, _: settle(message), lambda _: settle(None))
            self.call(call, lambda id_: make_request(id_, method, params))

        self.when_ready(send, lambda _: settle(None))
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            return None

    def restart(self, go_on: Callable[[], None], failed: Failed) -> None:
        """Stop an agent that is ready, start it again, and then call `go_on`."""
        self._waiting.append((go_on, failed))
        self._spawn(self.stop())
        self._want_stop()
        self.status = AgentStatus("stopped")

    def call(self, call: AgentCall, make_line: Callable[[bytes], bytes]) -> bytes:
        """Send a request to the agent, which has to be ready, and give its id."""
        id_ = self.calls.add(call)
        self.write(make_line(id_))
        return id_

    def write(self, line: bytes) -> None:
        """Send a line to the agent, if it is there."""
        if self._process is not None:
            self._process.write(line)

    def note_printed(self, text: str) -> None:
        """Remember a line that is no message, until the agent has answered initialize."""
        if self.status.state == "starting" and self._process is not None:
            self._process.note_printed(text)

    async def stop(self) -> None:
        """Stop the agent; it is started again when it is needed."""
        self._want_stop()
        if self.is_ready:
            self.status = AgentStatus("stopped")  # at once: requests from now on are for its next life
        if self._process is not None:
            await self._process.stop()

    async def abandon(self, reason: str) -> None:
        """Kill the agent now, because its sessions may go on elsewhere; requests fail for this reason."""
        self._want_stop()
        self.calls.fail_all(AgentFailure(reason))
        if self.is_ready:
            self.status = AgentStatus("stopped")
        task = self._task
        if self._process is not None:
            self._process.kill()
        if task is not None and self.status.state != "crashed":
            await asyncio.wait({task}, timeout=CLOSE_S)

    def hold_output(self, *, is_held: bool) -> None:
        """Read nothing more of the agent, or go on."""
        if self._process is not None:
            self._process.hold_output(is_held=is_held)

    async def close(self) -> None:
        """Stop the agent for good, in bounded time."""
        self._intent = "close"
        task, process = self._task, self._process
        if self.is_ready:
            self.status = AgentStatus("stopped")
        if process is not None:
            stopping = asyncio.ensure_future(process.stop_soon())
            if not (await asyncio.wait({stopping}, timeout=CLOSE_S))[0]:  # a slower stop was under way
                process.kill()
            await asyncio.wait({stopping}, timeout=END_TIMEOUT_S)
        if task is not None and self.status.state != "crashed":
            await asyncio.wait({task}, timeout=END_TIMEOUT_S)

    def _want_stop(self) -> None:
        if self._intent != "close":
            self._intent = "stop"

    def _ensure(self) -> None:
        """Start the agent unless it runs or is about to."""
        if self._task is None and self._intent != "close" and self.initialize.params is not None:
            self._task = self._spawn(self._run(0.0))

    async def _run(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        is_unneeded = wait_s > 0 and not self._waiting and not self._listener.is_agent_wanted()
        if self._intent == "close" or is_unneeded:
            self._task = None
            return
        self._intent = "run"
        self._set(AgentStatus("starting"))
        began = time.monotonic()
        try:
            failure = await self._live()
        except Exception as error:  # noqa: BLE001 -- an error of ours must not keep the agent from its next life
            context = {"message": "the bridge met an error while it talked with an agent", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            failure = AgentFailure("the bridge failed while it talked with the agent; its log says why")
        if time.monotonic() - began >= self._limits.steady_s:
            self._backoff_s = self._limits.backoff_min_s
        self._task = None
        self.calls.fail_all(failure)
        self._listener.agent_ended(failure)
        self._finish(failure)

    async def _live(self) -> AgentFailure:
        """Start the agent, talk until it ends, and give the reason of its end."""
        try:
            self._process = process = await self._start()
        except StartError as error:
            return AgentFailure(str(error))
        try:
            failure = None if self._intent != "run" else await self._introduce(process)
            if failure is None and self._intent == "run":
                self._become_ready()
                await process.ended.wait()
                if self._intent == "run":
                    failure = death_failure(await process.explain())
        finally:
            self._process = None
            self.status = AgentStatus("stopped", self.status.failure, self.status.retry_in_s)
            await (process.stop_soon() if self._intent == "close" else process.stop())
        return failure or AgentFailure("the agent was stopped")

    async def _introduce(self, process: AgentProcess) -> AgentFailure | None:
        """Send `initialize`, and wait for the answer; an agent that refuses a version is asked for the other."""
        cache = self.initialize
        cache.sent = self._listener.join_capabilities(cache.params or cache.sent)
        cache.has_login = False
        asked = cache.version if is_v2_on() else V1
        answer = await self._ask_version(process, asked)
        other = _other_version(asked, answer)
        if other is not None:
            second = await self._ask_version(process, other)
            answer = second if isinstance(second, Message) and second.result is not UNSET else answer
        if isinstance(answer, AgentFailure):
            return answer
        if answer.result is UNSET:
            error = parse_error(answer.error or Raw(b"{}"))
            said = f"the agent refused to begin: {error.words}"
            return InitializeRefused(said, stderr=process.stderr_tail, error=error)
        cache.keep_result(answer.result)
        return None

    async def _ask_version(self, process: AgentProcess, version: Version) -> Message | AgentFailure:
        """Send `initialize`, and wait for the answer, for the end of the process or for the timeout."""
        call, answer = own_call("initialize")
        ended = asyncio.ensure_future(process.ended.wait())
        params = _params_of(version, self.initialize.sent)
        self.call(call, lambda id_: make_request(id_, "initialize", params))
        timeout_s = self._limits.initialize_timeout_s
        done, _ = await asyncio.wait({answer, ended}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if answer not in done:
            answer.cancel()
            if not done:
                problem = f"the agent did not answer initialize within {timeout_s:g} s{_quote(process)}"
                return AgentFailure(problem, stderr=process.stderr_tail)
            failure = death_failure(await process.explain(), during=" before it answered initialize")
            return AgentFailure(failure.reason + _quote(process), failure.exit_code, failure.signal, failure.stderr)
        try:
            return answer.result()
        except CallFailed as failed:
            return failed.failure

    def _become_ready(self) -> None:
        self._set(AgentStatus("ready"))
        waiting, self._waiting = self._waiting, []
        for go_on, _ in waiting:
            go_on()
        self._listener.agent_ready()

    def _finish(self, failure: AgentFailure) -> None:
        """Decide whether to start the agent again after a life, and when."""
        # Requests that wait for an agent that was stopped on purpose go to its next life. Requests that wait for one
        # that crashed fail with it, because they may be the reason; it is restarted for viewers, not for requests.
        waiting, self._waiting = self._waiting, []
        if self._intent == "stop" and waiting:  # somebody came while it was being stopped
            self._waiting, waiting = waiting, []
            self._set(AgentStatus("stopped"))
            self._ensure()
        elif self._intent != "run":
            self._set(AgentStatus("stopped"))
        elif self.initialize.result is None:
            self.initialize.params = None  # another viewer may say something that it can begin with
            self._set(AgentStatus("crashed", failure))
        elif self._listener.is_agent_wanted():
            wait_s = self._backoff_s
            self._backoff_s = min(2 * self._backoff_s, self._limits.backoff_max_s)
            self._task = self._spawn(self._run(wait_s))
            self._set(AgentStatus("crashed", failure, wait_s))
        else:
            self._set(AgentStatus("crashed", failure))
        for _, failed in waiting:
            failed(failure)

    def _set(self, status: AgentStatus) -> None:
        self.status = status
        self._listener.agent_changed()


def _params_of(version: Version, params: Raw) -> Any:
    """Return params for an agent that is asked for a version, from those of version 1."""
    if version == V2:
        return initialize_of_both(params)
    return params


def _other_version(asked: Version, answer: Message | AgentFailure) -> Version | None:
    """Return the version to ask for after a refusal; None if there was none, or the reason was another.

    An agent of version 1 that refuses version 2 may do so with any error.
    """
    if isinstance(answer, AgentFailure) or answer.result is not UNSET:
        return None
    if asked == V2:
        return V1
    is_version = parse_error(answer.error or Raw(b"{}")).code == _UNSUPPORTED_VERSION
    return V2 if is_version and is_v2_on() else None


def _quote(process: AgentProcess) -> str:
    if not process.printed:
        return ""
    lines = "\n".join(process.printed)
    return f"; it printed what is no JSON-RPC:\n{lines}\nSee that the command starts an ACP agent"
