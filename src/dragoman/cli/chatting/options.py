"""Modes and models, of any agent: as it offers them, one way or the other."""

from typing import NamedTuple

from dragoman.client import NotOffered, Session
from dragoman.protocol import v1


class Offer(NamedTuple):
    """What can be chosen; `option_id` is set when it is a config option."""

    option_id: str | None
    values: dict[str, str]
    current: str


def find_offer(session: Session, category: str) -> Offer | None:
    """Return what there is to choose for `mode` or `model`, or None."""
    for option in session.config_options:
        if isinstance(option, v1.SessionConfigSelect) and category in (option.category, option.id):
            return Offer(option.id, _values(option), option.current_value)
    if category == "mode" and session.modes is not None:
        return Offer(
            None, {mode.id: mode.name for mode in session.modes.available_modes}, session.modes.current_mode_id
        )
    return None


async def choose(session: Session, category: str, value: str) -> None:
    """Switch to another mode or model; raises NotOffered and what a call raises."""
    offer = find_offer(session, category)
    if offer is None:
        raise NotOffered(category, value, [])
    if value not in offer.values:
        by_name = [each for each, name in offer.values.items() if name.lower() == value.lower()]
        if not by_name and category == "mode":
            raise NotOffered(category, value, list(offer.values))
        value = by_name[0] if by_name else value
    if offer.option_id is None:
        await session.set_mode(value)
    else:
        await session.set_config_option(offer.option_id, value)


def _values(option: v1.SessionConfigSelect) -> dict[str, str]:
    values: dict[str, str] = {}
    for each in option.options:
        for choice in each.options if isinstance(each, v1.SessionConfigSelectGroup) else [each]:
            values[choice.value] = choice.name
    return values
