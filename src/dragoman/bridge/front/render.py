"""Markdown to HTML for the page: off the event loop, limited in size and time, with a cache.

One process beside the bridge does the work (`render_worker`), because texts come from agents and some are written to
keep a highlighter busy for ever.
"""

import asyncio
import os
import subprocess
import sys
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from html import escape
from typing import BinaryIO, cast

from dragoman.bridge.front.render_worker import read_frame, write_frame

MAX_CHARS = 64 * 1024
"""Longer texts are shown as they are."""

CACHE_CHARS = 4 * 1024 * 1024
"""Size of the cache of finished texts, for pages that are opened again: some hundred answers."""

PASSED_ON = ("PYTHON", "LD_", "DYLD_")
"""Variables for the worker, by prefix: those that Python needs to start, and no API key."""


def plain_html(text: str) -> str:
    """Return a text as HTML just as it is."""
    return f'<div class="plain">{escape(text)}</div>'


class Renderer:
    """Renders texts and keeps the latest results."""

    def __init__(self) -> None:
        self.kept_chars = 0
        self._kept: OrderedDict[bytes, str] = OrderedDict()
        self._worker: subprocess.Popen[bytes] | None = None
        self._is_closing = False
        # A thread of its own, because threads that read journals must not wait behind a hostile text.
        self._thread = ThreadPoolExecutor(1, "render")

    async def render(self, markdown: str) -> str:
        """Return safe HTML for a text; one that is too long or takes too long comes back as plain text."""
        if len(markdown) > MAX_CHARS:
            return plain_html(markdown)
        text = markdown.encode(errors="replace").decode()  # half a surrogate pair cannot be encoded
        key = blake2b(text.encode(), digest_size=16).digest()
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        html = await asyncio.get_running_loop().run_in_executor(self._thread, self._make, text)
        self._keep(key, html)
        return html

    def close(self) -> None:
        """Kill the worker, if there is one; a later text starts it again."""
        worker = self._worker
        if worker is None:
            return
        self._is_closing = True
        worker.kill()
        self._thread.submit(self._end).result()
        self._is_closing = False

    def _make(self, text: str) -> str:
        for coloured in (True, False):
            if self._is_closing:
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
            # -P: no module is imported from the current directory, which may belong to anybody.
            command = [sys.executable, "-P", "-m", "dragoman.bridge.front.render_worker"]
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
        if key in self._kept:
            return
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
                continue  # half a request was left in it


_shared = Renderer()


async def render(markdown: str) -> str:
    """Return safe HTML for a text, from the renderer that all pages share."""
    return await _shared.render(markdown)


def close() -> None:
    """Kill the worker of the shared renderer."""
    _shared.close()
