"""`/oauth/callback`: the redirect target after a login at an MCP server.

Another site redirects the browser here, so the request has no credential of the bridge. The state of the login is the
only credential, and is valid for no other path. The returned page contains nothing from the request.
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
    """Handles the browsers that return from a login."""

    def __init__(self, bridge: Bridge, guard: Guard) -> None:
        self._bridge = bridge
        self._guard = guard

    async def serve(self, exchange: Exchange) -> None:
        """Pass the result of a login to the bridge, once, and show the outcome. Raises HttpError."""
        exchange.allow("GET", "HEAD")
        if exchange.method == "HEAD" or exchange.is_prefetch:
            await exchange.reply(204, headers=[NO_STORE])  # a preview must not consume the state
            return
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        back = {name: values[0] for name, values in query.items() if len(values) == 1}
        brought = await self._bridge.bring_login(back)
        if brought is None:
            refusal = self._guard.refuse_login(exchange.scope)
            if refusal.status == 429:
                raise HttpError(refusal.status, refusal.reason, list(refusal.headers))
            words = "This page was already used, has expired, or its bridge has stopped. Start the login again."
            await _show(exchange, 400, "No login is waiting for this page", words)
            return
        server = one_line(brought.server, 60)
        if not brought.is_taken:
            words = f"The agent no longer waits for it. Start the login again, for example with /mcp restart {server}."
            await _show(exchange, 410, f"The login at {server} has ended", words)
        elif "error" in back:
            await _show(exchange, 200, f"You declined the login at {server}", "You can close this page.")
        else:
            words = "You can close this page and return to the conversation."
            await _show(exchange, 200, f"You are logged in to {server}", words)


async def _show(exchange: Exchange, status: int, title: str, words: str) -> None:
    page = _PAGE.format(title=escape(title), words=escape(words))
    await exchange.reply(status, page.encode(), [NO_STORE], kind=HTML)
