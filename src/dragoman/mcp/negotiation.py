"""The agreement with a server on an era and a version.

A server of an unknown era is asked `server/discover`; where that is refused, `initialize` follows on the same
connection. Some legacy servers say nothing at all to a method they do not know. So on a pipe a `ping` goes out right
behind, in the form of the modern era: legacy servers answer it, whatever else it carries, and modern servers refuse
it, because their era has no ping. An answered ping thus tells the era before any timeout. `initialize` itself must not
go out before that: a server of both eras would take it as the choice of the old one.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman import __version__
from dragoman.errors import DragomanError, InvalidResult, RemoteError, ServerFailure
from dragoman.mcp.channel import Channel, HttpRefusal
from dragoman.mcp.era import LEGACY_VERSIONS, MODERN_VERSIONS, VERSIONS, Era
from dragoman.text import one_line

UNSUPPORTED_VERSION = -32022
"""The error of a modern server for a version that it does not speak; `data.supported` lists those it does."""

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES: dict[str, Any] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
MODERN_CAPABILITIES: dict[str, Any] = {**CAPABILITIES, "roots": {}, "extensions": {TASKS: {}}}
CLIENT_INFO = {"name": "dragoman", "title": "Dragoman", "version": __version__}

_FINAL_STATUSES = frozenset((401, 403, 407, 429))
"""Refusals that have nothing to do with the era."""

SILENCE_S = 20.0
"""How long a server may say nothing to the probe before `initialize` is sent: it may still be starting."""

DISCOVER_GRACE_S = 2.0
"""How long the answer to the probe may come after the refusal of the ping behind it."""


class McpAgreement(msgspec.Struct, frozen=True):
    """The era and version that both sides speak, and what the server told of itself."""

    era: Era
    version: str
    capabilities: dict[str, Any]
    instructions: str = ""

    @property
    def is_modern(self) -> bool:
        """Whether each request carries its version and our capabilities."""
        return self.era is Era.MODERN

    def envelope(self) -> dict[str, Any]:
        """Return what the `_meta` of each request holds."""
        return _envelope(self.version) if self.is_modern else {}


async def negotiate(channel: Channel, known: Era | None = None) -> McpAgreement:
    """Agree on an era and a version; the era known from before is tried first.

    Raises ServerFailure with the versions of both sides where they share none, RemoteError, InvalidResult and
    ConnectionClosed.
    """
    if Era.MODERN not in channel.eras:
        return await _initialize(channel)
    if known is Era.LEGACY and Era.LEGACY in channel.eras:
        try:
            return await _initialize(channel)
        except RemoteError as refusal:  # it may have been replaced by a newer server since
            found = await _discover(channel)
            if found is None:
                raise refusal from None
            return found
    return await _discover(channel, with_ping=known is None and channel.can_ping) or await _initialize(channel)


async def _discover(channel: Channel, *, with_ping: bool = False) -> McpAgreement | None:
    """Return the agreement with a modern server; None for a legacy one. Raises ServerFailure."""
    version = MODERN_VERSIONS[-1]
    for is_last in (False, True):
        channel.version = version
        params = {"_meta": _envelope(version)}
        try:
            result = await (_probe(channel, params) if with_ping else channel.ask("server/discover", params))
        except (RemoteError, InvalidResult, ServerFailure) as refusal:
            if isinstance(refusal, HttpRefusal) and refusal.status in _FINAL_STATUSES:
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
        return _agreement(Era.MODERN, version, result)
    return None


def _common(offered: Sequence[str]) -> str | None:
    """Return the newest modern version that both sides speak."""
    return next((each for each in reversed(MODERN_VERSIONS) if each in offered), None)


def _check_legacy(channel: Channel, offered: Sequence[str] | None) -> None:
    """Refuse a server that names its versions, and has no legacy one among them; raises ServerFailure."""
    if offered and (Era.LEGACY not in channel.eras or not set(offered) & set(LEGACY_VERSIONS)):
        raise _no_common_version(offered)


async def _probe(channel: Channel, params: dict[str, Any]) -> dict[str, Any] | None:
    """Ask `server/discover`, and nothing more of a server that is silent about it; None for such a server."""
    discover = asyncio.create_task(channel.ask("server/discover", params, cancellable=False))
    ping = asyncio.create_task(channel.ask("ping", params, cancellable=False))
    try:
        await asyncio.wait([discover, ping], timeout=SILENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if ping.done() and not discover.done():
            # Only a legacy server has answered with a result. A refusal tells nothing, and comes before the
            # answer where a server works at several requests at once.
            grace_s = DISCOVER_GRACE_S if ping.exception() else 0.0
            await asyncio.wait([discover], timeout=grace_s)
        return discover.result() if discover.done() else None
    finally:
        for task in (discover, ping):
            task.cancel()
        await asyncio.gather(discover, ping, return_exceptions=True)


async def _initialize(channel: Channel) -> McpAgreement:
    channel.version = None
    params = {"protocolVersion": LEGACY_VERSIONS[-1], "capabilities": CAPABILITIES, "clientInfo": CLIENT_INFO}
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
    return _agreement(Era.LEGACY, version, result)


def _agreement(era: Era, version: str, result: dict[str, Any]) -> McpAgreement:
    can, words = result.get("capabilities"), result.get("instructions")
    capabilities = cast("dict[str, Any]", can) if isinstance(can, dict) else {}
    return McpAgreement(era, version, capabilities, words if isinstance(words, str) else "")


def _envelope(version: str) -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
        "io.modelcontextprotocol/clientCapabilities": MODERN_CAPABILITIES,
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
