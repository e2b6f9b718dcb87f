"""The words of ASGI, in which the server and the application speak."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


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
