"""The settings of a session, as the agent told them when it was opened, kept up to date."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import encode_settings
from dragoman.bridge.envelope import encode, fields_of
from dragoman.bridge.translation import Version

_NOT_KEPT = frozenset({"sessionId", "_meta"})
_SETTINGS = frozenset({"modes", "models", "configOptions", "availableCommands"})


class SessionSetup:
    """The agent's last answer to the request that opened a session, kept up to date."""

    def __init__(self, config: bytes | None) -> None:
        self.fields = fields_of(UNSET if config is None else Raw(config))
        self.fields.pop("protocolVersion", None)
        self._journalled = config

    def replace(self, result: dict[str, Raw]) -> list[dict[str, Any]]:
        """Keep another answer, and give the updates for viewers that were told other settings."""
        before = self.fields
        self.fields = {key: _copy(value) for key, value in result.items() if key not in _NOT_KEPT}
        return list(_differences(before, self.fields))

    def set_mode(self, mode: Raw) -> None:
        """Keep another current mode."""
        modes = fields_of(self.fields.get("modes", UNSET))
        if modes:
            self.fields["modes"] = Raw(encode({**modes, "currentModeId": mode}))

    def set_options(self, options: Raw) -> None:
        """Keep other config options."""
        self.fields["configOptions"] = _copy(options)

    def set_commands(self, commands: Raw) -> None:
        """Keep other commands, where the answer that opened the session has them."""
        if "availableCommands" in self.fields:
            self.fields["availableCommands"] = _copy(commands)

    def take_change(self, version: Version) -> bytes | None:
        """Give the settings to be journalled, if they changed since the last call."""
        config = encode_settings({key: value for key, value in self.fields.items() if key in _SETTINGS}, version)
        if config == (self._journalled or encode_settings({}, version)):
            return None
        self._journalled = config
        return config

    def forget_journalled(self) -> None:
        """Journal the settings anew with the next change: the journal is another one."""
        self._journalled = None


def _differences(before: dict[str, Raw], now: dict[str, Raw]) -> Iterator[dict[str, Any]]:
    """Make the updates for viewers that were told other settings."""
    mode_before, mode = (fields_of(setup.get("modes", UNSET)).get("currentModeId") for setup in (before, now))
    if mode_before is not None and mode is not None and bytes(mode) != bytes(mode_before):
        yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
    options_before, options = before.get("configOptions"), now.get("configOptions")
    if options_before is not None and options is not None and bytes(options) != bytes(options_before):
        yield {"sessionUpdate": "config_option_update", "configOptions": options}


def _copy(raw: Raw) -> Raw:
    """Keep a part of a message without keeping all of it."""
    return Raw(bytes(raw))
