"""Options of a session, with any agent: its config options, and its modes where the agent has them apart."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman.client import NotOffered, Session
from dragoman.errors import DragomanError
from dragoman.protocol import v1

_ON, _OFF = "on", "off"
_SWITCHED = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class SessionOption(NamedTuple):
    """One thing that can be set, with the names of its values."""

    option_id: str
    name: str
    values: dict[str, str]
    current: str
    category: str | None = None
    kind: str = "select"
    """`select` and `boolean` are config options; `mode` is the session's mode, which older agents have apart."""


def list_options(session: Session) -> list[SessionOption]:
    """Return all that can be set, in the agent's order."""
    return list(_list_options(session))


def find_option(session: Session, name: str) -> SessionOption | None:
    """Return the option with this id, else the first of this category, such as `mode` or `model`; or None."""
    known = list_options(session)
    by_id = [option for option in known if option.option_id == name]
    return next((option for option in (*by_id, *known) if name in (option.option_id, option.category)), None)


async def choose(session: Session, name: str, value: str) -> str:
    """Set an option and return its value; raises NotOffered and the errors of a call."""
    option = find_option(session, name)
    if option is None:
        raise _unknown(session, name, value)
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


def _unknown(session: Session, name: str, value: str) -> NotOffered:
    if name in ("mode", "model"):
        return NotOffered(name, value, [])
    return NotOffered("option", name, [option.option_id for option in list_options(session)])


def _find_value(option: SessionOption, value: str) -> str:
    """Return the value that is meant, by itself or by its name; raises NotOffered."""
    if option.kind == "boolean" and value.lower() in _SWITCHED:
        return _ON if _SWITCHED[value.lower()] else _OFF
    if value in option.values:
        return value
    by_name = [each for each, name in option.values.items() if name.lower() == value.lower()]
    if by_name:
        return by_name[0]
    if "model" in (option.option_id, option.category):
        return value  # agents know more models than they list, ours among them
    raise NotOffered(option.option_id, value, list(option.values))


def _values(option: v1.SessionConfigSelect) -> dict[str, str]:
    values: dict[str, str] = {}
    for each in option.options:
        for choice in each.options if isinstance(each, v1.SessionConfigSelectGroup) else [each]:
            values[choice.value] = choice.name
    return values


MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""More than any provider takes; it goes to the agent in one message."""

_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class BadImage(DragomanError):
    """A file that cannot be sent as an image."""


def read_image(path: Path) -> v1.ImageContent:
    """Read an image; raises BadImage."""
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise BadImage(f"{path} is too large: at most {MAX_IMAGE_BYTES // 1024 // 1024} MiB are sent")
        data = path.read_bytes()
    except OSError as error:
        raise BadImage(f"{path} cannot be read: {error.strerror}") from None
    mime_type = _find_type(data)
    if mime_type is None:
        raise BadImage(f"{path} is no image that agents know: give a PNG, JPEG, GIF or WebP file")
    return v1.ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type, uri=path.absolute().as_uri())


def _find_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _MAGIC if data.startswith(magic)), None)
