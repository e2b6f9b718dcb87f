"""Refusing a WebSocket before it is one."""

import msgspec

from dragoman.bridge.front.asgi import Scope, Send
from dragoman.bridge.front.exchange import JSON, NO_STORE, Refused
from dragoman.bridge.guard.answers import security_headers


async def refuse_upgrade(scope: Scope, send: Send, refused: Refused) -> None:
    """Answer the request for an upgrade with why not; a server that cannot say so closes it with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refused.reason[:120]})
        return
    body = msgspec.json.encode({"error": refused.reason})
    others = [header for header in refused.headers if header[0] != b"cache-control"]
    size = (b"content-length", b"%d" % len(body))
    headers = [(b"content-type", JSON), size, NO_STORE, *others, *security_headers(html=False)]
    await send({"type": "websocket.http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})
