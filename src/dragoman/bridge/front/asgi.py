"""The words of ASGI, in which the server and the application speak."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SEND_FRAMES = "dragoman.websocket.send_frames"
"""An extension of our server, and the type of its message: `frames` has whole WebSocket frames, ready to be sent.

ASGI has one message a call, and each would be a system call of its own: that costs several times what the bridge
itself does for a message. Under a server without it, messages are sent one by one.
"""

CREDENTIAL_SHOWN = "dragoman.credential_shown"
"""An extension of our server: a function for the application to call when a request had a credential that is right.

HttpViewers without one are the first to go when there are too many.
"""


def note_credential(scope: Scope) -> None:
    """Tell the server, if it wants to know, that this request had a credential that is right."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if CREDENTIAL_SHOWN in extensions:
        extensions[CREDENTIAL_SHOWN]()


def find_header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this name, which is to be in small letters."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1").strip()
    return None


def route(scope: Scope) -> str:
    """Return the path below where the application is mounted; some servers leave the prefix in, some take it off."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        return path[len(root) :]
    return path
