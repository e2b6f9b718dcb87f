"""The page's modules in a real browser, without bridge and agent."""

from contextlib import asynccontextmanager
from pathlib import Path

import dragoman.bridge

WEB = Path(dragoman.bridge.__file__).parent / "web"
ORIGIN = "http://page.test"
KINDS = {".js": "text/javascript", ".css": "text/css"}


class Modules:
    """Runs a piece of JavaScript with one of the page's modules."""

    def __init__(self, page):
        self.page = page

    async def forget(self):
        """Load an empty page, without imported modules and stored data."""
        await self.page.goto(f"{ORIGIN}/")
        await self.page.evaluate("localStorage.clear(); sessionStorage.clear()")

    async def run(self, module, body, *values):
        code = f"async (values) => {{ const m = await import('/js/{module}.js'); {body} }}"
        return await self.page.evaluate(code, list(values))


@asynccontextmanager
async def open_modules(browser):
    """An empty page on an origin that serves only the page's files."""
    context = await browser.new_context()

    async def serve(route):
        file = WEB / route.request.url.removeprefix(f"{ORIGIN}/")
        if file.suffix in KINDS and file.is_file():
            await route.fulfill(body=file.read_bytes(), content_type=KINDS[file.suffix])
        else:
            await route.fulfill(body="<!doctype html><title>empty</title>", content_type="text/html")

    await context.route(f"{ORIGIN}/**", serve)
    page = await context.new_page()
    yield Modules(page)
    await context.close()
