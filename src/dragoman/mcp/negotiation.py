"""The agreement with a server on an era and a version.

A server of an unknown era is asked `server/discover`; where that is refused, `initialize` follows on the same
connection. Some legacy servers say nothing at all to a method they do not know. So on a pipe a `ping` goes out right
behind, in the form of the modern era: legacy servers answer it, whatever else it carries, and modern servers refuse
it, because their era has no ping. An answered ping thus tells the era before any timeout. `initialize` itself must not
go out before that: a server of both eras would take it as the choice of the old one.

A few answer neither. A server that is still starting has not read its pipe yet, and has `SILENCE_S`; one that has read
both questions and says nothing ignores them, and has `QUIET_S`. A launcher may have read them for it: so the answer to
`server/discover` still counts if `initialize` is refused afterwards.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self, cast

import msgspec

from dragoman import __version__
from dragoman.errors import DragomanError, InvalidResult, RemoteError, ServerFailure
from dragoman.mcp.channel import AuthorisationFailed, Channel, HttpRefusal
from dragoman.mcp.era import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
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
"""Refusals that have nothing to do with the era."""

SILENCE_S = 20.0
"""How long a server may say nothing to the probe before `initialize` is sent: it may still be starting."""

QUIET_S = 3.0
"""How long a server may say nothing to a probe that it has read."""

LOOK_S = 0.1
"""The pause between two looks at whether the probe was read."""

DISCOVER_GRACE_S = 2.0
"""How long the answer to the probe may come after the refusal of the ping behind it."""


class McpAgreement(msgspec.Struct, frozen=True):
    """The era and version that both sides speak, and what the server told of itself."""

    era: Era
    version: str
    capabilities: dict[str, Any]
    instructions: str = ""
    roots: bool = True
    """Whether we have told the server that it can ask for roots."""

    @property
    def is_modern(self) -> bool:
        """Whether each request carries its version and our capabilities."""
        return self.era is Era.MODERN

    def envelope(self) -> Mapping[str, Any]:
        """Return what the `_meta` of each request holds."""
        return _envelope(self.version, roots=self.roots) if self.is_modern else {}


async def negotiate(
    channel: Channel,
    known: Era | None = None,
    *,
    roots: bool = True,
    has_read_all: Callable[[], bool] | None = None,
) -> McpAgreement:
    """Agree on an era and a version; the era known from before is tried first. Without `roots` none are offered.

    `has_read_all` tells whether the server's process has read all that it was sent.
    Raises ServerFailure with the versions of both sides where they share none, RemoteError, InvalidResult and
    ConnectionClosed.
    """
    if Era.MODERN not in channel.eras:
        return await _initialize(channel, roots=roots)
    if known is Era.LEGACY and Era.LEGACY in channel.eras:
        try:
            return await _initialize(channel, roots=roots)
        except RemoteError as refusal:  # it may have been replaced by a newer server since
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
    """Shake hands with a server that was silent about the probe; its late answer counts if it refuses."""
    try:
        return await _initialize(channel, roots=roots)
    except RemoteError:
        late = probe.late_answer()
        version = channel.version = None if late is None else _common(_texts(late.get("supportedVersions")))
        if late is None or version is None:
            raise
        return _agreement(Era.MODERN, version, late, roots=roots)


async def _discover(channel: Channel, *, roots: bool, probe: "_Probe | None" = None) -> McpAgreement | None:
    """Return the agreement with a modern server; None for a legacy one. Raises ServerFailure."""
    version = MODERN_VERSIONS[-1]
    for is_last in (False, True):
        channel.version = version
        params = {"_meta": _envelope(version, roots=roots)}
        try:
            result = await (probe.ask(params) if probe else channel.ask("server/discover", params))
        except (RemoteError, InvalidResult, ServerFailure) as refusal:
            is_final = isinstance(refusal, HttpRefusal) and refusal.status in _FINAL_STATUSES
            if is_final or isinstance(refusal, AuthorisationFailed):
                raise
            listed = _supported(refusal)
            if listed is None and Era.LEGACY not in channel.eras:
                raise
            version = None if listed is None or is_last else _common(listed)
            if version is None:
                _check_legacy(channel, listed)
                return None
            continue
        if result is None:
            return None
        offered = _texts(result.get("supportedVersions"))
        channel.version = version = _common(offered)
        if version is None:
            _check_legacy(channel, offered)
            return None
        return _agreement(Era.MODERN, version, result, roots=roots)
    return None


def _common(offered: Sequence[str]) -> str | None:
    """Return the newest modern version that both sides speak."""
    return next((each for each in reversed(MODERN_VERSIONS) if each in offered), None)


def _check_legacy(channel: Channel, offered: Sequence[str] | None) -> None:
    """Refuse a server that names its versions, and has no legacy one among them; raises ServerFailure."""
    if Era.LEGACY not in channel.eras or (offered and not set(offered) & set(LEGACY_VERSIONS)):
        raise _no_common_version(offered or ())


class _Probe:
    """The question `server/discover` with a ping behind it, on a connection whose messages arrive in order."""

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
        """Ask, and nothing more of a server that is silent about it; None for such a server."""
        discover, ping = self._send("server/discover", params), self._send("ping", params)
        self._discover = discover
        await self._wait([discover, ping])
        if ping.done() and not discover.done():
            # Only a legacy server has answered with a result. A refusal tells nothing, and comes before the
            # answer where a server works at several requests at once.
            grace_s = DISCOVER_GRACE_S if ping.exception() else 0.0
            await asyncio.wait([discover], timeout=grace_s)
        return discover.result() if discover.done() else None

    def late_answer(self) -> dict[str, Any] | None:
        """Return the answer to `server/discover` that came after it was waited for."""
        task = self._discover
        return None if task is None or not task.done() or task.cancelled() or task.exception() else task.result()

    def _send(self, method: str, params: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
        task = asyncio.create_task(self._channel.ask(method, params, cancellable=False))
        self._tasks.append(task)
        return task

    async def _wait(self, tasks: list[asyncio.Task[dict[str, Any]]]) -> None:
        """Wait for the first answer, as long as the server may be silent."""
        now = asyncio.get_running_loop().time
        end = now() + SILENCE_S
        read_at: float | None = None
        while (left_s := end - now()) > 0:
            done, _ = await asyncio.wait(tasks, timeout=min(LOOK_S, left_s), return_when=asyncio.FIRST_COMPLETED)
            if done:
                return
            if read_at is None and self._has_read_all is not None and self._has_read_all():
                read_at = now()
                end = min(end, read_at + QUIET_S)


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
        raise _no_common_version(supported) from None
    version = result.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        raise _no_common_version([str(version)])
    channel.version = version
    await channel.tell("notifications/initialized", {})
    return _agreement(Era.LEGACY, version, result, roots=roots)


def _agreement(era: Era, version: str, result: dict[str, Any], *, roots: bool) -> McpAgreement:
    can, words = result.get("capabilities"), result.get("instructions")
    capabilities = cast("dict[str, Any]", can) if isinstance(can, dict) else {}
    return McpAgreement(era, version, capabilities, words if isinstance(words, str) else "", roots)


@cache
def _envelope(version: str, *, roots: bool) -> Mapping[str, Any]:
    """Return what every request carries; made once, because a call would take a tenth longer."""
    capabilities: dict[str, Any] = {**MODERN_CAPABILITIES, "roots": {}} if roots else MODERN_CAPABILITIES
    return {
        VERSION_KEY: version,
        CLIENT_INFO_KEY: CLIENT_INFO,
        CAPABILITIES_KEY: capabilities,
    }


def _supported(refusal: DragomanError) -> list[str] | None:
    """Return the versions that a refusal lists; None where it lists none."""
    if not isinstance(refusal, RemoteError) or refusal.code != UNSUPPORTED_VERSION:
        return None
    data: Any = refusal.data
    return _texts(cast("dict[str, Any]", data).get("supported")) if isinstance(data, dict) else None


def _texts(listed: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", listed)] if isinstance(listed, list) else []


def _no_common_version(theirs: Sequence[str]) -> ServerFailure:
    named = one_line(", ".join(theirs[:10]), 200) or "none"
    return ServerFailure(
        f"there is no version of MCP that both sides speak: the server speaks {named}, and we {', '.join(VERSIONS)}"
    )
