"""Answers the requests of a session's MCP servers to the user, to the model and for the directories.

A server's question to the user is sent to the client. It is declined if the client does not support it.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import msgspec

from dragoman.agent.connection.update_sender import UpdateSender
from dragoman.errors import ConnectionClosedError, ErrorCode, InvalidResultError, RemoteError, RpcError
from dragoman.mcp.client import DECLINED
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE
from dragoman.protocol.unions import decode_hook


async def elicit(
    updates: UpdateSender, client: v1.ClientCapabilities, session_id: str, server: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Ask the user and return an MCP ElicitResult."""
    request = _request(client, session_id, server, params)
    if request is None:
        return DECLINED
    try:
        answer = await updates.call(ELICITATION_CREATE, request)
    except (ConnectionClosedError, RemoteError, InvalidResultError):
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
"""Model requests per tool call, as many as a turn has by default. A server may be in a loop, and each one costs."""

R = TypeVar("R")


class HostedSession(Protocol):
    """The parts of a session that its servers use."""

    @property
    def id(self) -> str: ...
    @property
    def roots(self) -> list[str]: ...
    @property
    def capabilities(self) -> v1.ClientCapabilities: ...
    @property
    def updates(self) -> UpdateSender: ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model. Raises RpcError and McpServerError."""
        ...


class SessionHost:
    """Answers servers for a session."""

    def __init__(self, session: HostedSession) -> None:
        self._session = session
        self._asking: list[str] = []

    def roots(self) -> list[str]:
        """Return the session's directories."""
        return self._session.roots

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the user. Allow one question per server at a time, because the user cannot answer a hundred."""
        if server in self._asking:
            return DECLINED
        session = self._session
        self._asking.append(server)
        try:
            return await elicit(session.updates, session.capabilities, session.id, server, params)
        finally:
            self._asking.remove(server)

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model if the user agrees. Raises RpcError and McpServerError."""
        return await self._session.sample(server, params)


class CallHost:
    """Answers a server during one call. Questions that are still open when the call ends are cancelled."""

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
        """Ask the user. If the call ends first, cancel the question."""
        answer = await self._run_during_call(self._host.elicit(server, params))
        return {"action": "cancel"} if answer is None else answer

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model. If the call ends first, cancel the request. Raises RpcError."""
        self._samples += 1
        if self._samples > MAX_SAMPLES:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"the model was already asked {MAX_SAMPLES} times in this call")
        answer = await self._run_during_call(self._host.sample(server, params))
        if answer is None:
            raise RpcError(ErrorCode.REQUEST_CANCELLED, "the tool call that caused this request has ended")
        return answer

    async def _run_during_call(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Return the result of the work, or None if the call ended first."""
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
            self._resume()

    def _pause(self) -> None:
        """Pause the timeout of the call, because waiting for the user does not count towards it."""
        when = self._limit.when()
        if when is not None:
            self._left_s = when - asyncio.get_running_loop().time()
            self._limit.reschedule(None)

    def _resume(self) -> None:
        if self._left_s and not self._open and not self._has_ended:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._left_s)

    def end(self) -> None:
        """Cancel all open questions."""
        self._has_ended = True
        for task in self._open:
            task.cancel()


@asynccontextmanager
async def answering(host: SessionHost, limit: asyncio.Timeout) -> AsyncGenerator[CallHost]:
    """Answer a server during its call. Answering does not count towards `limit`."""
    answers = CallHost(host, limit)
    try:
        yield answers
    finally:
        answers.end()
