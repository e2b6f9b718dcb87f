"""The retention policy: when old sessions are archived or deleted, and how much space all sessions may use.

Nothing is archived or deleted unless the user asks for it, with `dragoman store prune` or a setting of the nodes. A
session that a running process has open is always kept.
"""

import os
import re
from collections.abc import Mapping

import msgspec

from dragoman.errors import DragomanError

VARIABLE = "DRAGOMAN_STORE_PRUNE"
"""The policy of the nodes of a database, such as `archive-after=30d delete-after=1y max-size=50GB`."""

EXAMPLES = 20
"""The number of sessions that a dry run lists."""

_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0, "y": 365 * 86400.0}
_BYTES = {"MB": 10.0**6, "GB": 10.0**9, "TB": 10.0**12}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")
_RULES = ("archive-after", "delete-after", "max-size")


class InvalidRetentionError(DragomanError):
    """A policy cannot be parsed, or has no rules."""


class RetentionPolicy(msgspec.Struct, frozen=True):
    """When sessions are archived or deleted. The age of a session is the time since its last write."""

    archive_after_s: float | None = None
    delete_after_s: float | None = None
    max_bytes: int | None = None
    """The size up to which the newest sessions of all agents are kept."""


class ExpiredSession(msgspec.Struct, frozen=True):
    """A session that a policy archives or deletes."""

    scope: str
    id: str
    title: str | None
    updated_at: str
    size_bytes: int


class PruneResult(msgspec.Struct):
    """The sessions that a policy archived or deleted, or would."""

    archived: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    open: int = 0
    """Sessions that are due, but kept because a process has them open."""
    examples: list[ExpiredSession] = []
    """In a dry run, the first sessions that would be archived or deleted."""


def make_policy(rules: Mapping[str, str | None]) -> RetentionPolicy:
    """Parse the rules, given by name. Raises InvalidRetentionError."""
    given = {name: value for name, value in rules.items() if value is not None}
    if unknown := given.keys() - set(_RULES):
        raise InvalidRetentionError(f"unknown retention rule {min(unknown)!r}; expected {_either(_RULES)}")
    if not given:
        raise InvalidRetentionError(
            f"no retention rule was given; expected {_either(_RULES)}, such as delete-after 365d"
        )
    max_bytes = _read(given, "max-size", _BYTES)
    return RetentionPolicy(
        _read(given, "archive-after", _SECONDS),
        _read(given, "delete-after", _SECONDS),
        None if max_bytes is None else int(max_bytes),
    )


def find_policy() -> RetentionPolicy | None:
    """Return the policy from the environment, or None if there is none. Raises InvalidRetentionError."""
    text = os.environ.get(VARIABLE)
    if not text or not text.strip():
        return None
    parts = [part.partition("=") for part in text.split()]
    try:
        return make_policy({name: value for name, _, value in parts})
    except InvalidRetentionError as error:
        raise InvalidRetentionError(f"{VARIABLE} is {text!r}: {error}") from None


def _read(given: Mapping[str, str], name: str, units: Mapping[str, float]) -> float | None:
    text = given.get(name)
    if text is None:
        return None
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        raise InvalidRetentionError(f"{name} is {text!r}; expected a number and one of {', '.join(units)}")
    return float(found[1]) * units[found[2]]


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
