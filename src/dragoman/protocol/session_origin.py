"""The program that created a session, in the `_meta` of `session/new` and of session lists, such as `run`.

Session lists show sessions of `dragoman run` separately from sessions that users started.
"""

import re
from collections.abc import Mapping
from typing import Any

ORIGIN_KEY = "dragoman/origin"

RUN = "run"
"""The origin of sessions created by `dragoman run`, for example in CI."""

_ORIGIN = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def read_origin(meta: Mapping[str, Any] | None) -> str | None:
    """Return the origin in a `_meta`, or None without a usable one."""
    origin = (meta or {}).get(ORIGIN_KEY)
    return origin if isinstance(origin, str) and _ORIGIN.fullmatch(origin) else None
