"""The program that began a session, in the `_meta` of `session/new` and of a list: `run` for `dragoman run`.

Lists of people put such sessions apart from those that people began.
"""

import re
from collections.abc import Mapping
from typing import Any

ORIGIN_KEY = "dragoman/origin"

RUN = "run"
"""The origin of sessions that `dragoman run` begins, in CI and elsewhere."""

_ORIGIN = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def read_origin(meta: Mapping[str, Any] | None) -> str | None:
    """Return the origin that a `_meta` names; None if there is none, or no usable one."""
    origin = (meta or {}).get(ORIGIN_KEY)
    return origin if isinstance(origin, str) and _ORIGIN.fullmatch(origin) else None
