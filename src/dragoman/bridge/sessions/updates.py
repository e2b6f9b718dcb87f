"""Updates and settings of a session, as the bridge reads, changes and makes them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import encode_settings
from dragoman.bridge.envelope import is_given, make_notification, with_update
from dragoman.bridge.translation import Version
from dragoman.protocol import methods, v1
from dragoman.protocol.notice import as_thought
from dragoman.wire.envelope import encode, fields_of, string_of

TURN_END = "dragoman/turn"
"""In `_meta` of a `session_info_update`: the end of a turn that has a `usage`, or did not end by itself."""

_NOT_KEPT = frozenset({"sessionId", "_meta"})
_SETTINGS = frozenset({"modes", "models", "configOptions", "availableCommands"})


class DiscardedUpdates:
    """Drops the updates of a replay, because the journal already has them."""

    def append(self, lines: bytes, count: int | None = None, *, is_ordinary: bool = False) -> None:
        """Drop updates."""


def update_of(line: bytes) -> dict[str, Raw]:
    """Return the fields of the update in a notification."""
    return fields_of(fields_of(fields_of(Raw(line)).get("params", UNSET)).get("update", UNSET))


def without_title(line: bytes, update: dict[str, Raw]) -> bytes | None:
    """Remove the title from an update. Return None if nothing else is in it."""
    rest = {key: value for key, value in update.items() if key != "title"}
    return with_update(line, rest) if rest.keys() - {"sessionUpdate", "updatedAt"} else None


def make_turn_end(stop_reason: str | None, error: Any, usage: Raw | None) -> dict[str, Any] | None:
    """Make the update that shows how a turn ended. Return None for a normal end without usage."""
    end: dict[str, Any] = {"usage": usage} if is_given(usage) else {}
    if error is not None:
        end["error"] = error
    elif end or stop_reason != "end_turn":
        end["stopReason"] = stop_reason
    return {"sessionUpdate": "session_info_update", "_meta": {TURN_END: end}} if end else None


def notice_as_thought(session_id: str, update: dict[str, Raw]) -> bytes | None:
    """Make a thought of a notice, for viewers that show no notices. Return None for a notice without a title."""
    title, description = string_of(update.get("title")), string_of(update.get("description"))
    if not title:
        return None
    thought = as_thought(v1.Notice(severity="info", title=title, description=description))
    return make_notification(methods.SESSION_UPDATE.name, {"sessionId": session_id, "update": thought})


def to_iso(time_ms: int) -> str:
    """Format a time as ACP does."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> int:
    """Parse a time of ACP."""
    return round(1000 * datetime.fromisoformat(text).timestamp())


class SessionSetup:
    """The settings of a session: the agent's last answer to the request that opened it, kept up to date."""

    def __init__(self, config: bytes | None) -> None:
        self.fields = fields_of(UNSET if config is None else Raw(config))
        self.fields.pop("protocolVersion", None)
        self._journalled = config

    def replace(self, result: dict[str, Raw]) -> list[dict[str, Any]]:
        """Keep another answer. Return the updates for viewers that were sent other settings before."""
        before = self.fields
        self.fields = {key: _copy(value) for key, value in result.items() if key not in _NOT_KEPT}
        return list(_differences(before, self.fields))

    def set_mode(self, mode: Raw) -> None:
        """Store the new current mode."""
        modes = fields_of(self.fields.get("modes", UNSET))
        if modes:
            self.fields["modes"] = Raw(encode({**modes, "currentModeId": mode}))

    def set_options(self, options: Raw) -> None:
        """Store the new config options."""
        self.fields["configOptions"] = _copy(options)

    def set_commands(self, commands: Raw) -> None:
        """Keep other commands, if the answer that opened the session has them."""
        if "availableCommands" in self.fields:
            self.fields["availableCommands"] = _copy(commands)

    def pop_change(self, version: Version) -> bytes | None:
        """Return the settings to be journalled, if they changed since the last call."""
        config = encode_settings({key: value for key, value in self.fields.items() if key in _SETTINGS}, version)
        if config == (self._journalled or encode_settings({}, version)):
            return None
        self._journalled = config
        return config


def _differences(before: dict[str, Raw], now: dict[str, Raw]) -> Iterator[dict[str, Any]]:
    """Make the updates for viewers that were sent other settings."""
    mode_before, mode = (fields_of(setup.get("modes", UNSET)).get("currentModeId") for setup in (before, now))
    if mode_before is not None and mode is not None and bytes(mode) != bytes(mode_before):
        yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
    options_before, options = before.get("configOptions"), now.get("configOptions")
    if options_before is not None and options is not None and bytes(options) != bytes(options_before):
        yield {"sessionUpdate": "config_option_update", "configOptions": options}


def _copy(raw: Raw) -> Raw:
    """Copy a part of a message, so that the rest of it leaves memory."""
    return Raw(bytes(raw))
