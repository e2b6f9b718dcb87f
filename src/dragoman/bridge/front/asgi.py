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
"""An extension of our server, and the type of its message: `frames` has whole WebSocket frames, ready to be sent.

ASGI has one message a call, and each would be a system call: several times the cost of a message in the bridge itself.
Under a server without this extension, messages are sent one by one.
"""

CREDENTIAL_SHOWN = "dragoman.credential_shown"
"""An extension of our server: the application calls this function when a request had a valid credential.

When there are too many connections, those without a credential are closed first.
"""


def note_credential(scope: Scope) -> None:
    """Tell our server that this request had a valid credential; other servers do not ask."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if CREDENTIAL_SHOWN in extensions:
        extensions[CREDENTIAL_SHOWN]()


def find_header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this name; the name is in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1").strip()
    return None


def route(scope: Scope) -> str:
    """Return the path below the mount point; some servers leave the prefix in the path, some remove it."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        return path[len(root) :]
    return path
