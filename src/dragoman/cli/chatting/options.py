"""What can be set in a session, with any agent: its config options, and its modes where it has them apart."""

from collections.abc import Iterator
from typing import NamedTuple

from dragoman.client import NotOffered, Session
from dragoman.protocol import v1

_ON, _OFF = "on", "off"
_SWITCHED = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class Offer(NamedTuple):
    """One thing that can be set, with the names of its values."""

    option_id: str
    name: str
    values: dict[str, str]
    current: str
    category: str | None = None
    kind: str = "select"
    """`select` and `boolean` are config options; `mode` is the session's mode, which older agents have apart."""


def offers(session: Session) -> list[Offer]:
    """Return all that can be set, in the agent's order."""
    return list(_offers(session))


def find_offer(session: Session, name: str) -> Offer | None:
    """Return what has this id, else what is of this category, such as `mode` or `model`; or None."""
    known = offers(session)
    by_id = [offer for offer in known if offer.option_id == name]
    return next((offer for offer in (*by_id, *known) if name in (offer.option_id, offer.category)), None)


async def choose(session: Session, name: str, value: str) -> str:
    """Set something, and return the value that it has now; raises NotOffered and what a call raises."""
    offer = find_offer(session, name)
    if offer is None:
        raise _unknown(session, name, value)
    value = _find_value(offer, value)
    match offer.kind:
        case "mode":
            await session.set_mode(value)
        case "boolean":
            await session.set_config_option(offer.option_id, value == _ON)
        case _:
            await session.set_config_option(offer.option_id, value)
    return value


def _offers(session: Session) -> Iterator[Offer]:
    has_mode = False
    for option in session.config_options:
        match option:
            case v1.SessionConfigSelect():
                has_mode = has_mode or "mode" in (option.id, option.category)
                yield Offer(option.id, option.name, _values(option), option.current_value, option.category)
            case v1.SessionConfigBoolean():
                current = _ON if option.current_value else _OFF
                yield Offer(option.id, option.name, {_ON: _ON, _OFF: _OFF}, current, option.category, "boolean")
            case _:
                pass
    if session.modes is not None and not has_mode:
        values = {mode.id: mode.name for mode in session.modes.available_modes}
        yield Offer("mode", "Mode", values, session.modes.current_mode_id, "mode", "mode")


def _unknown(session: Session, name: str, value: str) -> NotOffered:
    if name in ("mode", "model"):
        return NotOffered(name, value, [])
    return NotOffered("option", name, [offer.option_id for offer in offers(session)])


def _find_value(offer: Offer, value: str) -> str:
    """Return the value that is meant, by itself or by its name; raises NotOffered."""
    if offer.kind == "boolean" and value.lower() in _SWITCHED:
        return _ON if _SWITCHED[value.lower()] else _OFF
    if value in offer.values:
        return value
    by_name = [each for each, name in offer.values.items() if name.lower() == value.lower()]
    if by_name:
        return by_name[0]
    if "model" in (offer.option_id, offer.category):
        return value  # agents know more models than they list, ours among them
    raise NotOffered(offer.option_id, value, list(offer.values))


def _values(option: v1.SessionConfigSelect) -> dict[str, str]:
    values: dict[str, str] = {}
    for each in option.options:
        for choice in each.options if isinstance(each, v1.SessionConfigSelectGroup) else [each]:
            values[choice.value] = choice.name
    return values
