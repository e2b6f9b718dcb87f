"""The options of any agent's session: its config options, and its modes if they are separate."""

from collections.abc import Iterator
from typing import NamedTuple

from dragoman.client import Session
from dragoman.client.errors import NotOfferedError
from dragoman.protocol import v1

_ON, _OFF = "on", "off"
_SWITCHED = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class SessionOption(NamedTuple):
    """An option, with its values and their names."""

    option_id: str
    name: str
    values: dict[str, str]
    current: str
    category: str | None = None
    kind: str = "select"
    """`select` and `boolean` are config options. `mode` is the session's mode, which older agents keep separate."""


def list_options(session: Session) -> list[SessionOption]:
    """Return all options, in the agent's order."""
    return list(_list_options(session))


def find_option(session: Session, name: str) -> SessionOption | None:
    """Return the option with this id, or else the first of this category, such as `mode` or `model`."""
    known = list_options(session)
    by_id = [option for option in known if option.option_id == name]
    return next((option for option in (*by_id, *known) if name in (option.option_id, option.category)), None)


async def choose(session: Session, name: str, value: str) -> str:
    """Set an option and return its value. Raises NotOfferedError or the errors of the call."""
    option = find_option(session, name)
    if option is None:
        raise NotOfferedError("option", name, [each.option_id for each in list_options(session)])
    value = _find_value(option, value)
    match option.kind:
        case "mode":
            await session.set_mode(value)
        case "boolean":
            await session.set_config_option(option.option_id, value == _ON)
        case _:
            await session.set_config_option(option.option_id, value)
    return value


def _list_options(session: Session) -> Iterator[SessionOption]:
    # Newer agents list the mode among the config options. The separate modes are added only for older agents.
    has_mode = False
    for option in session.config_options:
        match option:
            case v1.SessionConfigSelect():
                has_mode = has_mode or "mode" in (option.id, option.category)
                yield SessionOption(option.id, option.name, _values(option), option.current_value, option.category)
            case v1.SessionConfigBoolean():
                current = _ON if option.current_value else _OFF
                yield SessionOption(option.id, option.name, {_ON: _ON, _OFF: _OFF}, current, option.category, "boolean")
            case _:
                pass
    if session.modes is not None and not has_mode:
        values = {mode.id: mode.name for mode in session.modes.available_modes}
        yield SessionOption("mode", "Mode", values, session.modes.current_mode_id, "mode", "mode")


def _find_value(option: SessionOption, value: str) -> str:
    """Return the value with this id or name. Raises NotOfferedError."""
    if option.kind == "boolean" and value.lower() in _SWITCHED:
        return _ON if _SWITCHED[value.lower()] else _OFF
    if value in option.values:
        return value
    by_name = [each for each, name in option.values.items() if name.lower() == value.lower()]
    if by_name:
        return by_name[0]
    if "model" in (option.option_id, option.category):
        return value  # agents, including our own, support more models than they list
    raise NotOfferedError(option.option_id, value, list(option.values))


def _values(option: v1.SessionConfigSelect) -> dict[str, str]:
    values: dict[str, str] = {}
    for each in option.options:
        for choice in each.options if isinstance(each, v1.SessionConfigSelectGroup) else [each]:
            values[choice.value] = choice.name
    return values
