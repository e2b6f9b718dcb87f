"""Markdown rendering for the page: outside the event loop, limited in size and time, with a cache.

Texts come from agents, and some can make a highlighter hang. A separate process (`render_worker`) therefore does the
work. Clients take turns, so a client with many slow texts delays another client by one text at most. The number of
waiting texts per client is limited. A text is not rendered if its client no longer waits for it.
"""

import asyncio
import os
import subprocess
import sys
import weakref
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from html import escape
from typing import BinaryIO, NamedTuple, cast

from dragoman.bridge.front.render_worker import MAX_WORK_S, read_frame, write_frame
from dragoman.errors import DragomanError

MAX_CHARS = 64 * 1024
"""Longer texts are not rendered."""

CACHE_CHARS = 4 * 1024 * 1024
"""Size of the cache of rendered texts, a few hundred answers, for pages that are opened again."""

MAX_WAITING = 64
"""Waiting texts of one client. A page sends three at a time."""

_FENCES = ("```", "~~~")

PASSED_ON = ("PYTHON", "LD_", "DYLD_")
"""Prefixes of the environment variables for the worker. Python needs these to start, and none has an API key."""


def plain_html(text: str) -> str:
    """Return a text as escaped, unrendered HTML."""
    return f'<div class="plain">{escape(text)}</div>'


class TooManyTextsError(DragomanError):
    """A client has too many texts waiting."""

    def __init__(self) -> None:
        super().__init__(
            f"{MAX_WAITING} texts are waiting to be rendered for this login, the limit; wait for some of them"
        )


class _WaitingText(NamedTuple):
    text: str
    key: bytes
    html: "asyncio.Future[str]"


class Renderer:
    """Renders texts and keeps the latest results."""

    def __init__(self, *, max_work_s: float = MAX_WORK_S) -> None:
        self.kept_chars = 0
        self._max_work_s = max_work_s
        self._kept: OrderedDict[bytes, str] = OrderedDict()
        self._waiting: OrderedDict[str, deque[_WaitingText]] = OrderedDict()
        """The waiting texts by client, in the order of the clients' turns."""
        self._serving: asyncio.Task[None] | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        # A separate thread, because threads that read journals must not wait for a hostile text.
        self._thread = ThreadPoolExecutor(1, "render")

    @property
    def waiting(self) -> int:
        """The number of waiting texts."""
        return sum(map(len, self._waiting.values()))

    async def render(self, markdown: str, client: str = "") -> str:
        """Return safe HTML for a text of a client. Raises TooManyTextsError.

        A text that is too long or takes too long is returned as plain text.
        """
        if len(markdown) > MAX_CHARS:
            return plain_html(markdown)
        text = markdown.encode(errors="replace").decode()  # half a surrogate pair cannot be encoded
        key = blake2b(text.encode(), digest_size=16).digest()
        if (kept := self._find(key)) is not None:
            return kept
        if len(self._waiting.get(client, ())) >= MAX_WAITING:
            raise TooManyTextsError
        entry = _WaitingText(text, key, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(client, deque()).append(entry)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        try:
            return await entry.html
        finally:
            self._withdraw(client, entry)

    async def close(self) -> None:
        """Kill the worker. Waiting and later texts are returned as plain text."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.kill()
        await asyncio.to_thread(self._thread.submit(self._end).result)

    async def _serve(self) -> None:
        """Render the waiting texts, one of each client in turn."""
        while self._waiting:
            client, texts = self._waiting.popitem(last=False)
            text, key, html = texts.popleft()
            if texts:
                self._waiting[client] = texts
            try:
                made = self._find(key)
                if made is None:
                    made = await asyncio.get_running_loop().run_in_executor(self._thread, self._make, text)
                    self._keep(key, made)
            except OSError as error:  # the worker cannot be started
                if not html.done():
                    html.set_exception(error)
            else:
                if not html.done():
                    html.set_result(made)

    def _withdraw(self, client: str, entry: _WaitingText) -> None:
        """Remove a text whose client no longer waits."""
        texts = self._waiting.get(client)
        if texts is not None and entry in texts:
            texts.remove(entry)
            if not texts:
                del self._waiting[client]

    def _find(self, key: bytes) -> str | None:
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
        return kept

    def _make(self, text: str) -> str:
        # Only highlighting can hang, so a text without code is tried once.
        has_code = any(fence in text for fence in _FENCES)
        for coloured in (True, False) if has_code else (False,):
            if self._is_closed:
                break
            if (html := self._ask(text, coloured=coloured)) is not None:
                return html
        return plain_html(text)

    def _ask(self, text: str, *, coloured: bool) -> str | None:
        worker = self._started()
        try:
            write_frame(cast("BinaryIO", worker.stdin), coloured, text)
            answer = read_frame(cast("BinaryIO", worker.stdout))
        except BrokenPipeError:
            answer = None
        if answer is None:
            self._end()
            return None
        return answer[1]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._worker is not None and self._worker.poll() is not None:
            self._end()
        if self._worker is None:
            environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
            # -P: import no module from the current directory, which may be untrusted.
            command = [sys.executable, "-P", "-m", "dragoman.bridge.front.render_worker", str(self._max_work_s)]
            self._worker = subprocess.Popen(  # noqa: S603 -- our own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            weakref.finalize(self, _end, self._worker)
        return self._worker

    def _end(self) -> None:
        if self._worker is not None:
            _end(self._worker)
            self._worker = None

    def _keep(self, key: bytes, html: str) -> None:
        self._kept[key] = html
        self.kept_chars += len(html)
        while self.kept_chars > CACHE_CHARS:
            self.kept_chars -= len(self._kept.popitem(last=False)[1])


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # half a request was still buffered
