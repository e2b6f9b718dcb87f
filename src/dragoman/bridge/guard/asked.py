"""What somebody asks, as far as the guard looks at it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from dragoman.bridge.guard.grant import Refusal
from dragoman.bridge.guard.rates import name_peer

Scope = Mapping[str, Any]
"""Of ASGI, for http or websocket."""

SUBPROTOCOL = "acp"
TOKEN_PREFIX = "dragoman.token."  # noqa: S105 -- what stands before one

_MAX_QUERY_BYTES = 4096
_MAX_QUERY_FIELDS = 32
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_ONLY_ONCE = ("host", "origin", "authorization", "sec-fetch-site")


class Asked(msgspec.Struct, frozen=True):
    """One request, or the first of a WebSocket."""

    peer: str
    host: str
    origin: str | None
    authorization: str | None
    fetch_site: str | None
    cookie: str
    subprotocols: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    changes: bool
    """Whether it can change something: an unsafe method, or a WebSocket."""


def read_scope(scope: Scope) -> Asked | Refusal:
    """Read what matters here; refused when it can be read in two ways."""
    headers = _headers(scope)
    for name in _ONLY_ONCE:
        if len(headers.get(name, ())) > 1:
            return Refusal(400, f"there is more than one {name.title()} header; expected one")
    if "host" not in headers or not headers["host"][0]:
        return Refusal(400, "there is no Host header; expected the name and port that this bridge is served under")
    query = _query(scope.get("query_string", b""))
    if query is None:
        return Refusal(400, f"the query has more than {_MAX_QUERY_BYTES:,} bytes or {_MAX_QUERY_FIELDS} fields")
    is_websocket = scope["type"] == "websocket"
    return Asked(
        peer=name_peer((scope.get("client") or ("", 0))[0]),
        host=headers["host"][0],
        origin=_only(headers, "origin"),
        authorization=_only(headers, "authorization"),
        fetch_site=_only(headers, "sec-fetch-site"),
        cookie="; ".join(headers.get("cookie", ())),
        subprotocols=tuple(scope.get("subprotocols") or ()) if is_websocket else (),
        query=query,
        changes=is_websocket or scope["method"] not in _SAFE_METHODS,
    )


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    raw: Sequence[tuple[bytes, bytes]] = scope["headers"]
    for name, value in raw:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip(" \t"))
    return found


def _only(headers: Mapping[str, Sequence[str]], name: str) -> str | None:
    return headers[name][0] if name in headers else None


def _query(raw: bytes) -> tuple[tuple[str, str], ...] | None:
    if len(raw) > _MAX_QUERY_BYTES:
        return None
    try:
        return tuple(parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS))
    except ValueError:
        return None
