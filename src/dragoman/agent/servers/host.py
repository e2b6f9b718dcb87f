"""The host that answers the servers of a session: with its person, its model and its directories.

A server's question to the person is passed on to the client; where the client cannot ask it, it is declined.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import msgspec

from dragoman.agent.update_sender import UpdateSender
from dragoman.errors import ConnectionClosed, ErrorCode, InvalidResult, RemoteError, RpcError
from dragoman.mcp.client import DECLINED
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE
from dragoman.protocol.unions import decode_hook


async def elicit(
    updates: UpdateSender, client: v1.ClientCapabilities, session_id: str, server: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Ask the person; the answer is an MCP ElicitResult."""
    request = _request(client, session_id, server, params)
    if request is None:
        return DECLINED
    try:
        answer = await updates.call(ELICITATION_CREATE, request)
    except (ConnectionClosed, RemoteError, InvalidResult):
        return DECLINED
    match answer:
        case v1.ElicitationAcceptAction(content=content):
            return {"action": "accept", "content": content or {}}
        case v1.ElicitationDeclineAction():
            return DECLINED
        case _:
            return {"action": "cancel"}


def _request(
    client: v1.ClientCapabilities, session_id: str, server: str, params: dict[str, Any]
) -> v1.CreateElicitationRequest | None:
    can = client.elicitation
    message = f"{server}: {params.get('message', '')}"
    if params.get("mode") == "url":
        if can is None or can.url is None or not params["url"].lower().startswith(("https://", "http://")):
            return None
        return v1.UrlElicitationForSession(
            session_id=session_id, message=message, url=params["url"], elicitation_id=params["elicitationId"]
        )
    if can is None or can.form is None:
        return None
    try:
        schema = msgspec.convert(params["requestedSchema"], v1.ElicitationSchema, dec_hook=decode_hook)
    except (msgspec.ValidationError, KeyError):
        return None
    return v1.FormElicitationForSession(session_id=session_id, message=message, requested_schema=schema)


MAX_SAMPLES = 50
"""Questions to the model in one call, as many as a turn has by default: a server may be in a loop, and each costs."""

R = TypeVar("R")


class HostedSession(Protocol):
    """The parts of a session that its servers ask for."""

    @property
    def id(self) -> str: ...
    @property
    def roots(self) -> list[str]: ...
    @property
    def capabilities(self) -> v1.ClientCapabilities: ...
    @property
    def updates(self) -> UpdateSender: ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model; raises RpcError and ServerFailure."""
        ...


class SessionHost:
    """Answers for a session."""

    def __init__(self, session: HostedSession) -> None:
        self._session = session
        self._asking: set[str] = set()

    def roots(self) -> list[str]:
        """Return the session's directories."""
        return self._session.roots

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the person, one question of a server at a time, because a person cannot answer a hundred."""
        if server in self._asking:
            return DECLINED
        session = self._session
        self._asking.add(server)
        try:
            return await elicit(session.updates, session.capabilities, session.id, server, params)
        finally:
            self._asking.discard(server)

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model, when the person agrees; raises RpcError and ServerFailure."""
        return await self._session.sample(server, params)


class CallHost:
    """Answers during one call: questions that are open when the call ends, end with it."""

    def __init__(self, host: SessionHost, limit: asyncio.Timeout) -> None:
        self._host = host
        self._limit = limit
        self._left_s = 0.0
        self._samples = 0
        self._open: set[asyncio.Task[Any]] = set()
        self._has_ended = False

    def roots(self) -> list[str]:
        """Return the session's directories."""
        return self._host.roots()

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the person; a call that ends meanwhile takes the question back."""
        answer = await self._until_the_end(self._host.elicit(server, params))
        return {"action": "cancel"} if answer is None else answer

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model; a call that ends meanwhile takes the question back. Raises RpcError."""
        self._samples += 1
        if self._samples > MAX_SAMPLES:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"the model was asked {MAX_SAMPLES} times in this call already")
        answer = await self._until_the_end(self._host.sample(server, params))
        if answer is None:
            raise RpcError(ErrorCode.REQUEST_CANCELLED, "the call in which this was asked has ended")
        return answer

    async def _until_the_end(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Return the result of the work, or None when the call has ended first."""
        task = asyncio.create_task(work)
        self._pause()
        self._open.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self._has_ended and task.cancelled():
                return None
            raise
        finally:
            self._open.discard(task)
            self._go_on()

    def _pause(self) -> None:
        """Stop the clock of the call: the time in which a person thinks is not the server's."""
        when = self._limit.when()
        if when is not None:
            self._left_s = when - asyncio.get_running_loop().time()
            self._limit.reschedule(None)

    def _go_on(self) -> None:
        if self._left_s and not self._open and not self._has_ended:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._left_s)

    def end(self) -> None:
        """Cancel all open questions."""
        self._has_ended = True
        for task in self._open:
            task.cancel()


@asynccontextmanager
async def answering(host: SessionHost, limit: asyncio.Timeout) -> AsyncGenerator[CallHost]:
    """Answer a server while it is called, which may take as long as `limit` says, without the answering."""
    answers = CallHost(host, limit)
    try:
        yield answers
    finally:
        answers.end()
