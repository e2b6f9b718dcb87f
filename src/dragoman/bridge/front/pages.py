"""The page's paths: its files, login and logout, its configuration, and Markdown rendering."""

import asyncio
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.parse import parse_qs

import msgspec

import dragoman
from dragoman.bridge import Bridge
from dragoman.bridge.front.answer_page import AnswerPage
from dragoman.bridge.front.asgi import Headers
from dragoman.bridge.front.exchange import NO_STORE, ClientGoneError, Exchange, HttpError, decode_form, race
from dragoman.bridge.front.export import SessionExport
from dragoman.bridge.front.limits import RequestLimits
from dragoman.bridge.front.share_pages import SharePages
from dragoman.bridge.guard import Grant, Guard
from dragoman.bridge.guard.answers import Role

if TYPE_CHECKING:
    from dragoman.bridge.front.render import Renderer

WEB = Path(__file__).parent.parent / "web"

KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".mjs": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".webmanifest": b"application/manifest+json",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
    ".woff2": b"font/woff2",
}
"""Content types by suffix. Files with other suffixes are not served."""

UNAUTHORIZED = 401

_WORKERS = "worker/"

_REVALIDATE = (b"cache-control", b"no-cache")
"""Browsers must revalidate cached files, because a page must not run with scripts of another version."""


class StaticFile(NamedTuple):
    """A file of the page with its headers."""

    content: bytes
    kind: bytes
    etag: bytes
    stamp: tuple[int, int]


class StaticFiles:
    """The files below one directory, cached until they change."""

    def __init__(self, root: Path = WEB) -> None:
        self._root = root
        self._kept: dict[str, StaticFile] = {}

    def find(self, path: str) -> StaticFile | None:
        """Return the file at this path, or None if the page has no such file."""
        names = path.split("/")
        if not all(_is_plain(name) for name in names):
            return None
        place = self._root.joinpath(*names)
        kind = KINDS.get(place.suffix)
        try:
            status = place.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if kind is None or place.is_symlink() or not place.is_file():
                return None
            kept = self._kept.get(path)
            if kept is None or kept.stamp != stamp:
                content = place.read_bytes()
                etag = b'"%b"' % blake2b(content, digest_size=12).hexdigest().encode()
                kept = self._kept[path] = StaticFile(content, kind, etag, stamp)
        except OSError:
            return None
        return kept


def _is_plain(name: str) -> bool:
    """Return whether a file name is safe: not `..`, not hidden, only letters, digits, `-`, `_` and `.`."""
    return not name.startswith((".", "-")) and name.replace("-", "").replace("_", "").replace(".", "").isalnum()


class _Login(msgspec.Struct, forbid_unknown_fields=True):
    token: str | None = None
    code: str | None = None


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    markdown: str


class Pages:
    """Serves everything except `/acp`."""

    def __init__(self, bridge: Bridge, guard: Guard, limits: RequestLimits) -> None:
        self.shares = SharePages(bridge, guard, limits)
        self.exports = SessionExport(bridge)
        self.answers = AnswerPage(bridge, guard, limits, self.serve_file)
        self._settings = bridge.settings
        self._guard = guard
        self._limits = limits
        self._files = StaticFiles()
        self._renderers: dict[Role, Renderer] = {}
        """One renderer per role, so that readers' texts never delay the owner's."""

    async def serve_file(self, exchange: Exchange, path: str) -> None:
        """Send a file of the page."""
        exchange.allow("GET", "HEAD")
        file = self._files.find(path)
        if file is None:
            raise HttpError(404, "the page has no such file")
        headers, worker = [_REVALIDATE, (b"etag", file.etag)], path.startswith(_WORKERS)
        if _is_cached(exchange, file):  # also sends this version's policy, which replaces the cached one
            await exchange.reply(304, headers=headers, kind=file.kind, worker=worker)
        else:
            await exchange.reply(200, file.content, headers, kind=file.kind, worker=worker)

    async def log_in(self, exchange: Exchange) -> None:
        """Set the login cookie of a browser, for a link with a one-time code or for a form."""
        exchange.allow("GET", "HEAD", "POST")
        if exchange.method == "POST":
            form = decode_form(await self._read_form(exchange), _Login)
            cookie = await self._redeem(form)
            if cookie is None:
                self._refuse_login(exchange)
            await exchange.reply(204, headers=[NO_STORE, *_set_cookie(cookie)])
            return
        if exchange.method == "HEAD" or exchange.is_prefetch:
            await exchange.reply(204, headers=[NO_STORE])  # a link preview must not consume the code
            return
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
        codes = query.get("code", [])
        cookie = await self._redeem(_Login(code=codes[0])) if len(codes) == 1 else None
        if cookie is None:
            await self._refuse_link(exchange, is_reader=query.get("for") == ["reader"])
            return
        await exchange.reply(303, headers=[NO_STORE, (b"location", b"./"), *_set_cookie(cookie)])

    async def log_out(self, exchange: Exchange) -> None:
        """End the login of a browser."""
        exchange.allow("POST")
        await exchange.reply(204, headers=[NO_STORE, *_set_cookie(self._guard.logout_cookie())])

    async def make_link(self, exchange: Exchange, grant: Grant) -> None:
        """Create a one-time link for another browser of the owner. Raises HttpError for readers."""
        exchange.allow("POST")
        if grant.role != "owner":
            raise HttpError(403, "only an owner can create links; ask the owner who invited you")
        code = await self._guard.new_link_code()
        await exchange.reply_json(200, {"path": f"login?code={code}"})

    async def send_config(self, exchange: Exchange, grant: Grant) -> None:
        """Send the configuration that the page needs before it connects."""
        exchange.allow("GET", "HEAD")
        agents = [agent for agent in self._settings.agents if grant.reaches(agent.name)]
        config = {
            "version": dragoman.__version__,
            "agents": [{"name": agent.name, "title": agent.title or agent.name} for agent in agents],
            "cwd": "" if grant.is_scoped else self._settings.cwd,
            "role": grant.role,
            "session": None if grant.share is None else grant.share.session,
            "maxMessageBytes": self._settings.viewer_limits.max_message_bytes,
        }
        await exchange.reply_json(200, config)

    async def render(self, exchange: Exchange, grant: Grant) -> None:
        """Answer with the safe HTML of a Markdown text. Raises HttpError and ClientGoneError."""
        from dragoman.bridge.front.render import Renderer, TooManyTextsError

        exchange.allow("POST")
        body = await exchange.read_json(self._limits.max_render_bytes, self._limits.body_timeout_s)
        markdown = decode_form(body, _Text).markdown
        renderer = self._renderers.setdefault(grant.role, Renderer())
        rendering = asyncio.ensure_future(renderer.render(markdown, grant.share_id or ""))
        try:
            await race(asyncio.wait({rendering}), exchange.wait_disconnect())
            if not rendering.done():
                raise ClientGoneError
            await exchange.reply_json(200, {"html": rendering.result()})
        except TooManyTextsError as error:
            raise HttpError(429, str(error), [(b"retry-after", b"1")]) from None
        finally:
            rendering.cancel()

    async def close(self) -> None:
        """Close the renderers. A later text starts a new one."""
        renderers, self._renderers = self._renderers, {}
        for renderer in renderers.values():
            await renderer.close()

    async def _read_form(self, exchange: Exchange) -> bytes:
        return await exchange.read_json(self._limits.max_form_bytes, self._limits.body_timeout_s)

    async def _redeem(self, form: _Login) -> str | None:
        if form.code is not None:
            return await self._guard.redeem_code(form.code) or await self._guard.redeem_share(form.code)
        return None if form.token is None else self._guard.redeem_token(form.token)

    async def _refuse_link(self, exchange: Exchange, *, is_reader: bool) -> None:
        """Redirect a browser to the page, which explains why the link is invalid. Answer a program with the error."""
        refusal = self._guard.refuse_login(exchange.scope)
        if refusal.status != UNAUTHORIZED or not _is_navigation(exchange):
            raise HttpError(refusal.status, refusal.reason, list(refusal.headers))
        place = b"./?refused=reader" if is_reader else b"./?refused=owner"
        await exchange.reply(303, headers=[NO_STORE, (b"location", place)])

    def _refuse_login(self, exchange: Exchange) -> NoReturn:
        refusal = self._guard.refuse_login(exchange.scope)
        raise HttpError(refusal.status, refusal.reason, list(refusal.headers))


def _is_cached(exchange: Exchange, file: StaticFile) -> bool:
    known = (exchange.header(b"if-none-match") or "").split(",")
    return file.etag.decode() in [tag.strip().removeprefix("W/") for tag in known]


def _is_navigation(exchange: Exchange) -> bool:
    """Return whether a browser requests a page to display."""
    kinds = [kind.partition(";")[0].strip().lower() for kind in (exchange.header(b"accept") or "").split(",")]
    return "text/html" in kinds


def _set_cookie(cookie: str | None) -> Headers:
    return [] if cookie is None else [(b"set-cookie", cookie.encode())]
