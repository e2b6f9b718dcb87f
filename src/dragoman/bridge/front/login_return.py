"""The address to which a browser comes back from a login at an MCP server: `/oauth/callback`.

The browser has no credential of the bridge here, because another site sends it: the state of the login is the only
one. It leads to no other address, and the page that it gets has nothing of the request in it.
"""

from html import escape
from urllib.parse import parse_qs

from dragoman.bridge import Bridge
from dragoman.bridge.front.exchange import NO_STORE, Exchange, HttpError
from dragoman.bridge.guard import Guard
from dragoman.text import one_line

HTML = b"text/html; charset=utf-8"

_PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>{title}</title>
    <link rel="icon" href="../static/icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="../static/css/base.css" />
    <script src="../static/js/theme.js"></script>
  </head>
  <body class="returned">
    <main>
      <h1>{title}</h1>
      <p>{words}</p>
    </main>
  </body>
</html>
"""


class LoginReturn:
    """Takes browsers that come back."""

    def __init__(self, bridge: Bridge, guard: Guard) -> None:
        self._bridge = bridge
        self._guard = guard

    async def serve(self, exchange: Exchange) -> None:
        """Pass on what a browser brought, once, and show how that went; raises HttpError."""
        exchange.allow("GET", "HEAD")
        if exchange.method == "HEAD" or exchange.is_prefetch:
            await exchange.reply(204, headers=[NO_STORE])  # a preview must not use the state up
            return
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        back = {name: values[0] for name, values in query.items() if len(values) == 1}
        brought = await self._bridge.bring_login(back)
        if brought is None:
            refusal = self._guard.refuse_login(exchange.scope)
            if refusal.status == 429:
                raise HttpError(refusal.status, refusal.reason, list(refusal.headers))
            words = "It was used already, it is too old, or its bridge has ended. Start the login again."
            await _show(exchange, 400, "No login waits for this", words)
            return
        server = one_line(brought.server, 60)
        if not brought.is_taken:
            words = f"The agent waits for it no longer. Start it again, as with /mcp restart {server}."
            await _show(exchange, 410, f"The login at {server} is over", words)
        elif "error" in back:
            await _show(exchange, 200, f"{server} is not used", "You did not agree. You can close this page.")
        else:
            words = "You can close this page: the conversation goes on where you came from."
            await _show(exchange, 200, f"Thank you, {server} has let you in", words)


async def _show(exchange: Exchange, status: int, title: str, words: str) -> None:
    page = _PAGE.format(title=escape(title), words=escape(words))
    await exchange.reply(status, page.encode(), [NO_STORE], kind=HTML)
