"""The cookie by which a load balancer brings a client back to the bridge that it began with."""

import secrets

from dragoman.bridge.front.asgi import Headers, Scope

NAME = "acp_affinity"


class Affinity:
    """Names this bridge among its like; it opens nothing, and whatever comes back is accepted."""

    def __init__(self) -> None:
        self._value = secrets.token_hex(8)

    def cookie(self, scope: Scope) -> Headers:
        """Return the header that sets it; none if it came with the request."""
        pair = f"{NAME}={self._value}"
        for key, value in scope["headers"]:
            if key == b"cookie" and pair.encode() in [one.strip() for one in value.split(b";")]:
                return []
        path = scope.get("root_path") or "/"
        secure = "; Secure" if scope.get("scheme") in {"https", "wss"} else ""
        return [(b"set-cookie", f"{pair}; Path={path}; HttpOnly; SameSite=Strict{secure}".encode())]
