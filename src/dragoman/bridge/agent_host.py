"""Keeps the agent running while it is needed: starts it, restarts it after a crash, stops it when it is idle.

    stopped ──needed──► starting ──answered──► ready ──idle──► stopped
       ▲                  │  ▲                   │
       └─closed           ▼  └──after a wait──┐  ▼ died
                       crashed ◄──────────────┴──┘

`await host.link()` returns the running agent, and starts it if necessary. One task runs the life of one process, from
its start to its end, and starts the next life if the agent is needed at once. After a crash the agent is started again
after a delay that doubles each time, if viewers are connected. Otherwise it is started when it is needed.

When a life ends:

    requests that the agent had            fail with AgentEndedError
    tasks in `link()`, agent stopped       wait for the next life
    tasks in `link()`, agent crashed       fail as well, because one of them may be the reason
    tasks that call `link()` afterwards    wait for the next life

The bridge asks the agent for the version of ACP that the first viewer speaks, because peers of the same version need no
translation. It asks later lives for the version that the last one spoke. A request for version 2 has the params of both
versions, because an agent that answers with version 1 reads only those. If an agent refuses a version, the bridge asks
for the other one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from itertools import count
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.backoff import Backoff
from dragoman.bridge.agent_link import (
    AgentEndedError,
    AgentFailure,
    AgentLink,
    CallAnswer,
    NoAnswerError,
    death_failure,
)
from dragoman.bridge.envelope import is_given
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.tasks import Waiters
from dragoman.bridge.translation import V1, V2, Version, initialize_of_both, version_of_agent
from dragoman.errors import ErrorCode, StartError
from dragoman.protocol import methods
from dragoman.protocol.message_name import MESSAGE_KEY
from dragoman.protocol.negotiation import speaks_v2
from dragoman.wire.envelope import fields_of
from dragoman.wire.message import ErrorObject, parse_error

AgentState = Literal["starting", "ready", "crashed", "stopped"]
StartAgent = Callable[[Iterator[int]], Awaitable[AgentLink]]
"""Starts a process. Its requests use these ids. Raises StartError."""
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

CLOSE_S = 2.0
"""Time for the agent to exit when the bridge stops. After that it is killed."""

END_TIMEOUT_S = 0.5
"""Time for all parts to handle the end of a life. The process itself is gone by then."""


class AgentListener(Protocol):
    """Is notified of the agent's starts and ends."""

    def agent_changed(self) -> None:
        """Handle a new status."""
        ...

    def agent_ready(self) -> None:
        """Handle that the agent accepts requests."""
        ...

    def agent_ended(self, failure: AgentFailure) -> None:
        """Handle the end of a life. The tasks that waited for its answers have run already."""
        ...

    def is_agent_wanted(self) -> bool:
        """Return whether to restart a crashed agent before a request needs it."""
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
        """Return the params of `_dragoman/agent`."""
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
    """The session methods that the agent itself supports."""

    load: bool = False
    resume: bool = False
    list: bool = False
    close: bool = False
    title: bool = False
    archive: bool = False
    status: bool = False
    message_names: bool = False
    """Whether it accepts message names chosen by clients."""

    @property
    def can_reopen(self) -> bool:
        """Whether it can open an earlier session."""
        return self.load or self.resume


def _support_of_v2(session: Raw | UnsetType) -> SessionSupport:
    """Return the support of an agent of version 2. With sessions, it must support load, resume, list and close."""
    has = session is not UNSET and is_given(session)
    offered = {name: is_given(fields_of(session).get(name)) for name in ("title", "archive", "status")}
    return SessionSupport(load=has, resume=has, list=has, close=has, **offered)


class InitializeCache:
    """The last `initialize` of the agent, from which later viewers are answered."""

    def __init__(self) -> None:
        self.params: Raw | None = None
        """Params for the next life, from the first viewer that is not read-only. None before the first viewer."""
        self.is_from_reader = False
        """Whether the params came from a read-only viewer. The params of any other viewer replace them."""
        self.sent = Raw(b"{}")
        """Params that were sent to the running agent."""
        self.result: Raw | None = None
        """The agent's answer. None before the first answer."""
        self.version: Version = V1
        """The version of ACP that the agent speaks, or that the first `initialize` asks for."""
        self.support = SessionSupport()
        self.has_login = False
        """Whether a user has logged in at the running agent. Its next life may not remember that."""

    def propose(self, params: Raw, version: Version, *, is_reader: bool) -> None:
        """Store a viewer's params, in the form of version 1, for the next life. A reader's never replace an owner's.

        The agent is asked for the viewer's version if it has not answered yet.
        """
        if self.params is None or (self.is_from_reader and not is_reader):
            self.params = params
            self.is_from_reader = is_reader
            if self.result is None:
                self.version = version

    def keep_result(self, result: Raw) -> None:
        """Store the agent's answer, its version and the methods it supports."""
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
        """Note that the agent advertised session/resume but does not support it. Return whether it can load instead."""
        was_offered = self.support.resume
        self.support = msgspec.structs.replace(self.support, resume=False)
        return was_offered and self.support.load


class AgentHost:
    """The agent's process, over all its lives."""

    def __init__(self, limits: AgentLimits, start: StartAgent, spawn: Spawn, listener: AgentListener) -> None:
        self.status = AgentStatus("stopped")
        self.initialize = InitializeCache()
        self._limits = limits
        self._start = start
        self._spawn = spawn
        self._listener = listener
        self._ids = count(1)
        self._link: AgentLink | None = None
        self._waiters = Waiters()
        self._backoff = Backoff(limits.backoff_min_s, limits.backoff_max_s)
        self._intent: Literal["run", "stop", "close"] = "run"
        self._life: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the agent accepts requests now."""
        return self.status.state == "ready"

    @property
    def support(self) -> SessionSupport:
        """The session methods that the agent supports."""
        return self.initialize.support

    @property
    def version(self) -> Version:
        """The version of ACP that the agent speaks."""
        return self.initialize.version

    @property
    def read_count(self) -> int:
        """The number of reads of the agent's output, which grows while the agent is alive and sends."""
        return 0 if self._link is None else self._link.read_count

    @property
    def pending(self) -> int:
        """The number of requests that the agent has not answered."""
        return 0 if self._link is None else self._link.pending

    @property
    def unsent_bytes(self) -> int:
        """Number of bytes that the agent has not read yet."""
        return 0 if self._link is None else self._link.unsent_bytes

    @property
    def is_clogged(self) -> bool:
        """Whether the agent has left too much unread."""
        return self.unsent_bytes > self._limits.max_line_bytes

    async def link(self) -> AgentLink:
        """Return the running agent, and start it if it is stopped. Raises AgentEndedError.

        Does not wait if the agent is ready.
        """
        while self._link is None or not self.is_ready:
            waiting = self._waiters.add()
            self._ensure()
            await waiting
        return self._link

    async def link_for(self, version: Version) -> AgentLink:
        """Return the running agent for a request that was written in this version of ACP. Raises NoAnswerError."""
        if self.is_clogged:
            raise NoAnswerError(AgentFailure("the agent does not read its input; try again later"))
        link = await self.link()
        if version != self.version:
            problem = f"the agent was restarted and now speaks version {self.version} of ACP; send the request again"
            raise NoAnswerError(AgentFailure(problem))
        return link

    async def ask(self, method: str, params: Any, timeout_s: float) -> CallAnswer | None:
        """Send a request of the bridge itself. Return None if the agent does not answer in time or ends."""
        asked = asyncio.ensure_future(self._ask(method, params))
        try:
            done, _ = await asyncio.wait({asked}, timeout=timeout_s)
            return asked.result() if done else None
        finally:
            asked.cancel()

    async def _ask(self, method: str, params: Any) -> CallAnswer | None:
        try:
            link = await self.link()
            return await link.ask(method, params)
        except NoAnswerError:
            return None

    async def restart(self) -> None:
        """Stop an agent that is ready, and wait until it is ready again. Raises AgentEndedError."""
        waiting = self._waiters.add()
        self._spawn(self.stop())
        self._want_stop()
        self.status = AgentStatus("stopped")
        await waiting

    def write(self, line: bytes) -> None:
        """Send a line to the agent if it is running."""
        if self._link is not None:
            self._link.write(line)

    async def stop(self) -> None:
        """Stop the agent until it is needed again."""
        self._want_stop()
        if self.is_ready:
            self.status = AgentStatus("stopped")  # at once, because requests from now on are for its next life
        if self._link is not None:
            await self._link.stop()

    def abandon(self, reason: str) -> "asyncio.Task[None] | None":
        """Kill the agent now, because other nodes may continue its sessions. Its requests fail with this reason.

        Return the task of this life of the agent, if one is running.
        """
        self._want_stop()
        if self.is_ready:
            self.status = AgentStatus("stopped")
        if self._link is not None:
            self._link.fail_all(AgentFailure(reason))
            self._link.kill()
        return None if self.status.state == "crashed" else self._life

    def hold_output(self, *, is_held: bool) -> None:
        """Pause or resume reading the agent's output."""
        if self._link is not None:
            self._link.hold_output(is_held=is_held)

    async def close(self) -> None:
        """Stop the agent for good, in bounded time."""
        self._intent = "close"
        life, link = self._life, self._link
        if self.is_ready:
            self.status = AgentStatus("stopped")
        if link is not None:
            stopping = asyncio.ensure_future(link.stop_soon())
            if not (await asyncio.wait({stopping}, timeout=CLOSE_S))[0]:  # a slower stop was under way
                link.kill()
            await asyncio.wait({stopping}, timeout=END_TIMEOUT_S)
        if life is not None and self.status.state != "crashed":
            await asyncio.wait({life}, timeout=END_TIMEOUT_S)

    def _want_stop(self) -> None:
        if self._intent != "close":
            self._intent = "stop"

    def _ensure(self) -> None:
        """Start the agent unless it is running or starting."""
        if self._life is None and self._intent != "close" and self.initialize.params is not None:
            self._life = self._spawn(self._live(0.0))

    async def _live(self, wait_s: float) -> None:
        """Run one life: start the process after a wait, serve it until it ends, and decide on the next life."""
        await asyncio.sleep(wait_s)
        is_unneeded = wait_s > 0 and not self._waiters and not self._listener.is_agent_wanted()
        if self._intent == "close" or is_unneeded:
            self._life = None
            return
        self._intent = "run"
        self._set(AgentStatus("starting"))
        began = time.monotonic()
        try:
            failure = await self._serve()
        except Exception as error:  # noqa: BLE001 -- a bug in the bridge must not prevent the agent's next life
            context = {"message": "the bridge failed while communicating with an agent", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            failure = AgentFailure("the bridge failed while communicating with the agent; see its log for the reason")
        if time.monotonic() - began >= self._limits.steady_s:
            self._backoff.reset()
        # The tasks that awaited answers run before any other part handles the end. Some of them start tasks that ask
        # for the next life at once. These find this life and wait, because two agents must not share the sessions.
        waited, link, self._link = self._waiters.pop_all(), self._link, None
        if link is not None:
            link.fail_all(failure)
            await asyncio.sleep(0)
        self._listener.agent_ended(failure)
        self._life = None
        self._finish(failure, waited)

    async def _serve(self) -> AgentFailure:
        """Start the agent, communicate until it ends, and return the reason of its end."""
        try:
            self._link = link = await self._start(self._ids)
        except StartError as error:
            return AgentFailure(str(error))
        try:
            failure = None if self._intent != "run" else await self._introduce(link)
            if failure is None and self._intent == "run":
                link.is_introduced = True
                self._set(AgentStatus("ready"))
                self._waiters.release()
                await asyncio.sleep(0)  # the tasks that waited run first
                self._listener.agent_ready()
                await link.ended.wait()
                if self._intent == "run":
                    failure = death_failure(await link.explain())
        finally:
            self.status = AgentStatus("stopped", self.status.failure, self.status.retry_in_s)
            await (link.stop_soon() if self._intent == "close" else link.stop())
        return failure or AgentFailure("the agent was stopped")

    async def _introduce(self, link: AgentLink) -> AgentFailure | None:
        """Send `initialize`, and store the answer. If the agent refuses a version, ask for the other one."""
        cache = self.initialize
        cache.sent = self._listener.join_capabilities(cache.params or cache.sent)
        cache.has_login = False
        asked = cache.version if speaks_v2() else V1
        try:
            answer = await self._ask_version(link, asked)
            other = _other_version(asked, answer)
            if other is not None:
                with suppress(NoAnswerError):
                    second = await self._ask_version(link, other)
                    answer = answer if second.message.result is UNSET else second
        except NoAnswerError as error:
            return error.failure
        if answer.message.result is UNSET:
            refusal = parse_error(answer.message.error or Raw(b"{}"))
            said = f"the agent refused to start: {refusal.text}"
            return InitializeRefused(said, stderr=link.stderr_tail, error=refusal)
        cache.keep_result(answer.message.result)
        return None

    async def _ask_version(self, link: AgentLink, version: Version) -> CallAnswer:
        """Send `initialize`, and wait for the answer, the end of the process or the timeout. Raises NoAnswerError."""
        params = self.initialize.sent
        answer = link.ask(methods.INITIALIZE.name, initialize_of_both(params) if version == V2 else params).answer
        ended = asyncio.ensure_future(link.ended.wait())
        timeout_s = self._limits.initialize_timeout_s
        done, _ = await asyncio.wait({answer, ended}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if answer in done:
            return answer.result()
        if not done:
            problem = f"the agent did not answer initialize within {timeout_s:g} s{_quote(link)}"
            raise NoAnswerError(AgentFailure(problem, stderr=link.stderr_tail))
        failure = death_failure(await link.explain(), during=" before it answered initialize")
        raise AgentEndedError(msgspec.structs.replace(failure, reason=failure.reason + _quote(link)))

    def _finish(self, failure: AgentFailure, waited: Waiters) -> None:
        """Decide after a life whether and when to start the agent again."""
        if self._intent == "stop" and (waited or self._waiters):  # a task needed it while it was being stopped
            self._waiters[:0] = waited.pop_all()
            self._set(AgentStatus("stopped"))
            self._ensure()
        elif self._intent != "run":
            waited += self._waiters.pop_all()
            self._set(AgentStatus("stopped"))
        elif self.initialize.result is None:
            self.initialize.params = None  # the params of another viewer may work
            waited += self._waiters.pop_all()
            self._set(AgentStatus("crashed", failure))
        elif self._waiters or self._listener.is_agent_wanted():
            wait_s = self._backoff.next_s()
            self._life = self._spawn(self._live(wait_s))
            self._set(AgentStatus("crashed", failure, wait_s))
        else:
            self._set(AgentStatus("crashed", failure))
        waited.refuse(AgentEndedError(failure))

    def _set(self, status: AgentStatus) -> None:
        self.status = status
        self._listener.agent_changed()


def _other_version(asked: Version, answer: CallAnswer) -> Version | None:
    """Return the version to ask for next, or None if the agent accepted or refused for another reason.

    An agent of version 1 may refuse version 2 with any error.
    """
    if answer.message.result is not UNSET:
        return None
    if asked == V2:
        return V1
    is_version = parse_error(answer.message.error or Raw(b"{}")).code == ErrorCode.UNSUPPORTED_VERSION
    return V2 if is_version and speaks_v2() else None


def _quote(link: AgentLink) -> str:
    if not link.printed:
        return ""
    lines = "\n".join(link.printed)
    return f"; it printed what is not JSON-RPC:\n{lines}\nCheck that the command starts an ACP agent"
