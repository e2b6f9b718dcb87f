"""The types of ASGI, and the two extensions that our server and our application share."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SEND_FRAMES = "dragoman.websocket.send_frames"
"""An extension of our server, and its message type. `frames` has whole encoded WebSocket frames.

ASGI sends one message per call, which is one system call each. That costs several times as much as the bridge's own
work for a message. Without this extension, messages are sent one by one.

The value of the extension is a `SendNow`.
"""

SendNow = Callable[[Callable[[], bytes]], None]
"""Sends the frames that a function returns, without a wait or a change of tasks. Does not call it if there is no room.
"""

CREDENTIAL_SHOWN = "dragoman.credential_shown"
"""An extension of our server. The application calls this function when a request had a valid credential.

The argument is the id of a reader's share, or None for the owner. When there are too many connections, the server
closes anonymous ones and readers' ones, but never the owner's.
"""


def record_credential(scope: Scope, share_id: str | None) -> None:
    """Report to our server that this request had a valid credential. Do nothing under other servers."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if CREDENTIAL_SHOWN in extensions:
        extensions[CREDENTIAL_SHOWN](share_id)


def find_header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this lower-case name, or None."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1").strip()
    return None


def route(scope: Scope) -> str:
    """Return the path below the mount point. Some servers keep the prefix in the path, others remove it."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        return path[len(root) :]
    return path
