"""The bridge as an ASGI application. It can be mounted under a prefix of another application.

    /                    the page                        public
    /static/…            the files of the page           public
    /login               a code or the token → a cookie  public
    /logout              the end of a login              with a credential
    /config.json         the configuration of the page   with a credential
    /render              Markdown → HTML                 with a credential
    /link                a one-time link                 owners
    /metrics             figures for Prometheus          owners, and the token for metrics
    /shares              links for readers               owners
    /export/<agent>      a session as a file             with a credential that reaches the session
    /acp /acp/<agent>    ACP, by HTTP and WebSocket      with a credential that reaches the agent
    /oauth/callback      the way back from a login       with its state, once
    /answer              one question and its answer     with the code of its link, once

The guard checks a request before its body is read and before any upgrade. A reader of one session may only use its
agent, `/export` and the paths in FOR_SCOPED, and sees only that session there. A new path is refused by default.
"""

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from urllib.parse import quote

from dragoman.bridge import Bridge, ServedAgent
from dragoman.bridge.figures import write_prometheus
from dragoman.bridge.front.acp_http import Affinity, HttpEndpoint, HttpViewers, access_of
from dragoman.bridge.front.acp_socket import PANEL_PATH, ViewerSocket
from dragoman.bridge.front.answer_page import ANSWER_PATH
from dragoman.bridge.front.asgi import Receive, Scope, Send, record_credential, route
from dragoman.bridge.front.exchange import ClientGoneError, Exchange, HttpError, raising_client_gone, refuse_upgrade
from dragoman.bridge.front.export import EXPORT_PATH
from dragoman.bridge.front.limits import RequestLimits
from dragoman.bridge.front.login_return import LoginReturn
from dragoman.bridge.front.pages import Pages
from dragoman.bridge.front.share_pages import SHARES_PATH
from dragoman.bridge.guard import AccessDenial, AccessUnavailableError, Grant, Guard
from dragoman.bridge.guard.answers import NO_STORE
from dragoman.bridge.problem import TooManyViewersError
from dragoman.bridge.settings import CALLBACK_PATH
from dragoman.errors import DragomanError
from dragoman.text import one_line
from dragoman.text.match import closest

METRICS_PATH = "/metrics"
PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"

FOR_SCOPED = frozenset({"/config.json", "/render", "/logout"})
"""Paths that a reader of one session may use in addition to its agent's."""

_RETRY_S = 30
"""Retry-After when there are too many viewers. Some have timed out by then."""

_MOST_NAMED = 20
_NAME_CHARS = 60
"""Limits for the names in an error message, which must stay readable."""

_NOT_SHARED = "this link gives access to one session only; ask the owner for another link"

_log = logging.getLogger("dragoman.bridge.front")


class Application:
    """Serves a bridge over HTTP and WebSockets.

    `prefix` is the public path under which the application is served. A proxy may or may not remove it. With
    `opens_bridge` the lifespan of the application opens and closes the bridge.
    """

    def __init__(
        self,
        bridge: Bridge,
        guard: Guard,
        *,
        limits: RequestLimits | None = None,
        prefix: str = "",
        opens_bridge: bool = False,
    ) -> None:
        limits = limits or RequestLimits()
        self.limits = limits
        self.stopping = asyncio.Event()
        self._bridge = bridge
        self._guard = guard
        self._prefix = prefix
        self._opens_bridge = opens_bridge
        self._affinity = Affinity()
        self._connections = HttpViewers(limits)
        self.max_message_bytes = bridge.settings.viewer_limits.max_message_bytes
        self._pages = Pages(bridge, guard, limits)
        self._http = HttpEndpoint(
            self._connections,
            self._affinity,
            limits,
            self.max_message_bytes,
            address_of=self._address_of,
            watch_share=self._pages.shares.watch,
        )
        self._login_return = LoginReturn(bridge, guard)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        if self._is_prefixed(scope["path"]):
            scope = {**scope, "root_path": self._prefix}
        with suppress(ClientGoneError):
            if scope["type"] == "http":
                await self._serve_http(Exchange(scope, receive, raising_client_gone(send)))
            elif scope["type"] == "websocket":
                await self._serve_socket(scope, receive, raising_client_gone(send))

    def _is_prefixed(self, path: str) -> bool:
        """Return whether a path still has the prefix. A path that already names an agent does not."""
        is_below = path == self._prefix or path.startswith(f"{self._prefix}/")
        return bool(self._prefix) and is_below and self._find_agent(path) is None

    async def stop(self) -> None:
        """End all streams, the viewers over HTTP and the renderers.

        The agents begin to stop at the same time, because the bridge closes next.
        """
        self.stopping.set()
        self._bridge.begin_stop()
        await self._connections.close_all()
        await self._pages.close()

    async def _serve_http(self, exchange: Exchange) -> None:
        try:
            await self._route(exchange)
        except ClientGoneError:
            raise
        except HttpError as refused:
            await _answer(exchange, refused)
        except TooManyViewersError as error:
            await _answer(exchange, _busy(error))
        except AccessUnavailableError as error:
            await _answer(exchange, HttpError(503, str(error)))
        except Exception:  # noqa: BLE001 -- boundary: a failed request must not end the connection
            _log.exception("a request to %s failed", exchange.path)
            await _answer(
                exchange, HttpError(500, "the bridge failed while handling this request; see its log for the reason")
            )

    async def _route(self, exchange: Exchange) -> None:
        if _is_public(exchange.path):
            refusal = self._guard.admit_public(exchange.scope)
            if refusal is not None:
                raise _refused(refusal)
            await self._serve_public(exchange)
            return
        is_metrics = exchange.path == METRICS_PATH
        grant = self._guard.admit_metrics(exchange.scope) if is_metrics else await self._guard.authorize(exchange.scope)
        if isinstance(grant, AccessDenial):
            raise _refused(grant)
        record_credential(exchange.scope, grant.share_id)
        if is_metrics:
            await self._send_metrics(exchange)
        else:
            await self._serve_admitted(exchange, grant)

    async def _send_metrics(self, exchange: Exchange) -> None:
        exchange.allow("GET", "HEAD")
        await exchange.reply(200, write_prometheus(self._bridge.measure()), [NO_STORE], kind=PROMETHEUS)

    async def _serve_public(self, exchange: Exchange) -> None:
        if exchange.path == "":
            await _add_slash(exchange)
        elif exchange.path == "/":
            await self._pages.serve_file(exchange, "index.html")
        elif exchange.path == "/login":
            await self._pages.log_in(exchange)
        elif exchange.path == CALLBACK_PATH:
            await self._login_return.serve(exchange)
        elif exchange.path == ANSWER_PATH:
            await self._pages.answers.serve(exchange)
        else:
            await self._pages.serve_file(exchange, exchange.path.removeprefix("/static/"))

    async def _serve_admitted(self, exchange: Exchange, grant: Grant) -> None:
        # Readers of one session are refused here, so no handler below needs to know about them.
        agent = self._find_agent(exchange.path)
        if not _may_use(grant, exchange.path, agent):
            raise HttpError(403, _NOT_SHARED)
        if agent is not None:
            await self._http.serve(exchange, agent, grant, self.stopping)
        elif exchange.path == SHARES_PATH or exchange.path.startswith(f"{SHARES_PATH}/"):
            await self._pages.shares.serve(exchange, grant)
        elif exchange.path.startswith(EXPORT_PATH):
            await self._pages.exports.serve(exchange, grant)
        elif exchange.path == "/config.json":
            await self._pages.send_config(exchange, grant)
        elif exchange.path == "/render":
            await self._pages.render(exchange, grant)
        elif exchange.path == "/link":
            await self._pages.make_link(exchange, grant)
        elif exchange.path == "/logout":
            await self._pages.log_out(exchange)
        else:
            raise HttpError(404, self._explain_missing(exchange.path, grant))

    def _explain_missing(self, path: str, grant: Grant) -> str:
        """Return the error message for a path that does not exist, with the paths that do."""
        if not path.startswith("/acp/"):
            return "nothing is served at this path; ACP is at /acp, or at /acp/NAME for one of several agents"
        name = path.removeprefix("/acp/")
        known = [agent.name for agent in self._bridge.settings.agents if grant.reaches(agent.name)]
        near = closest(name, known)
        hint = "" if near is None else f"; did you mean {near}?"
        named, rest = ", ".join(known[:_MOST_NAMED]), len(known) - _MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        return f"there is no agent {one_line(name, _NAME_CHARS)!r}{hint or ';'} the bridge has {named}{more}"

    def _find_agent(self, path: str) -> ServedAgent | None:
        if path == "/acp":
            return self._bridge.agent()
        return self._bridge.agent(path.removeprefix("/acp/")) if path.startswith("/acp/") else None

    def _address_of(self, scope: Scope) -> str | None:
        """Return the public URL by which a client reaches the bridge, including the prefix."""
        origin = self._guard.origin_of(scope)
        prefix = self._prefix or str(scope.get("root_path", "")).rstrip("/")
        return None if origin is None else f"{origin}{quote(prefix)}"

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        is_panel = route(scope) == PANEL_PATH
        grant = await self._guard.authorize(scope, for_panel=is_panel)
        if isinstance(grant, AccessDenial):
            await refuse_upgrade(scope, send, _refused(grant))
            return
        record_credential(scope, grant.share_id)
        agent = self._bridge.agent() if is_panel else self._find_agent(route(scope))
        if agent is None:
            await refuse_upgrade(scope, send, HttpError(404, self._explain_missing(route(scope), grant)))
            return
        if not _may_use(grant, route(scope), agent):
            await refuse_upgrade(scope, send, HttpError(403, _NOT_SHARED))
            return
        try:
            viewer = agent.open_viewer(access_of(grant), address=self._address_of(scope))
        except TooManyViewersError as error:
            await refuse_upgrade(scope, send, _busy(error))
            return
        over = self._pages.shares.watch(grant.share)
        try:
            socket = ViewerSocket(receive, send, viewer, takes_bytes=is_panel)
            await socket.accept(scope, self._guard, self._affinity)
            await socket.run(self.stopping)
        finally:
            if over is not None:
                over.cancel()
            await asyncio.shield(viewer.close())

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        """Run the ASGI lifespan: open the bridge when the server starts, and stop when the server stops."""
        async with AsyncExitStack() as stack:
            await receive()
            try:
                if self._opens_bridge:
                    await stack.enter_async_context(self._bridge)
            except DragomanError as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


def _is_public(path: str) -> bool:
    return path in {"", "/", "/login", CALLBACK_PATH, ANSWER_PATH} or path.startswith("/static/")


def _may_use(grant: Grant, path: str, agent: ServedAgent | None) -> bool:
    if not grant.is_scoped:
        return True
    is_open = path in FOR_SCOPED or path.startswith(EXPORT_PATH)
    return is_open if agent is None else grant.reaches(agent.spec.name)


def _refused(refusal: AccessDenial) -> HttpError:
    return HttpError(refusal.status, refusal.reason, list(refusal.headers))


def _busy(error: TooManyViewersError) -> HttpError:
    return HttpError(503, str(error), [(b"retry-after", b"%d" % _RETRY_S)])


async def _add_slash(exchange: Exchange) -> None:
    """Redirect from the mount point to the page, because the URLs in the page are relative."""
    last = str(exchange.scope.get("root_path", "")).rstrip("/").rpartition("/")[2]
    await exchange.reply(307, headers=[(b"location", f"{quote(last)}/".encode())])


async def _answer(exchange: Exchange, refused: HttpError) -> None:
    if not exchange.answered:
        await exchange.refuse(refused.status, refused.reason, refused.headers)
