"""The settings of a session: its mode, its model and its options.

The mode is shown twice, as `modes` for older clients and among the `configOptions` for newer ones; both are made
from the same value, so they cannot differ.
"""

from collections.abc import Sequence

import msgspec

from dragoman.errors import InvalidParams
from dragoman.protocol import v1

MODE, MODEL, THOUGHT_LEVEL, THOUGHTS = "mode", "model", "thought_level", "thoughts"

MODES = {
    "ask": v1.SessionMode(id="ask", name="Ask", description="Reads run; everything else asks first"),
    "code": v1.SessionMode(id="code", name="Code", description="Edits in the project run; commands ask first"),
    "plan": v1.SessionMode(id="plan", name="Plan", description="Looks and thinks, changes nothing"),
    "yolo": v1.SessionMode(id="yolo", name="Yolo", description="Everything runs, nothing asks"),
}


class SessionSettings(msgspec.Struct):
    """The current values; as JSON they are a `config` record of the session's log."""

    mode: str = "ask"
    model: str | None = None
    """The model that the person picked; None is the one that is configured."""
    thought_level: str | None = None
    thoughts: bool = True
    included: list[str] = []
    """The person's additions to the model's context."""


class SettingChoices(msgspec.Struct):
    """The allowed values of the settings, in this session and with this client."""

    modes: Sequence[str] = ("ask", "code", "plan")
    models: Sequence[str] = ()
    """The configured one first."""
    thought_levels: Sequence[str] = ()
    boolean: bool = False
    """Whether the client knows options that are on or off."""

    def show_modes(self, settings: SessionSettings) -> v1.SessionModeState:
        """Show the mode to clients that know modes."""
        return v1.SessionModeState(current_mode_id=settings.mode, available_modes=[MODES[mode] for mode in self.modes])

    def show(self, settings: SessionSettings) -> list[v1.SessionConfigOption]:
        """Return all options, the most important first."""
        options: list[v1.SessionConfigOption] = [_select(MODE, "Mode", settings.mode, self.modes)]
        if self.models:
            options.append(_select(MODEL, "Model", settings.model or self.models[0], self.models))
        if self.thought_levels:
            level = settings.thought_level or self.thought_levels[0]
            options.append(_select(THOUGHT_LEVEL, "Thinking", level, self.thought_levels))
        if self.boolean:
            options.append(
                v1.SessionConfigBoolean(
                    id=THOUGHTS,
                    name="Show thoughts",
                    description="Show what the model thinks before it answers",
                    current_value=settings.thoughts,
                )
            )
        return options

    def check_mode(self, mode: str, path: str = "params.modeId") -> str:
        """Return the mode when it may be set; raises InvalidParams."""
        return _check(mode, self.modes, path, "mode")

    def check(self, params: v1.SetSessionConfigOptionRequest) -> str | bool:
        """Return the value when it may be set; raises InvalidParams."""
        known = [option for option, values in self._values().items() if values] + [THOUGHTS] * self.boolean
        _check(params.config_id, known, "params.configId", "option")
        if params.config_id == THOUGHTS:
            if isinstance(params, v1.SetSessionConfigOptionBoolean):
                return params.value
            raise _misfit(params.config_id, 'true or false, with type "boolean"')
        if isinstance(params, v1.SetSessionConfigOptionBoolean):
            raise _misfit(params.config_id, "one of its values, as a string")
        return _check(params.value, self._values()[params.config_id], "params.value", params.config_id)

    def _values(self) -> dict[str, Sequence[str]]:
        return {MODE: self.modes, MODEL: self.models, THOUGHT_LEVEL: self.thought_levels}


def _select(option: str, name: str, value: str, values: Sequence[str]) -> v1.SessionConfigSelect:
    shown = values if value in values else [value, *values]
    return v1.SessionConfigSelect(
        id=option,
        name=name,
        category=option,
        current_value=value,
        options=[
            v1.SessionConfigSelectOption(value=each, name=mode.name, description=mode.description)
            if option == MODE and (mode := MODES.get(each))
            else v1.SessionConfigSelectOption(value=each, name=each)
            for each in shown
        ],
    )


def _check(value: str, known: Sequence[str], path: str, noun: str) -> str:
    if value not in known:
        listed = ", ".join(known)
        raise InvalidParams(path, f"there is no {noun} {value!r}; expected one of {listed}", expected=listed)
    return value


def _misfit(option: str, expected: str) -> InvalidParams:
    return InvalidParams("params.value", f"{option} takes {expected}", expected=expected)
