"""Updates of a session as the bridge reads, changes and makes them."""

from datetime import UTC, datetime
from typing import Any, Protocol

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, is_given, make_notification, string_of, with_update
from dragoman.protocol import v1
from dragoman.protocol.notice import as_thought

TURN_END = "dragoman/turn"
"""In `_meta` of a `session_info_update`: the end of a turn that has a `usage`, or did not end by itself."""


class UpdateRecorder(Protocol):
    """Takes the updates of a session: a journal, or nothing."""

    def add(self, lines: bytes, count: int | None = None) -> None:
        """Take lines."""
        ...


class _Discard:
    """Takes updates that the journal has already."""

    def add(self, lines: bytes, count: int | None = None) -> None:
        """Drop updates."""


DISCARD = _Discard()


def update_of(line: bytes) -> dict[str, Raw]:
    """Return the fields of the update in a notification."""
    return fields_of(fields_of(fields_of(Raw(line)).get("params", UNSET)).get("update", UNSET))


def without_title(line: bytes, update: dict[str, Raw]) -> bytes | None:
    """Leave the title out of an update; None if it has nothing else to say."""
    rest = {key: value for key, value in update.items() if key != "title"}
    return with_update(line, rest) if rest.keys() - {"sessionUpdate", "updatedAt"} else None


def make_turn_end(stop_reason: str | None, error: Any, usage: Raw | None) -> dict[str, Any] | None:
    """Make the update that says how a turn ended; None if there is nothing to say."""
    end: dict[str, Any] = {"usage": usage} if is_given(usage) else {}
    if error is not None:
        end["error"] = error
    elif end or stop_reason != "end_turn":
        end["stopReason"] = stop_reason
    return {"sessionUpdate": "session_info_update", "_meta": {TURN_END: end}} if end else None


def notice_as_thought(session_id: str, update: dict[str, Raw]) -> bytes | None:
    """Say a notice as a thought, for viewers that take no notices; None for one without a title."""
    title, description = string_of(update.get("title")), string_of(update.get("description"))
    if not title:
        return None
    thought = as_thought(v1.Notice(severity="info", title=title, description=description))
    return make_notification("session/update", {"sessionId": session_id, "update": thought})


def keyed(key: str | None) -> dict[str, str]:
    """Give the field for the key of a prompt, if it has one."""
    return {} if key is None else {"key": key}


def to_iso(time_ms: int) -> str:
    """Write a time as ACP has it."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> int:
    """Read such a time."""
    return round(1000 * datetime.fromisoformat(text).timestamp())
