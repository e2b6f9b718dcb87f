"""ASGI requests for the guard."""

import msgspec

from dragoman.bridge.guard import Guard, make_policy, new_token, served_names
from dragoman.bridge.guard.rate_limit import Rate

PORT = 8421
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"


def make_guard(token=None, **options):
    names = options.pop("names", served_names("127.0.0.1"))
    return Guard(make_policy(token or new_token(), names=names, port=options.pop("port", PORT), **options))


def make_strict_guard(token, **bursts):
    """Return a guard whose rates allow this many events of each kind during a test."""
    policy = make_policy(token, names=served_names("127.0.0.1"), port=PORT)
    rates = {name: Rate(burst=burst, per_s=1e-6) for name, burst in bursts.items()}
    return Guard(msgspec.structs.replace(policy, **rates))


def ask(method="GET", *, host=HOST, peer="127.0.0.1", query=b"", more=(), **headers):
    """Return the scope of a request. `more` has repeated headers."""
    named = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    pairs = [(name, value) for name, value in named.items() if value is not None]
    return {
        "type": "http",
        "method": method,
        "path": "/acp",
        "query_string": query,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in [*pairs, *more]],
        "client": (peer, 50_000),
    }


def ask_websocket(*subprotocols, **options):
    scope = ask(**options)
    del scope["method"]
    return {**scope, "type": "websocket", "subprotocols": list(subprotocols)}


def bearer(token):
    return f"Bearer {token.reveal()}"


def cookie_of(set_cookie):
    """Return the Cookie header that a browser sends."""
    return set_cookie.partition(";")[0]


def status_of(answer):
    return getattr(answer, "status", None)
