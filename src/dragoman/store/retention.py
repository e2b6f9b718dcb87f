"""Retention: sessions that nobody went on with for long are archived or deleted, and the oldest when all are too large.

Nothing is done unless a person says so, with `dragoman store prune` or with a setting of the nodes. A session that a
living process has open always stays.
"""

import os
import re
from collections.abc import Mapping

import msgspec

from dragoman.errors import DragomanError

VARIABLE = "DRAGOMAN_STORE_PRUNE"
"""The policy of the nodes of a database, such as `archive-after=30d delete-after=1y max-size=50GB`."""

EXAMPLES = 20
"""Sessions that a dry run names."""

_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0, "y": 365 * 86400.0}
_BYTES = {"MB": 10.0**6, "GB": 10.0**9, "TB": 10.0**12}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")
_RULES = ("archive-after", "delete-after", "max-size")


class BadRetention(DragomanError):
    """A policy that cannot be read, or that says nothing."""


class RetentionPolicy(msgspec.Struct, frozen=True):
    """When sessions are archived or deleted; an age counts from the last time that a session was written to."""

    archive_after_s: float | None = None
    delete_after_s: float | None = None
    max_bytes: int | None = None
    """The newest sessions are kept up to this size, those of all agents together."""


class ExpiredSession(msgspec.Struct, frozen=True, rename="camel"):
    """A session that a policy archives or deletes."""

    scope: str
    id: str
    title: str | None
    updated_at: str
    size_bytes: int


class PruneResult(msgspec.Struct, rename="camel"):
    """What a policy did, or would do."""

    archived: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    open: int = 0
    """Sessions that are due, and stay because a process has them open."""
    examples: list[ExpiredSession] = []
    """The first ones that would be archived or deleted, in a dry run."""


def make_policy(rules: Mapping[str, str | None]) -> RetentionPolicy:
    """Read the rules, by their names; raises BadRetention."""
    given = {name: value for name, value in rules.items() if value is not None}
    if unknown := given.keys() - set(_RULES):
        raise BadRetention(f"there is no rule {min(unknown)!r} of retention; expected {_either(_RULES)}")
    if not given:
        raise BadRetention(f"no rule of retention is given; expected {_either(_RULES)}, such as delete-after 365d")
    max_bytes = _read(given, "max-size", _BYTES)
    return RetentionPolicy(
        _read(given, "archive-after", _SECONDS),
        _read(given, "delete-after", _SECONDS),
        None if max_bytes is None else int(max_bytes),
    )


def find_policy() -> RetentionPolicy | None:
    """Return the policy of the environment; None if there is none, which is the default. Raises BadRetention."""
    text = os.environ.get(VARIABLE)
    if not text or not text.strip():
        return None
    parts = [part.partition("=") for part in text.split()]
    try:
        return make_policy({name: value for name, _, value in parts})
    except BadRetention as error:
        raise BadRetention(f"{VARIABLE} is {text!r}: {error}") from None


def _read(given: Mapping[str, str], name: str, units: Mapping[str, float]) -> float | None:
    text = given.get(name)
    if text is None:
        return None
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        raise BadRetention(f"{name} is {text!r}; expected a number and one of {', '.join(units)}")
    return float(found[1]) * units[found[2]]


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
