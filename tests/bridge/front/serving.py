"""A bridge with its front on a real socket."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from dragoman.bridge import AgentSpec, Bridge, BridgeSettings
from dragoman.bridge.front.app import Application
from dragoman.bridge.front.limits import RequestLimits, ServerLimits
from dragoman.bridge.front.server import Server, Tls
from dragoman.bridge.guard import CredentialStores, Guard, Token, make_policy, served_names
from tests.bridge.viewers import settings_of

AGENT = Path(__file__).with_name("agent.py")
TOKEN = "t" * 43


class Serving(msgspec.Struct):
    """The address of the bridge and the credentials for it."""

    port: int
    bridge: Bridge
    guard: Guard
    app: Application
    server: Server
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {TOKEN}"}


def make_settings(home: Path, **changes) -> BridgeSettings:
    one = AgentSpec(name="one", command=(sys.executable, str(AGENT)), title="The first")
    two = AgentSpec(name="two", command=(sys.executable, str(AGENT)))
    return settings_of(**{"agents": (one, two), "home": home, "cwd": "/somewhere", **changes})


def make_guard(port: int, stores: CredentialStores | None = None, **changes) -> Guard:
    return Guard(make_policy(Token(TOKEN), names=served_names("127.0.0.1"), port=port, **changes), stores)


@asynccontextmanager
async def serving(
    home: Path,
    *,
    limits: ServerLimits | None = None,
    requests: RequestLimits | None = None,
    stall_s: float = 30,
    tls: Tls | None = None,
    prefix: str = "",
    public_url: str | None = None,
    **changes,
) -> AsyncIterator[Serving]:
    settings = make_settings(home, stall_s=stall_s, **changes)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    async with Bridge(settings) as bridge:
        stores = bridge.credential_stores(Token(TOKEN))
        guard = make_guard(port, stores, is_tls=tls is not None, public_url=public_url)
        app = Application(bridge, guard, limits=requests, prefix=prefix)
        async with Server(app, listening, limits=limits, tls=tls, stall_s=stall_s) as server:
            yield Serving(port, bridge, guard, app, server, "http" if tls is None else "https")


@asynccontextmanager
async def open_stream(served: Serving) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a byte stream, and cut it at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()
