"""The settings of a session: its mode and its options, which the program declares and the user chooses.

The mode is shown twice: as `modes` for older clients, and in `configOptions` for newer ones. Both come from the same
value, so they cannot differ. A `config` record of the session log has the values as one JSON object: `mode`, and each
option under its ID.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1

MODE = "mode"

PermissionLevel = Literal["ask", "edits", "reads", "all"]
"""The calls that run without asking. `ask`: read-only calls. `edits`: also edits inside the session's directories.
`reads`: read-only calls, and all others are refused. `all`: every call."""

_LEVELS = get_args(PermissionLevel)


def check_level(level: str) -> None:
    """Raise ValueError if this is not a permission level."""
    if level not in _LEVELS:
        raise ValueError(f"{level!r} is not a permission level; expected one of {', '.join(_LEVELS)}")


class Mode(msgspec.Struct, frozen=True):
    """A mode of sessions, with its permission rule."""

    id: str
    name: str
    description: str = ""
    permission: PermissionLevel = "ask"

    def __post_init__(self) -> None:
        check_level(self.permission)


class OptionValue(msgspec.Struct, frozen=True):
    """A value of a `SelectOption`, with its displayed name."""

    value: str
    name: str
    description: str | None = None


class SelectOption(msgspec.Struct, frozen=True):
    """An option of sessions with a list of values. The first value is the default."""

    id: str
    name: str
    values: Sequence[str | OptionValue]
    default: str | None = None
    description: str | None = None
    category: str | None = None
    """`model`, `thought_level` or another category of the protocol, which clients may show in a special place."""


class BooleanOption(msgspec.Struct, frozen=True):
    """An option of sessions that is on or off. It is hidden from clients that do not support such options."""

    id: str
    name: str
    default: bool = False
    description: str | None = None
    category: str | None = None


SessionOption = SelectOption | BooleanOption


class SessionSettings:
    """The modes and options of one session, and their values."""

    def __init__(
        self, modes: Sequence[Mode], options: Sequence[SessionOption], *, fallback: Mode, boolean: bool
    ) -> None:
        """Create settings. `fallback` is the mode without declared modes. `boolean`: the client supports booleans."""
        self._fallback = fallback
        self._boolean = boolean
        self.values: dict[str, Any] = {}
        """The values that were set. An option keeps its value when it is no longer declared."""
        self.declare(modes, options)

    def declare(
        self, modes: Sequence[Mode], options: Sequence[SessionOption], *, default_mode: str | None = None
    ) -> None:
        """Replace the modes and options. A mode that is no longer declared is dropped. Raises ValueError.

        The default mode is the first one, unless it is named.
        """
        check_declarations(modes, options)
        self._modes = {mode.id: mode for mode in modes}
        self._default_mode = default_mode
        self._options = {option.id: option for option in options}
        if self.values.get(MODE) not in self._modes:
            self.values.pop(MODE, None)

    @property
    def mode(self) -> Mode:
        """The current mode."""
        if not self._modes:
            return self._fallback
        chosen = self.values.get(MODE, self._default_mode)
        return self._modes.get(chosen) or next(iter(self._modes.values()))

    @property
    def modes(self) -> Sequence[Mode]:
        """All modes, the default first."""
        return list(self._modes.values())

    def option(self, option_id: str) -> Any:
        """Return the value of an option, or its default. Raises KeyError."""
        return self.values[option_id] if option_id in self.values else _default(self._options[option_id])

    def all(self) -> Mapping[str, Any]:
        """Return the values of all options."""
        return {option_id: self.option(option_id) for option_id in self._options}

    def show_modes(self) -> v1.SessionModeState | None:
        """Return the mode state for clients that support modes."""
        if not self._modes:
            return None
        shown = [_show_mode(mode) for mode in self._modes.values()]
        return v1.SessionModeState(current_mode_id=self.mode.id, available_modes=shown)

    def show(self) -> list[v1.SessionConfigOption]:
        """Return all options, the mode first."""
        shown: list[v1.SessionConfigOption] = []
        if self._modes:
            values = [OptionValue(mode.id, mode.name, mode.description or None) for mode in self._modes.values()]
            shown.append(_show_select(SelectOption(MODE, "Mode", values, category=MODE), self.mode.id))
        for option in self._options.values():
            value = self.option(option.id)
            if isinstance(option, SelectOption):
                shown.append(_show_select(option, value))
            elif self._boolean:
                shown.append(_show_boolean(option, value))
        return shown

    def updates(self) -> list[v1.SessionUpdate]:
        """Return the updates that show a client all values."""
        mode = [v1.CurrentModeUpdate(current_mode_id=self.mode.id)] if self._modes else []
        options = self.show()
        return [*mode, v1.ConfigOptionUpdate(config_options=options)] if options else [*mode]

    def check_mode(self, mode: str, path: str = "params.modeId") -> str:
        """Return a mode ID if it is declared. Raises InvalidParamsError."""
        return _check(mode, self._modes, path, "mode")

    def check(self, params: v1.SetSessionConfigOptionRequest) -> str | bool:
        """Return the requested value if it may be set. Raises InvalidParamsError."""
        known = [MODE] * bool(self._modes) + [
            option.id for option in self._options.values() if self._boolean or isinstance(option, SelectOption)
        ]
        _check(params.config_id, known, "params.configId", "option")
        is_boolean = isinstance(params, v1.SetSessionConfigOptionBoolean)
        if params.config_id != MODE and isinstance(self._options[params.config_id], BooleanOption):
            if not is_boolean:
                raise _wrong_type(params.config_id, 'true or false, with type "boolean"')
            return params.value
        if is_boolean:
            raise _wrong_type(params.config_id, "one of its values, as a string")
        if params.config_id == MODE:
            return self.check_mode(params.value, "params.value")
        option = self._options[params.config_id]
        values = [_value(each) for each in option.values] if isinstance(option, SelectOption) else []
        return _check(params.value, values, "params.value", params.config_id)

    def encode(self) -> bytes:
        """Return the values as JSON for the log."""
        return msgspec.json.encode({MODE: self.mode.id, **self.values})

    def restore(self, values: dict[str, Any]) -> None:
        """Load the values from the log. Drop values that are no longer possible."""
        self.values = {option: value for option, value in values.items() if value is not None}
        if self.values.get(MODE) not in self._modes:
            self.values.pop(MODE, None)
        for option in self._options.values():
            expected = bool if isinstance(option, BooleanOption) else str
            if not isinstance(self.values.get(option.id, _default(option)), expected):
                del self.values[option.id]


def check_declarations(modes: Sequence[Mode], options: Sequence[SessionOption]) -> None:
    """Raise ValueError if two modes or options have the same ID, or an option has no values."""
    ids = [option.id for option in options]
    doubled = [each for each in ids if ids.count(each) > 1] + [MODE] * (MODE in ids)
    mode_ids = [mode.id for mode in modes]
    doubled += [each for each in mode_ids if mode_ids.count(each) > 1]
    if doubled:
        raise ValueError(f"{doubled[0]!r} is declared twice; each mode and each option needs its own id")
    empty = [option.id for option in options if isinstance(option, SelectOption) and not option.values]
    if empty:
        raise ValueError(f"the option {empty[0]!r} has no values; add at least one")


def _default(option: SessionOption) -> str | bool:
    if isinstance(option, BooleanOption):
        return option.default
    return option.default if option.default is not None else _value(option.values[0])


def _value(value: str | OptionValue) -> str:
    return value if isinstance(value, str) else value.value


def _show_mode(mode: Mode) -> v1.SessionMode:
    return v1.SessionMode(id=mode.id, name=mode.name, description=mode.description or None)


def _show_select(option: SelectOption, value: str) -> v1.SessionConfigSelect:
    values = [OptionValue(each, each) if isinstance(each, str) else each for each in option.values]
    if value not in [each.value for each in values]:
        values.insert(0, OptionValue(value, value))  # a program may set a value that is not offered
    return v1.SessionConfigSelect(
        id=option.id,
        name=option.name,
        description=option.description,
        category=option.category,
        current_value=value,
        options=[
            v1.SessionConfigSelectOption(value=each.value, name=each.name, description=each.description)
            for each in values
        ],
    )


def _show_boolean(option: BooleanOption, value: bool) -> v1.SessionConfigBoolean:
    return v1.SessionConfigBoolean(
        id=option.id,
        name=option.name,
        description=option.description,
        category=option.category,
        current_value=value,
    )


def _check(value: str, known: Iterable[str], path: str, noun: str) -> str:
    if value in known:
        return value
    listed = ", ".join(known)
    expected = f"one of {listed}" if listed else f"none, because this session has no {noun}s"
    raise InvalidParamsError(path, f"there is no {noun} {value!r}; expected {expected}", expected=listed)


def _wrong_type(option: str, expected: str) -> InvalidParamsError:
    return InvalidParamsError("params.value", f"{option} must be {expected}", expected=expected)
