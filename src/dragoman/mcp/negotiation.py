"""The agreement with a server on an MCP era and version.

A server of unknown era receives `server/discover`. If it refuses, `initialize` follows on the same connection.

Some legacy servers do not answer unknown methods. On a pipe, `server/discover` is therefore followed by a `ping` in
modern form. Legacy servers answer the ping and ignore its extra fields. Modern servers refuse it, because their era has
no ping. A result for the ping thus identifies a legacy server before any timeout. `initialize` must not be sent
earlier, because a server of both eras would then choose the legacy one.

A few servers answer neither request. A server that has not read its pipe may still be starting, and gets
`PROBE_TIMEOUT_S`. A server that has read both requests and does not answer ignores them, and gets
`IGNORED_PROBE_TIMEOUT_S`. A launcher may have read them instead of the server, so a late answer to `server/discover`
still counts if `initialize` is refused.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self, cast

import msgspec

from dragoman import __version__
from dragoman.errors import DragomanError, ErrorCode, InvalidResultError, McpServerError, RemoteError
from dragoman.mcp.channel import AuthorizationError, Channel, HttpStatusError
from dragoman.mcp.era import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    VERSION_KEY,
    VERSIONS,
    Era,
)
from dragoman.text import one_line

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES: dict[str, Any] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
MODERN_CAPABILITIES: dict[str, Any] = {**CAPABILITIES, "extensions": {TASKS: {}}}
CLIENT_INFO = {"name": "dragoman", "title": "Dragoman", "version": __version__}

_FINAL_STATUSES = frozenset((401, 403, 407, 429))
"""Refusals that are not about the era."""

PROBE_TIMEOUT_S = 20.0
"""How long to wait for an answer to the probe before sending `initialize`. The server may still be starting."""

IGNORED_PROBE_TIMEOUT_S = 3.0
"""How long to wait for an answer to a probe that the server has read."""

PROBE_POLL_S = 0.1
"""Interval for checking whether the probe was read."""

DISCOVER_GRACE_S = 2.0
"""How long to wait for the answer to the probe after the ping was refused."""


class McpAgreement(msgspec.Struct, frozen=True):
    """The agreed era and version, and the server's capabilities and instructions."""

    era: Era
    version: str
    capabilities: dict[str, Any]
    instructions: str = ""
    roots: bool = True
    """Whether we announced to the server that it can request roots."""

    @property
    def is_modern(self) -> bool:
        """Whether each request carries its version and our capabilities."""
        return self.era is Era.MODERN

    def envelope(self) -> Mapping[str, Any]:
        """Return the `_meta` fields of each request."""
        return _envelope(self.version, roots=self.roots) if self.is_modern else {}


async def negotiate(
    channel: Channel,
    known: Era | None = None,
    *,
    roots: bool = True,
    has_read_all: Callable[[], bool] | None = None,
) -> McpAgreement:
    """Agree on an era and a version. Try the era known from before first. Offer roots only if `roots` is set.

    `has_read_all` returns whether the server's process has read everything that it was sent. Raises McpServerError with
    the versions of both sides if they have none in common. Raises RemoteError, InvalidResultError and
    ConnectionClosedError.
    """
    if Era.MODERN not in channel.eras:
        return await _initialize(channel, roots=roots)
    if known is Era.LEGACY and Era.LEGACY in channel.eras:
        try:
            return await _initialize(channel, roots=roots)
        except RemoteError as refusal:  # a newer server may have replaced it
            found = await _discover(channel, roots=roots)
            if found is None:
                raise refusal from None
            return found
    if known is not None or not channel.can_ping:
        return await _discover(channel, roots=roots) or await _initialize(channel, roots=roots)
    async with _Probe(channel, has_read_all) as probe:
        return await _discover(channel, roots=roots, probe=probe) or await _initialize_after(
            probe, channel, roots=roots
        )


async def _initialize_after(probe: "_Probe", channel: Channel, *, roots: bool) -> McpAgreement:
    """Send `initialize` to a server that did not answer the probe. If it refuses, use its late answer to the probe."""
    try:
        return await _initialize(channel, roots=roots)
    except RemoteError:
        late = probe.late_answer()
        offered = _texts(late.get("supportedVersions")) if late else []
        version = channel.version = _common(offered, MODERN_VERSIONS)
        if late is None or version is None:
            raise
        return _agreement(Era.MODERN, version, late, roots=roots)


async def _discover(channel: Channel, *, roots: bool, probe: "_Probe | None" = None) -> McpAgreement | None:
    """Return the agreement with a modern server, or None for a legacy one. Raises McpServerError.

    A server may refuse our version and list its own. The request is then repeated once with a version that both
    support.
    """
    version = MODERN_VERSIONS[-1]
    for is_last in (False, True):
        channel.version = version
        params = {"_meta": _envelope(version, roots=roots)}
        try:
            result = await (probe.ask(params) if probe else channel.ask("server/discover", params))
        except (RemoteError, InvalidResultError, McpServerError) as refusal:
            is_final = isinstance(refusal, HttpStatusError) and refusal.status in _FINAL_STATUSES
            if is_final or isinstance(refusal, AuthorizationError):
                raise
            listed = _supported(refusal)
            if listed is None and Era.LEGACY not in channel.eras:
                raise
            version = None if listed is None or is_last else _common(listed, MODERN_VERSIONS)
            if version is None:
                _check_legacy(channel, listed)
                return None
            continue
        if result is None:
            return None
        offered = _texts(result.get("supportedVersions"))
        channel.version = version = _common(offered, MODERN_VERSIONS)
        if version is None:
            _check_legacy(channel, offered)
            return None
        return _agreement(Era.MODERN, version, result, roots=roots)
    return None


def _common(offered: Sequence[str], ours: Sequence[str]) -> str | None:
    """Return our newest version that the server offers."""
    return next((each for each in reversed(ours) if each in offered), None)


def _check_legacy(channel: Channel, offered: Sequence[str] | None) -> None:
    """Refuse a server that lists its versions without a legacy one. Raises McpServerError."""
    if Era.LEGACY not in channel.eras or (offered and not set(offered) & set(LEGACY_VERSIONS)):
        raise _no_common_version(offered or ())


class _Probe:
    """The request `server/discover` followed by a ping, on a connection that keeps messages in order."""

    def __init__(self, channel: Channel, has_read_all: Callable[[], bool] | None) -> None:
        self._channel = channel
        self._has_read_all = has_read_all
        self._tasks: list[asyncio.Task[dict[str, Any]]] = []
        self._discover: asyncio.Task[dict[str, Any]] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """Send both requests. Return the answer to `server/discover`, or None if the server did not answer it."""
        discover, ping = self._send("server/discover", params), self._send("ping", params)
        self._discover = discover
        await self._wait([discover, ping])
        if ping.done() and not discover.done():
            # Only a legacy server answers the ping with a result. A refusal does not identify the era. It may arrive
            # first if the server handles requests concurrently.
            grace_s = DISCOVER_GRACE_S if ping.exception() else 0.0
            await asyncio.wait([discover], timeout=grace_s)
        return discover.result() if discover.done() else None

    def late_answer(self) -> dict[str, Any] | None:
        """Return an answer to `server/discover` that arrived after the wait had ended."""
        task = self._discover
        return None if task is None or not task.done() or task.cancelled() or task.exception() else task.result()

    def _send(self, method: str, params: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
        task = asyncio.create_task(self._channel.ask(method, params, cancellable=False))
        self._tasks.append(task)
        return task

    async def _wait(self, tasks: list[asyncio.Task[dict[str, Any]]]) -> None:
        """Wait for the first answer, as long as the server may be silent."""
        now = asyncio.get_running_loop().time
        end = now() + PROBE_TIMEOUT_S
        read_at: float | None = None
        while (left_s := end - now()) > 0:
            done, _ = await asyncio.wait(tasks, timeout=min(PROBE_POLL_S, left_s), return_when=asyncio.FIRST_COMPLETED)
            if done:
                return
            if read_at is None and self._has_read_all is not None and self._has_read_all():
                read_at = now()
                end = min(end, read_at + IGNORED_PROBE_TIMEOUT_S)


async def _initialize(channel: Channel, *, roots: bool) -> McpAgreement:
    channel.version = None
    capabilities = {**CAPABILITIES, "roots": {"listChanged": True}} if roots else CAPABILITIES
    params = {"protocolVersion": LEGACY_VERSIONS[-1], "capabilities": capabilities, "clientInfo": CLIENT_INFO}
    try:
        result = await channel.ask("initialize", params, cancellable=False)
    except RemoteError as refusal:
        supported = _supported(refusal)
        if supported is None or set(supported) & set(MODERN_VERSIONS):
            raise
        older = _common(supported, LEGACY_VERSIONS[:-1])
        if older is None:
            raise _no_common_version(supported) from None
        result = await channel.ask("initialize", {**params, "protocolVersion": older}, cancellable=False)
    version = result.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        answered, expected = one_line(str(version), 100), ", ".join(LEGACY_VERSIONS)
        raise McpServerError(f"the server answered initialize with version {answered}, expected one of {expected}")
    channel.version = version
    await channel.notify("notifications/initialized", {})
    return _agreement(Era.LEGACY, version, result, roots=roots)


def _agreement(era: Era, version: str, result: dict[str, Any], *, roots: bool) -> McpAgreement:
    can, instructions = result.get("capabilities"), result.get("instructions")
    capabilities = cast("dict[str, Any]", can) if isinstance(can, dict) else {}
    return McpAgreement(era, version, capabilities, instructions if isinstance(instructions, str) else "", roots)


@cache
def _envelope(version: str, *, roots: bool) -> Mapping[str, Any]:
    """Return the `_meta` fields of each request. Cached, because building them makes a call 10% slower."""
    capabilities: dict[str, Any] = {**MODERN_CAPABILITIES, "roots": {}} if roots else MODERN_CAPABILITIES
    return {
        VERSION_KEY: version,
        CLIENT_INFO_KEY: CLIENT_INFO,
        CAPABILITIES_KEY: capabilities,
    }


def _supported(refusal: DragomanError) -> list[str] | None:
    """Return the versions that a refusal lists, or None. Legacy servers refuse with -32602."""
    codes = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_PARAMS)
    if not isinstance(refusal, RemoteError) or refusal.code not in codes:
        return None
    data: Any = refusal.data
    listed = cast("dict[str, Any]", data).get("supported") if isinstance(data, dict) else None
    return _texts(listed) if isinstance(listed, list) else None


def _texts(listed: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", listed)] if isinstance(listed, list) else []


def _no_common_version(theirs: Sequence[str]) -> McpServerError:
    refused = _common(theirs, VERSIONS)
    if refused is not None:
        problem = f"the server refuses version {refused} of MCP, but lists it as supported"
        return McpServerError(f"{problem}; report this to its maintainers")
    named = one_line(", ".join(theirs[:10]), 200) or "none"
    return McpServerError(
        f"no version of MCP is supported by both sides: the server supports {named}, and "
        f"dragoman supports {', '.join(VERSIONS)}"
    )
