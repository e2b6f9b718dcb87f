"""`create_app`: the bridge as an ASGI application for any server, or for mounting in another application."""

import os
import shlex
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dragoman.bridge.bridge import Bridge
from dragoman.bridge.settings import AgentSpec, BridgeSettings

if TYPE_CHECKING:
    from dragoman.bridge.front.app import Application

DEFAULT_PORTS = {"http": 80, "https": 443}
_UNOPENED = (
    b"the bridge is not open: pass its lifespan to the outer application, as in FastAPI(lifespan=app.lifespan)\n"
)


class BridgeApp:
    """The ASGI application of a bridge, with the page, `/acp` and all other paths of `dragoman serve`.

    `create_app` makes it. Agents run during its lifespan. A server that runs the application directly controls the
    lifespan. If the application is mounted in another one, pass `lifespan` to the outer application or enter it there.
    """

    def __init__(self, application: "Application", bridge: Bridge, token: str) -> None:
        self.token = token
        """The secret of the owner, for `Authorization: Bearer …`."""
        self.agents = bridge.settings.agents
        self._application = application
        self._bridge = bridge
        self._is_open = False

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Open the bridge, and stop its agents at the end. `app` is the outer application and is not used.

        Raises BridgeBusyError if another bridge uses the same home.
        """
        del app
        async with self._bridge:
            self._is_open = True
            try:
                yield
            finally:
                self._is_open = False
                await self._application.stop()

    async def stop(self) -> None:
        """End all streams. Some servers wait for open streams before they end the lifespan."""
        await self._application.stop()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif self._is_open:
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": _UNOPENED})
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1013, "reason": _UNOPENED.decode().strip()})

    async def _run_lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        opened = self.lifespan()
        try:
            await opened.__aenter__()
        except Exception as error:  # noqa: BLE001 -- boundary: the server reports why it cannot start
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await opened.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})


def create_app(
    agents: Mapping[str, str | Sequence[str] | AgentSpec],
    *,
    home: str | os.PathLike[str],
    public_url: str = "http://127.0.0.1:8000",
    token: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    store: str | None = None,
    allow_hosts: Iterable[str] = (),
    allow_origins: Iterable[str] = (),
) -> BridgeApp:
    """Return a bridge of these agents as an ASGI application. The agents start with its lifespan.

    `agents` maps names to commands. A command is a list of words, or a string that is split as a shell splits it. The
    first agent is the default. Journals and the token are stored in `home`, which only one bridge at a time can use.
    `public_url` is the URL that users open, including the prefix of the mount. Requests for other hosts and from pages
    of other origins are refused, except those in `allow_hosts` and `allow_origins`. The names of this machine at that
    port are always allowed. `token` is the secret of the owner, by default a random one that is stored in `home`. `cwd`
    is the directory that the page proposes, by default the current one. `store` is the URL of a PostgreSQL database for
    the journals, which several bridges can share. Without it they are files in `home`.

    Raises ValueError for invalid agents or an invalid token, InvalidServedAddressError for an invalid URL, host or
    origin, and InvalidStoreAddressError or StoreNotInstalledError for an unusable store.
    """
    # Imported here, because the front imports this package.
    from dragoman.bridge.front.app import Application
    from dragoman.bridge.guard import Guard, Token, keep_token, make_policy
    from dragoman.bridge.guard.policy import LOOPBACK_NAMES, split_public_url
    from dragoman.store import find_address, read_lease

    directory = Path(home)
    settings = BridgeSettings(
        agents=tuple(_spec(name, given) for name, given in agents.items()),
        home=directory,
        cwd=os.path.abspath(cwd or "."),  # noqa: PTH100 -- Path.absolute keeps `..`
        store=None if store is None else find_address(store),
        lease_s=None if store is None else read_lease(),
    )
    scheme, authority = split_public_url(public_url)
    secret = keep_token(directory / "bridge") if token is None else Token(token)
    policy = make_policy(
        secret,
        names=LOOPBACK_NAMES,
        port=authority.port or DEFAULT_PORTS[scheme],
        allow_hosts=allow_hosts,
        allow_origins=allow_origins,
        public_url=public_url,
    )
    bridge = Bridge(settings)
    prefix = unquote(urlsplit(public_url).path).rstrip("/")
    guard = Guard(policy, bridge.credential_stores(secret))
    return BridgeApp(Application(bridge, guard, prefix=prefix), bridge, secret.reveal())


def _spec(name: str, given: str | Sequence[str] | AgentSpec) -> AgentSpec:
    if isinstance(given, AgentSpec):
        if given.name != name:
            raise ValueError(
                f"the agent {name!r} has the name {given.name!r} in its AgentSpec; use the same name in both places"
            )
        return given
    return AgentSpec(name, tuple(shlex.split(given) if isinstance(given, str) else given))
